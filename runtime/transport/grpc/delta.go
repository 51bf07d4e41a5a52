package grpc

import (
	"fmt"
	"math"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/dynamograph/dynamo/graph/flow/llm"
	dynamov1 "github.com/dynamograph/dynamo/runtime/api/dynamo/v1"
)

// This file is dynamo.v1.Delta by hand: generated code makes five to ten allocations a delta. Tests hold both to the same bytes.

// field numbers of Delta and Logprob, with their wire types.
var (
	tagTokens    = protowire.EncodeTag(1, protowire.BytesType)
	tagLogprobs  = protowire.EncodeTag(2, protowire.BytesType)
	tagPrompt    = protowire.EncodeTag(3, protowire.BytesType)
	tagFinish    = protowire.EncodeTag(4, protowire.BytesType)
	tagStopID    = protowire.EncodeTag(5, protowire.VarintType)
	tagHandOff   = protowire.EncodeTag(6, protowire.BytesType)
	tagUsage     = protowire.EncodeTag(7, protowire.BytesType)
	tagInstance  = protowire.EncodeTag(8, protowire.BytesType)
	tagToken     = protowire.EncodeTag(1, protowire.VarintType)
	tagLogprob   = protowire.EncodeTag(2, protowire.Fixed32Type)
	tagTop       = protowire.EncodeTag(3, protowire.BytesType)
	finishValues = []llm.FinishReason{llm.FinishStop, llm.FinishLength, llm.FinishAbort}
)

func appendDelta(b []byte, d *llm.TokensDelta) ([]byte, error) {
	if len(d.Tokens) > 0 {
		n := 0
		for _, t := range d.Tokens {
			n += protowire.SizeVarint(uint64(t))
		}
		b = protowire.AppendVarint(protowire.AppendVarint(b, tagTokens), uint64(n))
		for _, t := range d.Tokens {
			b = protowire.AppendVarint(b, uint64(t))
		}
	}
	for i := range d.Logprobs {
		b = appendLogprob(protowire.AppendVarint(b, tagLogprobs), &d.Logprobs[i])
	}
	for i := range d.Prompt {
		b = appendLogprob(protowire.AppendVarint(b, tagPrompt), &d.Prompt[i])
	}
	if d.Finish != "" {
		b = protowire.AppendString(protowire.AppendVarint(b, tagFinish), text(string(d.Finish)))
	}
	if d.StopID != 0 {
		b = protowire.AppendVarint(protowire.AppendVarint(b, tagStopID), uint64(d.StopID))
	}
	if d.HandOff != nil {
		m, err := proto.Marshal(handOffToWire(d.HandOff))
		if err != nil {
			return b, err
		}
		b = protowire.AppendBytes(protowire.AppendVarint(b, tagHandOff), m)
	}
	if u := d.Usage; u != nil {
		m, err := proto.Marshal(&dynamov1.Usage{Prompt: uint32(u.Prompt), Completion: uint32(u.Completion), Cached: uint32(u.Cached)})
		if err != nil {
			return b, err
		}
		b = protowire.AppendBytes(protowire.AppendVarint(b, tagUsage), m)
	}
	if d.Instance != "" {
		b = protowire.AppendString(protowire.AppendVarint(b, tagInstance), text(d.Instance))
	}
	return b, nil
}

func scoredSize(token uint32, logprob float32) int {
	n := 0
	if token != 0 {
		n += 1 + protowire.SizeVarint(uint64(token))
	}
	if math.Float32bits(logprob) != 0 {
		n += 1 + 4
	}
	return n
}

func appendScored(b []byte, token uint32, logprob float32) []byte {
	if token != 0 {
		b = protowire.AppendVarint(protowire.AppendVarint(b, tagToken), uint64(token))
	}
	if bits := math.Float32bits(logprob); bits != 0 {
		b = protowire.AppendFixed32(protowire.AppendVarint(b, tagLogprob), bits)
	}
	return b
}

func appendLogprob(b []byte, l *llm.Logprob) []byte {
	n := scoredSize(l.Token, l.Logprob)
	for _, t := range l.Top {
		n += 1 + protowire.SizeBytes(scoredSize(t.Token, t.Logprob))
	}
	b = appendScored(protowire.AppendVarint(b, uint64(n)), l.Token, l.Logprob)
	for _, t := range l.Top {
		b = protowire.AppendVarint(b, tagTop)
		b = appendScored(protowire.AppendVarint(b, uint64(scoredSize(t.Token, t.Logprob))), t.Token, t.Logprob)
	}
	return b
}

