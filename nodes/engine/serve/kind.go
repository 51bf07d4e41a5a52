package serve

import (
	"fmt"
	"strings"
	"time"

	"github.com/dynamograph/dynamo/graph/diag"
	"github.com/dynamograph/dynamo/graph/kind"
	"github.com/dynamograph/dynamo/nodes/engine"
)

// Check finds what a schema cannot say about an engine's config.
func Check(c engine.Config, s kind.Site) diag.List {
	var l diag.List
	add := func(code, field, hint, format string, args ...any) {
		l.Add(diag.Diagnostic{
			Code: code, Pos: s.Field(field), Len: len(field[strings.LastIndexByte(field, '.')+1:]), Path: "nodes." + s.Node.Name + "." + field,
			Msg: fmt.Sprintf("nodes.%s.%s: ", s.Node.Name, field) + fmt.Sprintf(format, args...), Hint: hint,
		})
	}
	names := engine.Names()
	known := false
	for _, n := range names {
		known = known || n == c.Engine
	}
	if !known {
		add("bad-value", "engine", diag.Suggest(c.Engine, names), "unknown engine %q; known: %s", c.Engine, strings.Join(names, ", "))
	}
	if context, from := contextOf(s); c.KV.Tokens > 0 && c.KV.Tokens < context {
		add("kv-too-small", "kv.tokens", fmt.Sprintf("raise it to %d, or set models.%s.context to %d", context, s.Node.Model, c.KV.Tokens),
			"%d tokens, but one sequence may have %d: %s", c.KV.Tokens, context, from)
	}
	if c.Mock == nil {
		return l
	}
	if c.Engine != "mock" {
		add("no-effect", "mock", `set engine: "mock", or remove mock`, "has no effect with engine %q", c.Engine)
	}
	for _, f := range [][2]string{{"mock.ttft", c.Mock.TTFT}, {"mock.perPrompt", c.Mock.PerPrompt}, {"mock.itl", c.Mock.ITL}} {
		field, v := f[0], f[1]
		if v == "" {
			continue
		}
		if d, err := time.ParseDuration(v); err != nil || d < 0 {
			add("bad-value", field, `write a duration as "20ms"`, "%q is not a duration of zero or more", v)
		}
	}
	return l
}

// contextOf returns the longest sequence of the node's model in tokens, and who says so; 0 where nobody does.
func contextOf(s kind.Site) (int, string) {
	if m := s.Graph.Models[s.Node.Model]; m != nil && m.Context > 0 {
		return m.Context, fmt.Sprintf("models.%s.context", s.Node.Model)
	}
	if s.Facts != nil && s.Facts.Context > 0 {
		return s.Facts.Context, "the model's own context"
	}
	return 0, ""
}

// Contract is what a node says about the edges at its data port.
func Contract(c engine.Config, port string) []kind.Term {
	if port != "kv" {
		return nil
	}
	terms := []kind.Term{{Name: "engine", Field: "engine", Values: []string{c.Engine}}}
	if c.Engine == "mock" && c.Mock != nil && c.Mock.HandOff != "" {
		terms = append(terms, kind.Term{Name: "hand-off mode", Field: "mock.handOff", Values: []string{string(c.Mock.HandOff)}})
	}
	return terms
}
