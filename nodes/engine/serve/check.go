package serve

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/dynamograph/dynamo/graph"
	"github.com/dynamograph/dynamo/graph/diag"
	"github.com/dynamograph/dynamo/graph/kind"
	"github.com/dynamograph/dynamo/nodes/engine"
	"github.com/dynamograph/dynamo/nodes/engine/check"
)

// Check finds what a schema cannot say about an engine's config.
func Check(c engine.Config, s kind.Site) diag.List {
	k := &checker{c: c, s: s}
	if names := slices.Sorted(slices.Values(append(engine.Names(), engine.Foreign()...))); !slices.Contains(names, c.Engine) {
		k.add("bad-value", "engine", diag.Suggest(c.Engine, names), "unknown engine %q; known: %s", c.Engine, strings.Join(names, ", "))
		return k.list
	}
	k.noEffect()
	k.own()
	k.steps()
	k.flags()
	k.device()
	k.edges()
	k.sizes()
	k.parallel()
	k.tiers()
	k.list = append(k.list, check.Engine(c, s)...)
	if c.Mock == nil || c.Engine != "mock" {
		return k.list
	}
	for _, f := range [][2]string{{"mock.ttft", c.Mock.TTFT}, {"mock.perPrompt", c.Mock.PerPrompt}, {"mock.itl", c.Mock.ITL}} {
		if f[1] == "" {
			continue
		}
		if d, err := time.ParseDuration(f[1]); err != nil || d < 0 {
			k.add("bad-value", f[0], `write a duration as "20ms"`, "%q is not a duration of zero or more", f[1])
		}
	}
	return k.list
}

type checker struct {
	c    engine.Config
	s    kind.Site
	list diag.List
}

// add appends a finding at a field; it returns it, until the next one.
func (k *checker) add(code, field, hint, format string, args ...any) *diag.Diagnostic {
	k.list.Add(k.s.Finding(code, field, hint, format, args...))
	return &k.list[len(k.list)-1]
}

// effect says with which engines a field has an effect; the others refuse it. What is not here has an effect with all.
var effect = []struct {
	field   string
	engines []string
	instead string // what to do with the others
}{
	{"version", engine.Foreign(), "the engine is part of this program"},
	{"flags", engine.Foreign(), "the engine is part of this program and has fields only"},
	{"device", engine.Foreign(), "engines of ours compute on the CPU"},
	{"tp", []string{"vllm", "sglang", "trtllm"}, ""},
	{"pp", []string{"vllm", "sglang", "trtllm"}, ""},
	{"dp", []string{"vllm", "sglang", "trtllm"}, ""},
	{"dtype", []string{"vllm", "sglang", "trtllm"}, "the model's file says it"},
	{"numerics", engine.Foreign(), "the engine knows its own"},
	{"threads", []string{"native", "llamacpp"}, ""},
	{"batch.tokens", append(engine.Foreign(), "native"), "its steps have no bound"},
	{"kv.block", []string{"native", "mock", "vllm", "sglang", "trtllm"}, "its cache has no blocks"},
	{"kv.dtype", []string{"native", "vllm", "sglang", "trtllm", "llamacpp"}, ""},
	{"kv.layout", []string{"vllm", "sglang", "trtllm"}, ""},
	{"kv.hash", []string{"vllm", "sglang", "trtllm"}, ""},
	{"kv.seed", []string{"vllm", "sglang", "trtllm"}, ""},
	{"kv.connector", []string{"vllm", "sglang", "trtllm"}, ""},
	{"kv.transports", []string{"vllm", "sglang", "trtllm"}, "set the edge's transport"},
	{"kv.handOff", []string{"native", "vllm", "sglang", "trtllm"}, `with engine "mock" it is mock.handOff`},
	{"kv.offload", []string{"vllm", "sglang", "trtllm"}, ""},
	{"kv.disk", []string{"vllm", "sglang", "trtllm"}, ""},
	{"mock", []string{"mock"}, `set engine: "mock", or remove mock`},
}

// noEffect finds fields that the author set and the engine does not have.
func (k *checker) noEffect() {
	for _, e := range effect {
		if _, set := k.s.Node.Fields[e.field]; !set && !k.under(e.field) || slices.Contains(e.engines, k.c.Engine) {
			continue
		}
		if e.field == "batch.tokens" && k.c.Batch.Tokens == engine.DefaultConfig().Batch.Tokens {
			continue // the default, as a graph says it that was exported with its defaults
		}
		hint := e.instead
		if hint == "" {
			hint = "remove it; it is for " + diag.Or(diag.Quote(e.engines))
		}
		k.add("no-effect", e.field, hint, "has no effect with engine %q", k.c.Engine)
	}
}

