// Package check holds what a graph says of an engine against what the engine's release takes and has: its flags, parsers, KV connectors and
// features, as package table knows them; and the parsers of a model against the formats that its family speaks. It finds only what is
// certain: of a release that is not known nothing is called wrong. It is pure.
package check

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/dynamograph/dynamo/graph"
	"github.com/dynamograph/dynamo/graph/diag"
	"github.com/dynamograph/dynamo/graph/kind"
	"github.com/dynamograph/dynamo/nodes/engine"
	"github.com/dynamograph/dynamo/nodes/engine/table"
)

// titles are engines as their authors call them.
var titles = map[string]string{"vllm": "vLLM", "sglang": "SGLang", "trtllm": "TensorRT-LLM", "llamacpp": "llama.cpp"}

// Engine finds what a node says of its engine and the engine's release does not take or have, and what does not fit the node's model.
func Engine(c engine.Config, s kind.Site) diag.List {
	k := &checker{c: c, s: s, model: s.Graph.Models[s.Node.Model], title: titles[c.Engine]}
	if k.title == "" {
		k.title = fmt.Sprintf("engine %q", c.Engine)
	}
	if e := table.Find(c.Engine); e != nil {
		k.engine, k.release = e, e.Ever()
	}
	if engine.IsForeign(c.Engine) {
		k.version()
		k.flags()
		k.kv()
		k.says()
	}
	k.format()
	k.parsers()
	k.idle()
	k.features()
	return k.list
}

type checker struct {
	c     engine.Config
	s     kind.Site
	model *graph.Model // nil where the node has none
	title string       // "vLLM 0.32.0"

	engine  *table.Engine // nil where nothing is known
	release table.Release // of the node; where its version is not said or not known, what any release has
	known   bool          // the release is

	list diag.List
}

// add appends a finding at a field of the node and returns it, until the next one.
func (k *checker) add(severity diag.Severity, code, field, hint, format string, args ...any) *diag.Diagnostic {
	path := "nodes." + k.s.Node.Name + "." + field
	return k.at(severity, code, path, k.s.Field(field), label(field), hint, format, args...)
}

// addModel does the same at a field of the node's model.
func (k *checker) addModel(severity diag.Severity, code, field, hint, format string, args ...any) *diag.Diagnostic {
	path := "models." + k.s.Node.Model + "." + field
	return k.at(severity, code, path, k.s.Graph.Field(path), label(field), hint, format, args...)
}

func (k *checker) at(severity diag.Severity, code, path string, pos diag.Pos, n int, hint, format string, args ...any) *diag.Diagnostic {
	k.list.Add(diag.Diagnostic{
		Severity: severity, Code: code, Pos: pos, Len: n, Path: path, Msg: path + ": " + fmt.Sprintf(format, args...), Hint: hint,
	})
	return &k.list[len(k.list)-1]
}

// label is how many bytes of a field's name stand at its place.
func label(field string) int {
	if name, ok := strings.CutPrefix(field, "flags."); ok {
		return len(name)
	}
	return len(field[strings.LastIndexByte(field, '.')+1:])
}

// node points at a field of the node, as the second place of a finding; nothing where the author did not set it.
func (k *checker) node(field, format string, args ...any) []diag.Related {
	pos, ok := k.s.Node.Fields[field]
	if !ok {
		return nil
	}
	return []diag.Related{{Pos: pos, Len: label(field), Msg: fmt.Sprintf(format, args...)}}
}

// ofModel points at a field of the model.
func (k *checker) ofModel(field, format string, args ...any) []diag.Related {
	pos, ok := k.s.Graph.Fields["models."+k.s.Node.Model+"."+field]
	if !ok {
		return nil
	}
	return []diag.Related{{Pos: pos, Len: label(field), Msg: fmt.Sprintf(format, args...)}}
}

// version finds the node's release in the table. What is not there is not checked, and said so where the author would expect it.
func (k *checker) version() {
	v := k.c.Version
	if k.engine == nil {
		if v != "" || len(k.c.Flags) > 0 {
			field := "version"
			if v == "" {
				field = "engine"
			}
			k.add(diag.Warning, "unchecked-version", field, "compare its flags and parsers with the engine's own documentation",
				"%s: unchecked: its flags and parsers are not known here", strings.TrimSpace(k.title+" "+v))
		}
		return
	}
	if v == "" {
		return // the flags are held against those of all releases
	}
	r, ok := k.engine.Release(v)
	if !ok {
		oldest, newest := k.engine.Releases[0].Version, k.engine.Newest().Version
		hint := fmt.Sprintf("known are %d releases from %s to %s", len(k.engine.Releases), oldest, newest)
		if near := k.near(v); near != "" {
			hint = fmt.Sprintf("did you mean %q? %s", near, hint)
		}
		k.add(diag.Warning, "unchecked-version", "version", hint, "%s %s: unchecked: its flags and parsers are not known here", k.title, v)
		return
	}
	k.release, k.known = r, true
	k.title += " " + r.Version
}

// near is the known version with the same numbers up to the last point, if there is just one: 0.32.1 is near 0.32.0.
func (k *checker) near(v string) string {
	cut := strings.LastIndexByte(v, '.')
	if cut < 0 {
		return ""
	}
	near := ""
	for _, r := range k.engine.Releases {
		if strings.HasPrefix(r.Version, strings.TrimPrefix(v[:cut+1], "v")) && strings.Count(r.Version, ".") == strings.Count(v, ".") {
			if near != "" {
				return ""
			}
			near = r.Version
		}
	}
	return near
}

// severity is how bad it is that the release lacks something: where its version is not said, and no other has it, it is a warning.
func (k *checker) severity() diag.Severity {
	if k.known {
		return diag.Error
	}
	return diag.Warning
}

// unchecked reports whether the author names a release that is not known: it is never called wrong.
func (k *checker) unchecked() bool { return k.engine == nil || !k.known && k.c.Version != "" }

// lacks says that the release does not have something; where its version is not said, that none has.
func (k *checker) lacks(format string, args ...any) string {
	what := fmt.Sprintf(format, args...)
	if k.known {
		return k.title + " has no " + what
	}
	return "no release of " + k.title + " that is known here has a " + what
}

// since says which releases have what the node's lacks: "0.31.0 and later have it".
func since(e *table.Engine, have []string) string {
	if len(have) == 0 {
		return ""
	}
	first, last := have[0], have[len(have)-1]
	at := func(v string) int {
		return slices.IndexFunc(e.Releases, func(r table.Release) bool { return r.Version == v })
	}
	switch {
	case last == e.Newest().Version && len(have) == len(e.Releases)-at(first):
		return fmt.Sprintf("%s and later have it", first)
	case first == e.Releases[0].Version && len(have) == at(last)+1:
		return fmt.Sprintf("the last that had it is %s", last)
	case first == last:
		return fmt.Sprintf("%s has it", first)
	}
	return fmt.Sprintf("%s to %s have it", first, last)
}

// sorted returns a map's values in the order of its keys.
func sorted[V any](m map[string]V) []V {
	out := make([]V, 0, len(m))
	for _, name := range slices.Sorted(maps.Keys(m)) {
		out = append(out, m[name])
	}
	return out
}
