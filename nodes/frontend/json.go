package frontend

import (
	"bytes"
	"math"
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/dynamograph/dynamo/graph/flow/llm"
)

// The token path appends JSON by hand: no reflection and no allocation.

const hexDigits = "0123456789abcdef"

// appendString appends s as a JSON string. What is not UTF-8 becomes U+FFFD.
func appendString(b []byte, s string) []byte {
	b = append(b, '"')
	start := 0
	for i := 0; i < len(s); {
		c := s[i]
		if c >= utf8.RuneSelf {
			if r, n := utf8.DecodeRuneInString(s[i:]); r == utf8.RuneError && n == 1 {
				b = append(append(b, s[start:i]...), `\ufffd`...)
				start = i + 1
				i++
			} else {
				i += n
			}
			continue
		}
		if c >= ' ' && c != '"' && c != '\\' && c != 0x7f {
			i++
			continue
		}
		b = append(b, s[start:i]...)
		switch c {
		case '"', '\\':
			b = append(b, '\\', c)
		case '\n':
			b = append(b, '\\', 'n')
		case '\r':
			b = append(b, '\\', 'r')
		case '\t':
			b = append(b, '\\', 't')
		default:
			b = append(b, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
		}
		i++
		start = i
	}
	return append(append(b, s[start:]...), '"')
}

// appendLogprob appends a log probability; JSON has no infinity, for which -9999 is customary.
func appendLogprob(b []byte, l float32) []byte {
	x := float64(l)
	if math.IsNaN(x) || x < -9999 {
		x = -9999
	}
	return strconv.AppendFloat(b, min(x, 0), 'g', -1, 32)
}

func appendUsage(b []byte, u llm.Usage) []byte {
	b = append(b, `{"prompt_tokens":`...)
	b = strconv.AppendInt(b, int64(u.Prompt), 10)
	b = append(b, `,"completion_tokens":`...)
	b = strconv.AppendInt(b, int64(u.Completion), 10)
	b = append(b, `,"total_tokens":`...)
	b = strconv.AppendInt(b, int64(u.Prompt+u.Completion), 10)
	b = append(b, `,"prompt_tokens_details":{"cached_tokens":`...)
	b = strconv.AppendInt(b, int64(u.Cached), 10)
	b = append(b, '}')
	if u.Reasoning > 0 {
		b = append(b, `,"completion_tokens_details":{"reasoning_tokens":`...)
		b = append(strconv.AppendInt(b, int64(u.Reasoning), 10), '}')
	}
	return append(b, '}')
}

// contentLogprobs reports whether the log-probabilities of a delta are those of content: only they are shown, as OpenAI's are.
func contentLogprobs(d *llm.ChatDelta) bool { return d.Reasoning == "" && len(d.Calls) == 0 }

// appendChatLogprobs appends the logprobs of a chat choice, or null where none were asked for.
func (c *call) appendChatLogprobs(b []byte, l []llm.TextLogprob) []byte {
	if !c.logprobs {
		return append(b, "null"...)
	}
	b = append(b, `{"content":[`...)
	for i := range l {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendToken(b, &l[i])
		b = append(b, `,"top_logprobs":[`...)
		for k := range l[i].Top {
			if k > 0 {
				b = append(b, ',')
			}
			b = append(appendToken(b, &l[i].Top[k]), '}')
		}
		b = append(b, `]}`...)
	}
	return append(b, `],"refusal":null}`...)
}

// appendToken appends a token's object without its closing brace.
func appendToken(b []byte, l *llm.TextLogprob) []byte {
	b = append(b, `{"token":`...)
	b = appendString(b, l.Text)
	b = append(b, `,"logprob":`...)
	b = appendLogprob(b, l.Logprob)
	b = append(b, `,"bytes":[`...)
	for i, c := range l.Bytes {
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendInt(b, int64(c), 10)
	}
	return append(b, ']')
}

// appendClassicLogprobs appends the logprobs of a completion. The alternatives of a token always hold the token itself.
func appendClassicLogprobs(b []byte, l []llm.TextLogprob) []byte {
	b = append(b, `{"tokens":[`...)
	for i := range l {
		b = comma(b, i)
		b = appendClassicToken(b, &l[i])
	}
	b = append(b, `],"token_logprobs":[`...)
	for i := range l {
		b = comma(b, i)
		if l[i].None {
			b = append(b, "null"...)
		} else {
			b = appendLogprob(b, l[i].Logprob)
		}
	}
	b = append(b, `],"top_logprobs":[`...)
	for i := range l {
		b = comma(b, i)
		b = appendClassicTop(b, &l[i])
	}
	b = append(b, `],"text_offset":[`...)
	for i := range l {
		b = comma(b, i)
		b = strconv.AppendInt(b, int64(l[i].Offset), 10)
	}
	return append(b, `]}`...)
}

// appendClassicTop appends a token's alternatives as an object of theirs: equal texts stand in it once, with the best of them.
func appendClassicTop(b []byte, l *llm.TextLogprob) []byte {
	if l.None {
		return append(b, "null"...)
	}
	b = append(b, '{')
	begin, own := len(b), false
	for k := range l.Top {
		t := &l.Top[k]
		if slices.ContainsFunc(l.Top[:k], func(o llm.TextLogprob) bool { return bytes.Equal(o.Bytes, t.Bytes) }) {
			continue
		}
		own = own || bytes.Equal(t.Bytes, l.Bytes)
		b = comma(b, len(b)-begin)
		b = appendLogprob(append(appendClassicToken(b, t), ':'), t.Logprob)
	}
	if !own {
		b = comma(b, len(b)-begin)
		b = appendLogprob(append(appendClassicToken(b, l), ':'), l.Logprob)
	}
	return append(b, '}')
}

// appendClassicToken appends a token's text, or bytes:\xe2\x9c where it is no whole rune, which tells such tokens apart.
func appendClassicToken(b []byte, l *llm.TextLogprob) []byte {
	if utf8.Valid(l.Bytes) {
		return appendString(b, l.Text)
	}
	b = append(b, `"bytes:`...)
	for _, c := range l.Bytes {
		b = append(b, '\\', '\\', 'x', hexDigits[c>>4], hexDigits[c&15])
	}
	return append(b, '"')
}

func comma(b []byte, i int) []byte {
	if i > 0 {
		return append(b, ',')
	}
	return b
}