// under reports whether the author set a field below a map.
func (k *checker) under(field string) bool {
	for f := range k.s.Node.Fields {
		if strings.HasPrefix(f, field+".") {
			return true
		}
	}
	return field == "mock" && k.c.Mock != nil
}

// own finds what engines of ours cannot be.
func (k *checker) own() {
	if engine.IsForeign(k.c.Engine) {
		return
	}
	if n := k.c.KV.Block; n != 0 && n != BlockTokens {
		k.add("bad-value", "kv.block", fmt.Sprintf("write %d, or leave it out", BlockTokens), "%d: engine %q has blocks of %d tokens", n, k.c.Engine, BlockTokens)
	}
	if k.c.Engine == "native" && k.c.Batch.Seqs > 0 && k.c.Batch.Tokens < k.c.Batch.Seqs {
		field := "batch.tokens"
		if _, set := k.s.Node.Fields[field]; !set {
			field = "batch.seqs"
		}
		k.add("bad-value", field, "raise batch.tokens, or lower batch.seqs",
			"a step of %d tokens has no room for %d sequences: each takes one", k.c.Batch.Tokens, k.c.Batch.Seqs)
	}
	if k.c.Engine != "native" {
		return
	}
	if t := k.c.KV.DType; t != "" && t != "f16" && t != "auto" {
		k.add("bad-value", "kv.dtype", `write "f16", or leave it out`, `%q: engine "native" keeps keys and values as f16`, t)
	}
	if m := k.c.KV.HandOff; m != "" && m != "after" {
		k.add("bad-value", "kv.handOff", `write "after", or leave it out`, `%q: engine "native" hands over after prefill`, m)
	}
}

// steps finds a step of vLLM without room for each sequence: it ends at its start. A size that is not said is fitted to the rest.
func (k *checker) steps() {
	r, from, _ := k.c.Resolve()
	if k.c.Engine != "vllm" || r.Batch.Tokens == 0 || r.Batch.Tokens >= r.Batch.Seqs {
		return
	}
	tokens, seqs := cmp.Or(from["batch.tokens"], "batch.tokens"), cmp.Or(from["batch.seqs"], "batch.seqs")
	d := k.add("bad-value", tokens, fmt.Sprintf("raise it to %d or more, or lower %s", r.Batch.Seqs, seqs),
		"a step of %d tokens has no room for %d sequences: each takes one, and vLLM does not start so", r.Batch.Tokens, r.Batch.Seqs)
	if pos, ok := k.s.Node.Fields[seqs]; ok {
		d.Related = append(d.Related, diag.Related{Pos: pos, Msg: fmt.Sprintf("nodes.%s.%s is %d", k.s.Node.Name, seqs, r.Batch.Seqs)})
	}
}

// flags finds options that say otherwise than fields, and options that are no options.
func (k *checker) flags() {
	_, _, conflicts := k.c.Resolve()
	for _, x := range conflicts {
		d := k.add("conflict", "flags."+x.Flag, "keep one of them", "%s, but %s is %s", x.FlagSaid, x.Field, x.Said)
		if pos, ok := k.s.Node.Fields[x.Field]; ok {
			d.Related = append(d.Related, diag.Related{Pos: pos, Msg: fmt.Sprintf("nodes.%s.%s is %s", k.s.Node.Name, x.Field, x.Said)})
		}
	}
	for _, name := range slices.Sorted(maps.Keys(k.c.Flags)) {
		if strings.HasPrefix(name, "-") {
			k.add("bad-value", "flags."+name, fmt.Sprintf("write %q", strings.TrimLeft(name, "-")), "options are written without hyphens in front")
		}
	}
	if k.c.Engine == "vllm" {
		k.transfer()
	}
}

// transfer compares vLLM's own option with the node's place in the graph.
func (k *checker) transfer() {
	t, found, err := engine.TransferOf(k.c.Flags)
	if !found {
		return
	}
	const field = "flags.kv-transfer-config"
	if err != nil {
		k.add("bad-value", field, `write it as JSON in a string: "{\"kv_connector\": \"NixlConnector\", \"kv_role\": \"kv_both\"}"`, "%v", err)
		return
	}
	gives, takes := k.joined("kv", kind.Out), k.joined("kv", kind.In)
	want := ""
	switch {
	case gives && !takes && t.Role == "kv_consumer":
		want = "kv_producer"
	case takes && !gives && t.Role == "kv_producer":
		want = "kv_consumer"
	}
	if want != "" {
		k.add("contract-mismatch", field, fmt.Sprintf("write %q", want), "kv_role %q, but %s", t.Role,
			map[string]string{"kv_producer": "its edges lead KV away from it", "kv_consumer": "its edges lead KV to it"}[want])
	}
}

