package preprocess

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/dynamograph/dynamo/graph/flow"
	"github.com/dynamograph/dynamo/graph/flow/llm"
	"github.com/dynamograph/dynamo/nodes/text/detok"
	"github.com/dynamograph/dynamo/nodes/text/template"
	"github.com/dynamograph/dynamo/nodes/text/tokenizer"
)

// maxStopBytes bounds all stop strings of a request together.
const maxStopBytes = 16 << 10

func invalid(param, reason, format string, args ...any) *flow.Error {
	e := flow.Errorf(flow.InvalidRequest, reason, format, args...)
	e.Param = param
	return e
}

// model finds who serves a name.
func (n *Node) model(name string) (*served, error) {
	if m, ok := n.models[name]; ok {
		return m, nil
	}
	if n.any != nil {
		return n.any, nil
	}
	e := flow.Errorf(flow.NotFound, "model_not_found", "the model %q does not exist here; there is: %s", name, strings.Join(n.names, ", "))
	e.Param = "model"
	return nil, e
}

// down makes the request that the engine gets.
//
// How long the answer may be: Stop.MaxTokens, which is refused where the prompt leaves less; else Limit or all that the context holds,
// whichever is less. A prompt that fills the context is refused.
func (m *served) down(ctx context.Context, r *llm.ChatRequest) (*llm.TokensRequest, *turn, error) {
	if err := m.check(r); err != nil {
		return nil, nil, err
	}
	t, err := m.turn(r)
	if err != nil {
		return nil, nil, err
	}
	prompt, param, err := m.prompt(ctx, r, t)
	if err != nil {
		return nil, nil, err
	}
	if len(prompt) == 0 {
		return nil, nil, invalid(param, "prompt_empty", "the prompt is empty")
	}
	q := &llm.TokensRequest{
		ID: r.ID, Model: r.Model, Tenant: r.Tenant, Salt: r.Salt, Session: r.Session, Priority: r.Priority, Deadline: r.Deadline, Trace: r.Trace,
		Tokens: prompt, Sampling: r.Sampling, Stop: r.Stop, Logprobs: r.Logprobs, PromptLogprobs: r.Echo && r.Logprobs >= 0 && len(r.Messages) == 0,
		Routing: r.Routing,
	}
	if q.Constraint, err = m.constraint(r, t); err != nil {
		return nil, nil, err
	}
	if err := m.limit(r, q, param); err != nil {
		return nil, nil, err
	}
	if !q.Stop.IgnoreEOS { // files name one end token where models use several
		ids := slices.Clip(q.Stop.IDs)
		for _, id := range m.ends {
			if !slices.Contains(ids, id) {
				ids = append(ids, id)
			}
		}
		q.Stop.IDs = ids
	}
	return q, t, nil
}

// limit sets how long the answer may be.
func (m *served) limit(r *llm.ChatRequest, q *llm.TokensRequest, param string) error {
	most, asked := &q.Stop.MaxTokens, r.Stop.MaxTokens
	if asked == 0 && r.Limit > 0 {
		*most = max(r.Limit, r.Stop.MinTokens)
	}
	if r.Echo && r.NoOutput { // engines give one token at least: it is dropped on the way up
		*most, asked, q.Stop.MinTokens = 1, 0, 0
	}
	if m.context == 0 {
		return nil
	}
	n := len(q.Tokens)
	left := m.context - n
	switch {
	case left <= 0:
		return m.tooLong(param, fmt.Sprintf("the prompt has %d tokens, which leaves none for an answer", n))
	case asked > left:
		return m.tooLong(param, fmt.Sprintf("%d were requested: %d in the prompt and %d for the answer; ask for at most %d, or leave max_tokens out", n+asked, n, asked, left))
	case *most == 0 || *most > left:
		*most = left
	}
	if q.Stop.MinTokens > left {
		return m.tooLong(param, fmt.Sprintf("%d were requested: %d in the prompt and min_tokens %d", n+q.Stop.MinTokens, n, q.Stop.MinTokens))
	}
	return nil
}

// tooLong begins as OpenAI's message does: clients look for these words.
func (m *served) tooLong(param, what string) error {
	return invalid(param, "context_length_exceeded", "This model's maximum context length is %d tokens, but %s", m.context, what)
}

