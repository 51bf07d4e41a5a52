package frontend

import (
	"encoding/json/jsontext"
	"math"

	"github.com/dynamograph/dynamo/graph/flow/llm"
)

func parseCompletions(x *exchange, f *fields) *call {
	c := &call{}
	q := x.common(f, c, "cmpl-")
	q.Logprobs = -1
	if c.logprobs = f.has("logprobs"); c.logprobs {
		q.Logprobs = int(f.integer("logprobs", 0, maxTopClassic, 0))
	}
	f.asked = append(f.asked, "logprobs")
	q.Echo = f.boolean("echo")
	if f.has("best_of") && int(f.integer("best_of", 1, maxChoices, 1)) != c.n {
		f.fail(bad("best_of", "best_of must equal n (%d): choosing the best of more is not supported", c.n))
	}
	f.asked = append(f.asked, "best_of")
	if !f.has("max_tokens") && !f.has("max_completion_tokens") {
		q.Limit = 16 // OpenAI's default on this route
	}
	prompts := f.prompts(q, x.f.vocabulary(c.model))
	if len(prompts)*c.n > maxChoices {
		f.fail(bad("n", "%d prompts with n = %d are more than %d choices", len(prompts), c.n, maxChoices))
	}
	f.strict(unsupported)
	c.fan(prompts)
	return c
}

// prompts reads a string, an array of strings, token ids, or an array of arrays of token ids.
func (f *fields) prompts(q llm.ChatRequest, vocabulary int) []llm.ChatRequest {
	v, ok := f.get("prompt")
	if !ok {
		f.fail(bad("prompt", "prompt must be set"))
		return nil
	}
	if s, ok := text(v); ok {
		if s == "" {
			f.fail(bad("prompt", "prompt must not be empty"))
		}
		q.Prompt = s
		return []llm.ChatRequest{q}
	}
	list, ok := elements(v)
	if !ok {
		f.fail(bad("prompt", "prompt must be a string or an array, not %s", what(v)))
		return nil
	}
	if len(list) == 0 {
		f.fail(bad("prompt", "prompt must not be empty"))
		return nil
	}
	if list[0].Kind() == '0' {
		q.Tokens = f.ids(list, vocabulary)
		return []llm.ChatRequest{q}
	}
	out := make([]llm.ChatRequest, 0, min(len(list), maxChoices+1))
	for i, e := range list {
		p := q
		s, isText := text(e)
		ids, isList := elements(e)
		switch {
		case i > 0 && e.Kind() != list[0].Kind():
			f.fail(bad("prompt", "prompt must hold either strings or token ids, not both"))
			return nil
		case isText && s != "":
			p.Prompt = s
		case isList && len(ids) > 0:
			p.Tokens = f.ids(ids, vocabulary)
		case isText || isList:
			f.fail(bad("prompt", "prompt %d is empty", i))
			return nil
		default:
			f.fail(bad("prompt", "prompt must hold strings or token ids, not %s", what(e)))
			return nil
		}
		if out = append(out, p); len(out) > maxChoices || f.err != nil {
			break
		}
	}
	return out
}

func (f *fields) ids(list []jsontext.Value, vocabulary int) []uint32 {
	out := make([]uint32, len(list))
	for i, v := range list {
		n, ok := whole(v)
		if !ok || n < 0 || n > math.MaxUint32 || vocabulary > 0 && n >= int64(vocabulary) {
			f.fail(bad("prompt", "prompt: %s at index %d is not a token id of this model", what(v), i))
			return nil
		}
		out[i] = uint32(n)
	}
	return out
}