// joined reports whether an edge of a type leaves or enters the node.
func (k *checker) joined(typ string, dir kind.Dir) bool {
	return slices.ContainsFunc(k.s.Graph.Edges, func(e *graph.Edge) bool {
		end := e.From
		if dir == kind.In {
			end = e.To
		}
		return e.Type == typ && end.Node == k.s.Node.Name
	})
}

// device finds a class that the graph does not have.
func (k *checker) device() {
	d := k.c.Device
	if d == "" || !engine.IsForeign(k.c.Engine) || k.s.Graph.Devices[d] != nil {
		return
	}
	known := slices.Sorted(maps.Keys(k.s.Graph.Devices))
	hint := diag.Suggest(d, known)
	if hint == "" {
		hint = fmt.Sprintf(`add devices: %s: {memory: "80Gi", count: 8}, with what it has`, d)
	}
	f := k.add("unknown-device", "device", hint, "no class %q of accelerators", d)
	if len(known) > 0 {
		f.Notes = []string{"devices: " + strings.Join(known, ", ")}
	}
}

// edges finds edges that the engine makes nothing of.
func (k *checker) edges() {
	for _, e := range k.s.Graph.Edges {
		at := func(code, format string, args ...any) {
			k.list.Add(diag.Diagnostic{
				Code: code, Pos: e.Pos, Len: e.Len, Path: fmt.Sprintf("edges.%q", e), Msg: fmt.Sprintf("edge %q: ", e) + fmt.Sprintf(format, args...),
				Hint: "remove the edge, or use another engine",
			})
		}
		switch {
		case e.Type == "media" && e.To.Node == k.s.Node.Name && slices.Contains([]string{"native", "mock"}, k.c.Engine):
			at("no-effect", "engine %q of %s takes text only", k.c.Engine, k.s.Node.Name)
		case e.Type == "tier" && e.From.Node == k.s.Node.Name && slices.Contains([]string{"native", "mock", "llamacpp"}, k.c.Engine):
			at("no-effect", "engine %q of %s keeps its KV to itself", k.c.Engine, k.s.Node.Name)
		case e.Type == "kv" && e.From.Node == k.s.Node.Name && k.c.Engine == "llamacpp":
			at("unsupported-feature", "engine %q of %s has no connector: it hands no KV to another", k.c.Engine, k.s.Node.Name)
			k.list[len(k.list)-1].Hint = `use kind "worker" for both, or an engine that has connectors: ` + diag.Or(diag.Quote([]string{"native", "vllm", "sglang", "trtllm"}))
		}
	}
}

// sizes finds caches without room.
func (k *checker) sizes() {
	if context, from := k.contextOf(); k.c.KV.Tokens > 0 && k.c.KV.Tokens < context {
		k.add("kv-too-small", "kv.tokens", fmt.Sprintf("raise it to %d, or set models.%s.context to %d", context, k.s.Node.Model, k.c.KV.Tokens),
			"%d tokens, but one sequence may have %d: %s", k.c.KV.Tokens, context, from)
	}
	offload, err := graph.ParseSize(k.c.KV.Offload)
	disk, err2 := graph.ParseSize(k.c.KV.Disk)
	if err == nil && err2 == nil && disk < offload {
		k.add("tier-order", "kv.disk", "make the disk at least as large as the memory above it", "%s, but kv.offload above it is %s", k.c.KV.Disk, k.c.KV.Offload)
	}
}

// contextOf returns the longest sequence that the node must be able to keep in tokens, and who says so; 0 where nobody does. Of the engines
// that are not ours only vLLM insists on the model's own length: the others serve what their cache has room for.
func (k *checker) contextOf() (int, string) {
	if m := k.s.Graph.Models[k.s.Node.Model]; m != nil && m.Context > 0 {
		return m.Context, fmt.Sprintf("models.%s.context", k.s.Node.Model)
	}
	if k.s.Facts == nil || engine.IsForeign(k.c.Engine) && k.c.Engine != "vllm" {
		return 0, ""
	}
	if n := contextFlag(k.c, k.s.Facts.Context); n != k.s.Facts.Context {
		return n, "flags.max-model-len"
	}
	return k.s.Facts.Context, "the model's own context"
}
