package native

import (
	"maps"
	"slices"

	"github.com/dynamograph/dynamo/graph/flow"
	"github.com/dynamograph/dynamo/graph/flow/llm"
	"github.com/dynamograph/dynamo/nodes/engine/sample"
)

// refuse returns a typed refusal of what this engine cannot honour, or nil. The length of the prompt is the scheduler's concern.
func (e *Engine) refuse(r *llm.TokensRequest) *flow.Error {
	fail := func(c flow.Class, param, format string, args ...any) *flow.Error {
		f := flow.Errorf(c, "engine.request", param+": "+format, args...)
		if c == flow.NotImplemented {
			f.Reason = "engine.unsupported"
		}
		f.Param, f.Instance = param, e.host.Instance()
		return f
	}
	invalid, missing, vocab := flow.InvalidRequest, flow.NotImplemented, int64(e.info.Vocabulary)
	switch {
	case r.Adapter != "":
		return fail(missing, "adapter", "%q: this engine has no adapters", r.Adapter)
	case len(r.Media) > 0:
		return fail(missing, "media", "this engine takes text only")
	case len(r.Extra) > 0:
		return fail(missing, "extra."+slices.Sorted(maps.Keys(r.Extra))[0], "not known to this engine")
	case r.Phase > llm.PhaseDecode:
		return fail(invalid, "phase", "%d is none", r.Phase)
	case len(r.Tokens) == 0:
		return fail(invalid, "tokens", "the prompt is empty")
	case r.Generated < 0 || r.Generated >= len(r.Tokens):
		return fail(invalid, "generated", "%d of %d tokens leave no prompt", r.Generated, len(r.Tokens))
	case r.Stop.MaxTokens < 0:
		return fail(invalid, "max_tokens", "%d is below 0", r.Stop.MaxTokens)
	case r.Stop.MinTokens < 0:
		return fail(invalid, "min_tokens", "%d is below 0", r.Stop.MinTokens)
	case r.Logprobs < -1:
		return fail(invalid, "logprobs", "%d is below -1", r.Logprobs)
	}
	for i, t := range r.Tokens {
		if int64(t) >= vocab {
			return fail(invalid, "tokens", "id %d at position %d, the vocabulary has %d", t, i, vocab)
		}
	}
	for _, t := range r.Stop.IDs {
		if int64(t) >= vocab {
			return fail(invalid, "stop_token_ids", "id %d, the vocabulary has %d", t, vocab)
		}
	}
	if err := sample.Check(&r.Sampling, r.Logprobs, int(vocab)); err != nil {
		err.Instance = e.host.Instance()
		return err
	}
	return nil
}
