package grpc

import (
	"strings"
	"time"

	"github.com/dynamograph/dynamo/graph/flow/llm"
	dynamov1 "github.com/dynamograph/dynamo/runtime/api/dynamo/v1"
)

// text makes a string that protobuf takes: an id from a client may be anything.
func text(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }

func texts(in []string) []string {
	var out []string
	for _, s := range in {
		out = append(out, text(s))
	}
	return out
}

func timeToWire(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixNano()
}

func timeFromWire(n int64) time.Time {
	if n == 0 {
		return time.Time{}
	}
	return time.Unix(0, n)
}

func requestToWire(r *llm.TokensRequest) *dynamov1.TokensRequest {
	s := &r.Sampling
	w := &dynamov1.TokensRequest{
		Id: text(r.ID), Model: text(r.Model), Adapter: text(r.Adapter), Tenant: text(r.Tenant), Salt: text(r.Salt), Session: text(r.Session),
		Priority: int32(r.Priority), DeadlineUnixNano: timeToWire(r.Deadline), Traceparent: text(r.Trace),
		Tokens: r.Tokens, Generated: uint32(r.Generated),
		Sampling: &dynamov1.Sampling{
			Temperature: s.Temperature, TopP: s.TopP, TopK: int32(s.TopK), MinP: s.MinP, FrequencyPenalty: s.FrequencyPenalty,
			PresencePenalty: s.PresencePenalty, RepetitionPenalty: s.RepetitionPenalty, LogitBias: s.LogitBias, Seed: s.Seed,
		},
		Stop: &dynamov1.Stop{
			MaxTokens: int32(r.Stop.MaxTokens), MinTokens: int32(r.Stop.MinTokens), Ids: r.Stop.IDs, IgnoreEos: r.Stop.IgnoreEOS,
		},
		Logprobs: int32(r.Logprobs), PromptLogprobs: r.PromptLogprobs,
		Routing: &dynamov1.Routing{Pin: text(r.Routing.Pin), Exclude: texts(r.Routing.Exclude)},
		Phase:   dynamov1.Phase(r.Phase), HandOff: handOffToWire(r.HandOff),
	}
	if c := r.Constraint; c != nil {
		w.Constraint = &dynamov1.Constraint{JsonSchema: text(c.JSONSchema), Regex: text(c.Regex), Choice: texts(c.Choice), Grammar: text(c.Grammar), Tags: text(c.Tags), After: text(c.After)}
	}
	for _, m := range r.Media {
		w.Media = append(w.Media, &dynamov1.MediaItem{Hash: text(m.Hash), Offset: uint32(m.Offset), Length: uint32(m.Length)})
	}
	for k, v := range r.Extra {
		if w.Extra == nil {
			w.Extra = make(map[string]string, len(r.Extra))
		}
		w.Extra[text(k)] = text(v)
	}
	return w
}

func requestFromWire(w *dynamov1.TokensRequest) *llm.TokensRequest {
	s, st := w.GetSampling(), w.GetStop()
	r := &llm.TokensRequest{
		ID: w.GetId(), Model: w.GetModel(), Adapter: w.GetAdapter(), Tenant: w.GetTenant(), Salt: w.GetSalt(), Session: w.GetSession(),
		Priority: int(w.GetPriority()), Deadline: timeFromWire(w.GetDeadlineUnixNano()), Trace: w.GetTraceparent(),
		Tokens: w.GetTokens(), Generated: int(w.GetGenerated()),
		Sampling: llm.Sampling{
			Temperature: s.GetTemperature(), TopP: s.GetTopP(), TopK: int(s.GetTopK()), MinP: s.GetMinP(),
			FrequencyPenalty: s.GetFrequencyPenalty(), PresencePenalty: s.GetPresencePenalty(),
			RepetitionPenalty: s.GetRepetitionPenalty(), LogitBias: s.GetLogitBias(), Seed: s.GetSeed(),
		},
		Stop: llm.Stop{
			MaxTokens: int(st.GetMaxTokens()), MinTokens: int(st.GetMinTokens()), IDs: st.GetIds(), IgnoreEOS: st.GetIgnoreEos(),
		},
		Logprobs: int(w.GetLogprobs()), PromptLogprobs: w.GetPromptLogprobs(),
		Routing: llm.Routing{Pin: w.GetRouting().GetPin(), Exclude: w.GetRouting().GetExclude()},
		Phase:   llm.Phase(w.GetPhase()), HandOff: handOffFromWire(w.GetHandOff()), Extra: w.GetExtra(),
	}
	if c := w.GetConstraint(); c != nil {
		r.Constraint = &llm.Constraint{JSONSchema: c.GetJsonSchema(), Regex: c.GetRegex(), Choice: c.GetChoice(), Grammar: c.GetGrammar(), Tags: c.GetTags(), After: c.GetAfter()}
	}
	for _, m := range w.GetMedia() {
		r.Media = append(r.Media, llm.MediaItem{Hash: m.GetHash(), Offset: int(m.GetOffset()), Length: int(m.GetLength())})
	}
	return r
}

func handOffToWire(h *llm.HandOff) *dynamov1.HandOff {
	if h == nil {
		return nil
	}
	w := &dynamov1.HandOff{
		Id: text(h.ID), Mode: text(string(h.Mode)), Contract: contractToWire(&h.Contract), Peer: text(h.Peer), Tokens: uint32(h.Tokens), First: h.First,
		Opaque: h.Opaque, DeadlineUnixNano: timeToWire(h.Deadline),
	}
	if p := h.FirstLogprob; p != nil {
		w.FirstLogprob = &dynamov1.Logprob{Token: p.Token, Logprob: p.Logprob}
		for _, t := range p.Top {
			w.FirstLogprob.Top = append(w.FirstLogprob.Top, &dynamov1.TopLogprob{Token: t.Token, Logprob: t.Logprob})
		}
	}
	return w
}

func handOffFromWire(w *dynamov1.HandOff) *llm.HandOff {
	if w == nil {
		return nil
	}
	h := &llm.HandOff{
		ID: w.GetId(), Mode: llm.Mode(w.GetMode()), Contract: contractFromWire(w.GetContract()), Peer: w.GetPeer(), Tokens: int(w.GetTokens()),
		First: w.GetFirst(), Opaque: w.GetOpaque(), Deadline: timeFromWire(w.GetDeadlineUnixNano()),
	}
	if p := w.GetFirstLogprob(); p != nil {
		h.FirstLogprob = &llm.Logprob{Token: p.GetToken(), Logprob: p.GetLogprob()}
		for _, t := range p.GetTop() {
			h.FirstLogprob.Top = append(h.FirstLogprob.Top, llm.TopLogprob{Token: t.GetToken(), Logprob: t.GetLogprob()})
		}
	}
	return h
}

func contractToWire(c *llm.Contract) *dynamov1.Contract {
	return &dynamov1.Contract{
		ModelId: text(c.ModelID), BlockSize: uint32(c.BlockSize), Dtype: text(c.DType), Layout: text(c.Layout), Hash: text(c.Hash),
		Numerics: text(c.Numerics), Tp: uint32(c.TP), BlockBytes: uint64(c.BlockBytes),
	}
}

func contractFromWire(w *dynamov1.Contract) llm.Contract {
	return llm.Contract{
		ModelID: w.GetModelId(), BlockSize: int(w.GetBlockSize()), DType: w.GetDtype(), Layout: w.GetLayout(), Hash: w.GetHash(),
		Numerics: w.GetNumerics(), TP: int(w.GetTp()), BlockBytes: int(w.GetBlockBytes()),
	}
}
