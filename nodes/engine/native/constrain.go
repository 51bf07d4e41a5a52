package native

import (
	"context"
	"fmt"
	"os"
	"slices"

	"github.com/dynamograph/dynamo/graph/flow"
	"github.com/dynamograph/dynamo/graph/flow/llm"
	"github.com/dynamograph/dynamo/graph/model/gguf"
	"github.com/dynamograph/dynamo/nodes/text/constrain"
	"github.com/dynamograph/dynamo/nodes/text/tokenizer"
)

// maxPrograms are the compiled constraints that an engine keeps.
const maxPrograms = 16

// vocabulary reads the texts of the model's tokens, which constraints are about.
func vocabulary(path string, size int, ends []uint32) (*constrain.Cache, error) {
	fd, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = fd.Close() }() // read only
	st, err := fd.Stat()
	if err != nil {
		return nil, err
	}
	f, err := gguf.Read(fd, st.Size())
	if err != nil {
		return nil, err
	}
	t, err := tokenizer.FromGGUF(f)
	if err != nil {
		return nil, err
	}
	if t.Size() != size {
		return nil, fmt.Errorf("the tokenizer has %d tokens, the model %d", t.Size(), size)
	}
	ends = slices.Clone(ends)
	for _, id := range t.EOS() {
		if !slices.Contains(ends, id) {
			ends = append(ends, id)
		}
	}
	return constrain.NewCache(constrain.NewTokens(t, ends), maxPrograms), nil
}

// constrain makes the matcher of a request and takes it past the output of earlier attempts.
func (e *Engine) constrain(ctx context.Context, r *llm.TokensRequest) (*constrain.Matcher, *flow.Error) {
	cache, err := e.programs()
	if err != nil {
		return nil, &flow.Error{Class: flow.NotImplemented, Reason: "engine.unsupported", Param: "constraint", Instance: e.host.Instance(),
			Msg: "constraint: the texts of this model's tokens are not known", Err: err}
	}
	c := r.Constraint
	p, err := cache.Get(ctx, constrain.Spec{JSONSchema: c.JSONSchema, Regex: c.Regex, Choice: c.Choice, Grammar: c.Grammar, Tags: c.Tags, After: c.After})
	if err != nil {
		f := flow.AsError(err)
		f.Instance = e.host.Instance()
		return nil, f
	}
	m := p.New()
	for i, t := range r.Tokens[len(r.Tokens)-r.Generated:] {
		if !m.Accept(t) {
			f := flow.Errorf(flow.InvalidRequest, "constraint.violated", "constraint: the output of the earlier attempt violates it at token %d", i)
			f.Instance = e.host.Instance()
			return nil, f
		}
	}
	return m, nil
}
