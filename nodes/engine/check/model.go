package check

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/dynamograph/dynamo/graph/diag"
	"github.com/dynamograph/dynamo/nodes/engine"
)

// said are flags that say of the model what the graph says, by engine.
var said = map[string]struct{ context, source, name string }{
	"vllm":     {context: "max-model-len", source: "model", name: "served-model-name"},
	"sglang":   {context: "context-length", source: "model-path", name: "served-model-name"},
	"llamacpp": {source: "model", name: "alias"},
}

// roles are the values of SGLang's disaggregation-mode, by the kind of the node.
var roles = map[string]string{"prefill": "prefill", "decode": "decode", "worker": "null"}

// says finds flags that say of the node, of its model or of its hand-off otherwise than the graph. What a field of the node's own config says
// is found elsewhere.
func (k *checker) says() {
	conflict := func(flag, hint, format string, args ...any) *diag.Diagnostic {
		return k.add(diag.Error, "conflict", "flags."+flag, hint, format, args...)
	}
	if k.model != nil {
		flags := said[k.c.Engine]
		if v, name, ok := k.flag(flags.context); ok && k.model.Context > 0 {
			if n := tokens(v); n > 0 && n != k.model.Context {
				d := conflict(name, "keep one of them", "%d tokens, but models.%s.context is %d", n, k.s.Node.Model, k.model.Context)
				d.Related = k.ofModel("context", "models.%s.context is %d", k.s.Node.Model, k.model.Context)
			}
		}
		if v, name, ok := k.flag(flags.source); ok && !k.isSource(shownPlain(v)) {
			d := conflict(name, "remove it: the node serves models."+k.s.Node.Model, "%s, but the model is %q", shown(v), strings.Join(k.model.Sources, ", "))
			d.Related = k.ofModel("source", "models.%s.source is this", k.s.Node.Model)
		}
		if v, name, ok := k.flag(flags.name); ok && len(k.model.Names) > 0 && !slices.Contains(k.model.Names, shownPlain(v)) {
			d := conflict(name, "remove it: the names of a model belong to the graph", "%s, but clients call the model %s", shown(v), diag.Or(diag.Quote(k.model.Names)))
			d.Related = k.ofModel("names", "models.%s.names are these", k.s.Node.Model)
		}
	}
	if v, name, ok := k.flag("disaggregation-mode"); ok && k.c.Engine == "sglang" {
		if want := roles[k.s.Node.Kind]; want != "" && shownPlain(v) != want {
			conflict(name, "remove it: the kind of the node says it", "%s, but the node is a %s", shown(v), k.s.Node.Kind)
		}
	}
	if c := k.c.KV.Connector; c != "" && k.c.Engine == "vllm" {
		t, found, err := engine.TransferOf(k.c.Flags)
		names := connectors["vllm"][c]
		if found && err == nil && t.Connector != "" && names != nil && t.Connector != "MultiConnector" && !slices.ContainsFunc(names, func(n string) bool { return strings.HasPrefix(t.Connector, strings.TrimSuffix(n, "Connector")) }) {
			_, name, _ := k.flag("kv-transfer-config")
			d := conflict(name, "keep one of them", "connector %q, but kv.connector is %q", t.Connector, c)
			d.Related = k.node("kv.connector", "kv.connector is %q", c)
		}
	}
}

// format finds files that are not GGUF, by their names, for engines that read nothing else.
func (k *checker) format() {
	if k.model == nil || len(k.model.Sources) == 0 || !slices.Contains([]string{"native", "llamacpp"}, k.c.Engine) {
		return
	}
	file := func(source string) string { // without what may be secret
		source, _, _ = strings.Cut(source, "#")
		source, _, _ = strings.Cut(source, "?")
		return source[strings.LastIndexByte(source, '/')+1:]
	}
	for _, s := range k.model.Sources {
		if !slices.ContainsFunc([]string{".safetensors", ".json", ".pt", ".pth"}, func(end string) bool { return strings.HasSuffix(file(s), end) }) {
			return
		}
	}
	d := k.addModel(diag.Error, "bad-value", "source", `name a GGUF file of the model, or another engine for the node: "vllm", "sglang" or "trtllm"`,
		"%q is not a GGUF file, and %s reads no other", file(k.model.Sources[0]), k.title)
	d.Related = k.node("engine", "%s has the engine %q", k.s.Node.Name, k.c.Engine)
	if d.Related == nil {
		d.Related = []diag.Related{{Pos: k.s.Node.Pos, Len: len(k.s.Node.Name), Msg: fmt.Sprintf("%s has no engine of its own: it is %q", k.s.Node.Name, k.c.Engine)}}
	}
}

// isSource reports whether a path or a repository is one of the model's sources, or may be what becomes of it on the engine's machine.
func (k *checker) isSource(v string) bool {
	last := v[strings.LastIndexByte(v, '/')+1:]
	return slices.ContainsFunc(k.model.Sources, func(s string) bool {
		return strings.Contains(s, v) || last != "" && strings.HasSuffix(s, "/"+last)
	})
}

// tokens reads a number of tokens as engines do: "32k" is 32,000 and "32K" is 32,768; 0 where it is none.
func tokens(v any) int {
	s := shownPlain(v)
	unit := 1.0
	if s != "" {
		if i := strings.IndexByte("kKmM", s[len(s)-1]); i >= 0 {
			unit, s = []float64{1e3, 1 << 10, 1e6, 1 << 20}[i], s[:len(s)-1]
		}
	}
	f, err := strconv.ParseFloat(s, 64)
	if err != nil || f <= 0 || f*unit > math.MaxInt32 {
		return 0
	}
	return int(f * unit)
}