// fields calls f for each field of a message: num is the number, v the value of a varint or fixed field, p that of a length-delimited one.
func fields(b []byte, f func(num protowire.Number, typ protowire.Type, v uint64, p []byte) error) error {
	for len(b) > 0 {
		num, typ, n := protowire.ConsumeTag(b)
		if n < 0 {
			return protowire.ParseError(n)
		}
		b = b[n:]
		var v uint64
		var p []byte
		switch typ {
		case protowire.VarintType:
			v, n = protowire.ConsumeVarint(b)
		case protowire.Fixed32Type:
			var w uint32
			w, n = protowire.ConsumeFixed32(b)
			v = uint64(w)
		case protowire.Fixed64Type:
			v, n = protowire.ConsumeFixed64(b)
		case protowire.BytesType:
			p, n = protowire.ConsumeBytes(b)
		default:
			n = protowire.ConsumeFieldValue(num, typ, b)
		}
		if n < 0 {
			return protowire.ParseError(n)
		}
		if err := f(num, typ, v, p); err != nil {
			return err
		}
		b = b[n:]
	}
	return nil
}

// resetDelta empties d and keeps the memory of its slices.
func resetDelta(d *llm.TokensDelta) {
	*d = llm.TokensDelta{Tokens: d.Tokens[:0], Logprobs: d.Logprobs[:0], Prompt: d.Prompt[:0], Instance: d.Instance}
}

// decodeDelta reads b into d, reusing d's slices. d.Instance is kept where equal, so that it is not made anew for each delta.
func decodeDelta(b []byte, d *llm.TokensDelta) error {
	resetDelta(d)
	instance := false
	err := fields(b, func(num protowire.Number, typ protowire.Type, v uint64, p []byte) error {
		switch {
		case num == 1 && typ == protowire.BytesType:
			for len(p) > 0 {
				t, n := protowire.ConsumeVarint(p)
				if n < 0 {
					return protowire.ParseError(n)
				}
				d.Tokens = append(d.Tokens, uint32(t))
				p = p[n:]
			}
		case num == 1 && typ == protowire.VarintType:
			d.Tokens = append(d.Tokens, uint32(v))
		case num == 2 && typ == protowire.BytesType:
			return growLogprobs(&d.Logprobs, p)
		case num == 3 && typ == protowire.BytesType:
			return growLogprobs(&d.Prompt, p)
		case num == 4 && typ == protowire.BytesType:
			d.Finish = finishOf(p)
		case num == 5 && typ == protowire.VarintType:
			d.StopID = uint32(v)
		case num == 6 && typ == protowire.BytesType:
			var w dynamov1.HandOff
			if err := proto.Unmarshal(p, &w); err != nil {
				return fmt.Errorf("hand_off: %w", err)
			}
			d.HandOff = handOffFromWire(&w)
		case num == 7 && typ == protowire.BytesType:
			var w dynamov1.Usage
			if err := proto.Unmarshal(p, &w); err != nil {
				return fmt.Errorf("usage: %w", err)
			}
			d.Usage = &llm.Usage{Prompt: int(w.GetPrompt()), Completion: int(w.GetCompletion()), Cached: int(w.GetCached())}
		case num == 8 && typ == protowire.BytesType:
			instance = true
			if d.Instance != string(p) {
				d.Instance = string(p)
			}
		}
		return nil
	})
	if !instance {
		d.Instance = ""
	}
	return err
}

func finishOf(p []byte) llm.FinishReason {
	for _, f := range finishValues {
		if string(f) == string(p) {
			return f
		}
	}
	return llm.FinishReason(p)
}

// growLogprobs appends one entry to s, reusing the Top of what lay there before.
func growLogprobs(s *[]llm.Logprob, p []byte) error {
	n := len(*s)
	if n < cap(*s) {
		*s = (*s)[:n+1]
	} else {
		*s = append(*s, llm.Logprob{})
	}
	l := &(*s)[n]
	l.Token, l.Logprob, l.Top = 0, 0, l.Top[:0]
	return fields(p, func(num protowire.Number, typ protowire.Type, v uint64, p []byte) error {
		switch {
		case num == 1 && typ == protowire.VarintType:
			l.Token = uint32(v)
		case num == 2 && typ == protowire.Fixed32Type:
			l.Logprob = math.Float32frombits(uint32(v))
		case num == 3 && typ == protowire.BytesType:
			var t llm.TopLogprob
			err := fields(p, func(num protowire.Number, typ protowire.Type, v uint64, _ []byte) error {
				switch {
				case num == 1 && typ == protowire.VarintType:
					t.Token = uint32(v)
				case num == 2 && typ == protowire.Fixed32Type:
					t.Logprob = math.Float32frombits(uint32(v))
				}
				return nil
			})
			l.Top = append(l.Top, t)
			return err
		}
		return nil
	})
}
