package check

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/dynamograph/dynamo/graph/diag"
	"github.com/dynamograph/dynamo/graph/kind"
	"github.com/dynamograph/dynamo/nodes/engine"
	"github.com/dynamograph/dynamo/nodes/engine/table"
)

// own are the features of engines that are part of this program. Tool calls and reasoning are found in the text that any engine writes.
var own = map[string][]string{
	"native": {"logprobs", "reasoning", "structured", "tools"},
	"mock":   {"logprobs", "reasoning", "tools"},
}

// off are flags that take a feature away, with the value that does it; "no-" before a switch counts as false.
var off = map[string][]struct{ flag, value, feature string }{
	"vllm": {
		{"enable-lora", "false", "lora"}, {"disable-lora", "true", "lora"}, {"max-logprobs", "0", "logprobs"}, {"language-model-only", "true", "images"},
		{"language-model-only", "true", "audio"},
	},
	"sglang": {
		{"enable-lora", "false", "lora"}, {"grammar-backend", "none", "structured"}, {"enable-multimodal", "false", "images"},
		{"enable-multimodal", "false", "audio"}, {"is-embedding", "true", "tools"}, {"is-embedding", "true", "structured"},
		{"is-embedding", "true", "logprobs"},
	},
	"llamacpp": {{"no-jinja", "true", "tools"}, {"jinja", "false", "tools"}, {"no-mmproj", "true", "images"}, {"no-mmproj", "true", "audio"}},
}

// Features are what clients may ask of a model behind an engine of this config; known is false where nothing is known of its release.
func Features(c engine.Config) (have []string, known bool) {
	if f, ok := own[c.Engine]; ok {
		return slices.Clone(f), true
	}
	e := table.Find(c.Engine)
	if e == nil {
		return nil, false
	}
	r, ok := e.Release(c.Version)
	if !ok {
		return nil, false
	}
	for _, f := range r.Names(table.Features) {
		if _, clients := kind.Features[f]; clients {
			have = append(have, f)
		}
	}
	return slices.DeleteFunc(have, func(f string) bool { return taken(c, f) != "" }), true
}

// taken returns the flag that takes a feature away, as the author writes it, or "".
func taken(c engine.Config, feature string) string {
	for name, v := range c.Flags {
		bare, said := table.Bare(name), shownPlain(v)
		for _, o := range off[c.Engine] {
			negated := "no-"+o.flag == bare && o.value == "false" && said == "true"
			if o.feature == feature && (bare == o.flag && said == o.value || negated) {
				return name
			}
		}
	}
	return ""
}

// features finds what clients of the model may rely on and the engine does not have.
func (k *checker) features() {
	if k.model == nil {
		return
	}
	have, known := Features(k.c)
	for _, want := range k.model.Features {
		k.feature(want, "features", fmt.Sprintf("models.%s.features has %q", k.s.Node.Model, want), have, known)
	}
	if len(k.model.Adapters) > 0 && !slices.Contains(k.model.Features, "lora") {
		k.feature("lora", "adapters", fmt.Sprintf("models.%s has adapters", k.s.Node.Model), have, known)
	}
	k.ranks()
}

func (k *checker) feature(want, field, why string, have []string, known bool) {
	related := k.ofModel(field, "%s", why)
	if flag := taken(k.c, want); flag != "" {
		d := k.add(diag.Error, "unsupported-feature", "flags."+flag, "remove one of them", "it takes %q (%s) away, but %s", want, kind.Features[want], why)
		d.Related = related
		return
	}
	if !known || slices.Contains(have, want) {
		return
	}
	d := k.add(diag.Error, "unsupported-feature", "engine", k.withFeature(want), "%s does not have %q (%s), but %s", k.title, want, kind.Features[want], why)
	d.Related = related
}

// withFeature names the engines that have a feature.
func (k *checker) withFeature(want string) string {
	var names []string
	for _, n := range slices.Concat(engine.Foreign(), []string{"native"}) {
		has := slices.Contains(own[n], want)
		if e := table.Find(n); e != nil {
			has = e.Newest().Has(table.Features, want)
		}
		if has && n != k.c.Engine {
			names = append(names, n)
		}
	}
	if len(names) == 0 {
		return "remove it"
	}
	return "remove it, or use an engine that has it: " + strings.Join(names, ", ")
}

// ranks finds adapters beyond the rank for which a flag makes room.
func (k *checker) ranks() {
	v, name, ok := k.flag("max-lora-rank")
	most, err := strconv.Atoi(shownPlain(v))
	if !ok || err != nil {
		return
	}
	for _, a := range sorted(k.model.Adapters) {
		if a.Rank <= most {
			continue
		}
		d := k.add(diag.Error, "unsupported-feature", "flags."+name, fmt.Sprintf("raise it to %d", a.Rank),
			"%d, but adapter %q of the model has rank %d", most, a.Name, a.Rank)
		d.Related = k.ofModel("adapters."+a.Name+".rank", "its rank is %d", a.Rank)
	}
}
