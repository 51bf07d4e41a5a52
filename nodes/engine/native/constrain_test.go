package native

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/dynamograph/dynamo/graph/flow"
	"github.com/dynamograph/dynamo/graph/flow/llm"
	"github.com/dynamograph/dynamo/nodes/text/constrain"
)

// letters is the vocabulary of the fake model: printable ASCII but "z", two words, and the end.
type letters struct{}

func (letters) Size() int             { return fakeVocab }
func (letters) IsSpecial(uint32) bool { return false }

func (letters) Piece(id uint32) string {
	switch id {
	case fakeEnd:
		return "<end>"
	case 95:
		return `{"`
	case 96:
		return `": `
	case 'z' - ' ':
		return "%"
	}
	return string(rune(' ' + id))
}

func written(r result) string {
	var b strings.Builder
	for _, t := range r.tokens {
		b.WriteString(letters{}.Piece(t))
	}
	return b.String()
}

func openLetters(t *testing.T) *Engine {
	t.Helper()
	e, _ := open(t, setup{})
	readable(e)
	return e
}

func readable(e *Engine) {
	e.programs = func() (*constrain.Cache, error) {
		return constrain.NewCache(constrain.NewTokens(letters{}, []uint32{fakeEnd}), 4), nil
	}
}

func bound(seed uint64, c llm.Constraint) *llm.TokensRequest {
	return &llm.TokensRequest{
		ID: fmt.Sprint(seed), Tokens: prompt(int(seed), 20, fakeVocab), Logprobs: 1, Constraint: &c,
		Sampling: llm.Sampling{Temperature: 1, Seed: seed}, Stop: llm.Stop{MaxTokens: 150},
	}
}

var bounds = []llm.Constraint{
	{JSONSchema: `{"type":"object","properties":{"a":{"type":"integer"},"b":{"enum":["x","y"]},"c":{"type":"array","items":{"type":"boolean"},"maxItems":3}},"required":["a","b","c"]}`},
	{Regex: `[a-f]{3}-[0-9]{2}`},
	{Choice: []string{"yes", "no", "nobody"}},
	{Grammar: "root ::= \"<\" [a-c]{1,5} \">\" root?"},
	{Regex: `[0-9]`, After: "e"},
}

// Sequences of one batch have constraints of their own, each ends as it should, and hand-offs, other engines and the end of an attempt change nothing.
func TestConstraints(t *testing.T) {
	e := openLetters(t)
	p, d, _, _ := pair(t, func() compute { return newFake() }, config())
	readable(p)
	readable(d)
	var wg sync.WaitGroup
	out := make([]result, 20*len(bounds))
	for i := range out {
		wg.Go(func() { out[i] = collect(t.Context(), e, bound(uint64(i), bounds[i%len(bounds)])) })
	}
	wg.Wait()
	for i, r := range out {
		text := written(r)
		if r.err != nil {
			t.Fatalf("%d: %v", i, r.err)
		}
		ok := true
		switch i % len(bounds) {
		case 0:
			ok = json.Valid([]byte(text)) || r.finish == llm.FinishLength
		case 1:
			ok = regexp.MustCompile(`^[a-f]{3}-[0-9]{2}$`).MatchString(text)
		case 2:
			ok = slices.Contains(bounds[2].Choice, text)
		case 3:
			ok = regexp.MustCompile(`^(<[a-c]{1,5}>)+$`).MatchString(text) || r.finish == llm.FinishLength
		case 4:
			ok = regexp.MustCompile(`^[^e]*e[0-9]$`).MatchString(text) || r.finish == llm.FinishLength
		}
		if !ok || r.finish == llm.FinishStop && r.usage.Completion != len(r.tokens) || len(r.logprobs) != len(r.tokens) {
			t.Errorf("%d: %q %s", i, text, r)
		}
		if i >= 2*len(bounds) {
			continue
		}
		q := bound(uint64(i), bounds[i%len(bounds)])
		for n := range r.tokens { // another attempt goes on behind n tokens
			again := *q
			again.Tokens, again.Generated = slices.Concat(q.Tokens, r.tokens[:n]), n
			if rest := must(t, e, &again); !slices.Equal(rest.tokens, r.tokens[n:]) || rest.finish != r.finish {
				t.Fatalf("%d behind %d tokens: %q, finish %q; want %q", i, n, written(rest), rest.finish, text)
			}
		}
		if parts := disagg(t, p, d, bound(uint64(i), bounds[i%len(bounds)]), nil); !same(parts, r) {
			t.Errorf("%d over a hand-off: %s\nwant %s", i, parts, r)
		}
	}
	quiet(t, e)
}

func TestConstraintsRefused(t *testing.T) {
	e := openLetters(t)
	for _, c := range []struct {
		c             llm.Constraint
		param, reason string
	}{
		{llm.Constraint{Regex: "("}, "regex", "constraint.invalid"},
		{llm.Constraint{}, "structured_outputs", "constraint.invalid"},
		{llm.Constraint{JSONSchema: `{"not":{}}`}, "response_format", "constraint.invalid"},
		{llm.Constraint{Regex: "a?z"}, "", "constraint.dead_end"},
	} {
		r := collect(t.Context(), e, bound(1, c.c))
		if r.err == nil || r.err.Class != flow.InvalidRequest || r.err.Param != c.param || r.err.Reason != c.reason || r.err.Instance != "worker-0" {
			t.Errorf("%+v: %+v", c.c, r.err)
		}
	}
	q := bound(1, llm.Constraint{Regex: "ab"})
	q.Tokens, q.Generated = append(q.Tokens, 'x'-' '), 1
	if r := collect(t.Context(), e, q); r.err == nil || r.err.Reason != "constraint.violated" {
		t.Errorf("%v", r.err)
	}
	quiet(t, e)
}

// The end is no output where a client wants no end tokens to act, nor before min_tokens.
func TestConstraintsAndEnds(t *testing.T) {
	e := openLetters(t)
	for seed := range uint64(20) {
		q := bound(seed, llm.Constraint{Regex: "[a-c]*d?"})
		q.Stop.IgnoreEOS, q.Stop.MaxTokens = true, 30
		if r := must(t, e, q); slices.Contains(r.tokens, fakeEnd) || r.finish == llm.FinishStop && !strings.HasSuffix(written(r), "d") {
			t.Errorf("ignore_eos: %q %s", written(r), r.finish)
		}
		q = bound(seed, llm.Constraint{Regex: "[a-c]*"})
		q.Stop.MinTokens = 7
		if r := must(t, e, q); len(r.tokens) < 7 {
			t.Errorf("min_tokens: %q", written(r))
		}
	}
}