// check looks at all that needs no prompt.
func (m *served) check(r *llm.ChatRequest) error {
	set := 0
	for _, is := range []bool{len(r.Messages) > 0, r.Prompt != "", len(r.Tokens) > 0} {
		if is {
			set++
		}
	}
	if set > 1 {
		return invalid("messages", "prompt_ambiguous", "messages, prompt and prompt tokens exclude each other")
	}
	if len(r.StopStrings) > detok.MaxStops {
		return invalid("stop", "stop_too_many", "%d stop strings: at most %d are taken", len(r.StopStrings), detok.MaxStops)
	}
	size := 0
	for _, s := range r.StopStrings {
		size += len(s)
	}
	if size > maxStopBytes {
		return invalid("stop", "stop_too_long", "the stop strings have %d bytes together: at most %d are taken", size, maxStopBytes)
	}
	if s := r.Stop; s.MaxTokens < 0 || s.MinTokens < 0 {
		return invalid("max_tokens", "max_tokens_negative", "max_tokens and min_tokens must not be negative")
	} else if s.MaxTokens > 0 && s.MinTokens > s.MaxTokens {
		return invalid("min_tokens", "min_tokens_above_max", "min_tokens is %d, above max_tokens, which is %d", s.MinTokens, s.MaxTokens)
	}
	for id := range r.Sampling.LogitBias {
		if int64(id) >= int64(m.vocabulary) {
			return m.noToken("logit_bias", lowest(r.Sampling.LogitBias, m.vocabulary))
		}
	}
	for _, id := range r.Tokens {
		if int64(id) >= int64(m.vocabulary) {
			return m.noToken("prompt", id)
		}
	}
	for _, id := range r.Stop.IDs {
		if int64(id) >= int64(m.vocabulary) {
			return m.noToken("stop_token_ids", id)
		}
	}
	return nil
}

func (m *served) noToken(param string, id uint32) error {
	return invalid(param, "token_unknown", "%s: there is no token %d: this model's are below %d", param, id, m.vocabulary)
}

// lowest is the lowest key at or above limit, so that the message does not depend on the map's order.
func lowest(bias map[uint32]float32, limit int) uint32 {
	out, found := uint32(0), false
	for id := range bias {
		if int64(id) >= int64(limit) && (!found || id < out) {
			out, found = id, true
		}
	}
	return out
}

// prompt is the request's tokens, and the field that they come from. It tells t how the prompt ends.
func (m *served) prompt(ctx context.Context, r *llm.ChatRequest, t *turn) ([]uint32, string, error) {
	switch {
	case len(r.Tokens) > 0:
		return r.Tokens, "prompt", nil
	case len(r.Messages) == 0:
		// A completion's author writes the whole prompt, so text that spells a special token is that token, as everywhere else.
		if err := m.fits("prompt", len(r.Prompt)); err != nil {
			return nil, "prompt", err
		}
		return m.tok.Encode(nil, r.Prompt, tokenizer.Options{Special: true, BOS: true, Cache: m.cache}), "prompt", nil
	}
	if m.template == nil {
		return nil, "messages", invalid("messages", "template.none",
			"the model %q takes no chats: %s; use completions, or set the field template of the node preprocess", m.name, m.noTemplate)
	}
	messages, err := history(r.Messages, m.ids)
	if err != nil {
		return nil, "messages", invalid("messages", "messages.invalid", "messages: %v", err)
	}
	args, err := m.args(r)
	if err != nil {
		return nil, "reasoning_effort", err
	}
	// What comes from the client stays text even where it spells a special token: only the template makes those.
	p, err := m.template.Render(ctx, template.Input{
		Messages: messages, Tools: t.tools, Args: args, Generate: !r.NoGenerationPrompt && !r.Continue, Continue: r.Continue,
		Guard: m.tok.Guard,
	})
	if err != nil {
		return nil, "messages", err
	}
	size := len(p.Text)
	if p.Mark != 0 {
		size -= len(string(p.Mark)) * strings.Count(p.Text, string(p.Mark))
	}
	if err := m.fits("messages", size); err != nil {
		return nil, "messages", err
	}
	if t.reads() {
		t.parse.Tail = tail(p)
	}
	// The template writes the BOS token where the model wants one.
	return m.tok.Encode(nil, p.Text, tokenizer.Options{Special: true, Mark: p.Mark, Cache: m.cache}), "messages", nil
}

// fits refuses a text of which the length alone says that it is too long, before work is put into it.
func (m *served) fits(param string, size int) error {
	if m.context > 0 && m.tok.MaxBytes() > 0 {
		if least := size / m.tok.MaxBytes(); least >= m.context {
			return m.tooLong(param, fmt.Sprintf("the prompt has more than %d", least))
		}
	}
	return nil
}

// tailBytes is how much of a prompt's end a parser is shown.
const tailBytes = 256

// tail is the end of a prompt, without marks.
func tail(p template.Prompt) string {
	s := p.Text[max(0, len(p.Text)-2*tailBytes):]
	if p.Mark != 0 {
		s = strings.ReplaceAll(s, string(p.Mark), "")
	}
	return strings.ToValidUTF8(s[max(0, len(s)-tailBytes):], "")
}
