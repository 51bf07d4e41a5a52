package table

import (
	"regexp"
	"slices"
	"strings"
	"sync"
)

// Family is a family of models that speak the same formats.
type Family struct {
	Name string // "qwen2.5"
	// Tools and Reasoning are the formats that its models write, by our names. Nil: not known. Empty: none, as in models that do not think.
	Tools, Reasoning []string

	stated *regexp.Regexp // nil: none; of what an author may call the family, without hyphens, underscores, dots and blanks
	named  *regexp.Regexp // nil: none; of a model's name, in lower case, with hyphens for blanks and without the organisation
}

// families are those whose formats are known for certain from their authors' model cards and the engines' documentation. What is trained
// further may speak otherwise and has another name: a pattern holds a name from its beginning.
var families = sync.OnceValue(func() []Family {
	return []Family{
		{Name: "llama3", stated: re(`llama3[0-3]?`), named: re(`(meta-)?llama-?3(\.[1-3])?-[0-9].*instruct.*`), Tools: list("llama3_json", "pythonic"), Reasoning: list()},
		{Name: "llama4", stated: re(`llama4`), named: re(`llama-4-.*`), Tools: list("pythonic", "llama3_json"), Reasoning: list()},
		{Name: "qwen2.5", stated: re(`qwen2(5)?`), named: re(`qwen2(\.5)?-.*`), Tools: list("hermes"), Reasoning: list()},
		{Name: "qwq", stated: re(`qwq`), named: re(`qwq-.*`), Tools: list("hermes"), Reasoning: list("deepseek_r1", "qwen3")},
		// An author may mean the coders of the family, too; the name of a model tells which it is.
		{Name: "qwen3", stated: re(`qwen3`), Tools: list("hermes", "qwen3_coder"), Reasoning: list("qwen3", "deepseek_r1")},
		{Name: "qwen3", named: re(`qwen3-([0-9]|next|vl|omni).*`), Tools: list("hermes"), Reasoning: list("qwen3", "deepseek_r1")},
		{Name: "qwen3-coder", stated: re(`qwen3coder`), named: re(`qwen3-coder-.*`), Tools: list("qwen3_coder"), Reasoning: list()},
		{Name: "qwen3.5", stated: re(`qwen3[56]`), named: re(`qwen3\.[56]-.*`), Tools: list("qwen3_coder"), Reasoning: list("qwen3")},
		{Name: "deepseek-r1", stated: re(`deepseekr1`), named: re(`deepseek-r1(-0528|-zero)?`), Tools: list("deepseek_v3"), Reasoning: list("deepseek_r1")},
		{Name: "deepseek-r1-distill", stated: re(`deepseekr1distill.*`), named: re(`deepseek-r1-(0528-qwen3|distill)-.*`), Reasoning: list("deepseek_r1", "qwen3")},
		{Name: "deepseek-v3", stated: re(`deepseekv3`), named: re(`deepseek-v3(-0324)?`), Tools: list("deepseek_v3")},
		{Name: "deepseek-v3.1", stated: re(`deepseekv31`), named: re(`deepseek-v3\.1(-terminus)?`), Tools: list("deepseek_v3_1"), Reasoning: list("deepseek_v3", "deepseek_r1")},
		{Name: "deepseek-v3.2", stated: re(`deepseekv32`), named: re(`deepseek-v3\.2.*`), Tools: list("deepseek_v3_2", "deepseek_v3_1"), Reasoning: list("deepseek_v3", "deepseek_r1")},
		{Name: "gpt-oss", stated: re(`gptoss`), named: re(`gpt-oss-.*`), Tools: list("harmony"), Reasoning: list("gpt_oss")},
		{Name: "mistral", stated: re(`mistral`), named: re(`(mistral|ministral|mixtral)-.*instruct.*|devstral-.*`), Tools: list("mistral"), Reasoning: list("mistral")},
		{Name: "hermes", stated: re(`hermes[23]?(pro)?`), named: re(`hermes-[23]-.*`), Tools: list("hermes")},
		{Name: "smollm2", stated: re(`smollm2?`), named: re(`smollm2?-.*`), Reasoning: list()},
		{Name: "gemma", stated: re(`gemma[23]?`), named: re(`gemma-[23]-.*`), Reasoning: list()},
		{Name: "gemma4", stated: re(`gemma4`), named: re(`gemma-4-.*`), Tools: list("gemma4"), Reasoning: list("gemma4")},
		{Name: "glm4.5", stated: re(`glm4[56]`), named: re(`glm-4\.[56](-.*)?`), Tools: list("glm45", "glm47"), Reasoning: list("glm45")},
		{Name: "glm4.7", stated: re(`glm47`), named: re(`glm-4\.7(-.*)?`), Tools: list("glm47", "glm45"), Reasoning: list("glm45")},
		{Name: "kimi-k2", stated: re(`kimik2`), named: re(`kimi-k2-.*`), Tools: list("kimi_k2")},
		{Name: "kimi-k3", stated: re(`kimik3`), named: re(`kimi-k3(-.*)?`), Tools: list("kimi_k3"), Reasoning: list("kimi_k3")},
		{Name: "minimax-m2", stated: re(`minimaxm2`), named: re(`minimax-m2(\.[0-9]+)?(-.*)?`), Tools: list("minimax_m2"), Reasoning: list("minimax_m2", "minimax_append_think")},
		{Name: "phi4-mini", stated: re(`phi4mini`), named: re(`phi-4-mini-instruct`), Tools: list("phi4"), Reasoning: list()},
		{Name: "jamba", stated: re(`jamba`), named: re(`(ai21-)?jamba-.*`), Tools: list("jamba")},
	}
})

func re(pattern string) *regexp.Regexp { return regexp.MustCompile("^(?:" + pattern + ")$") }

func list(names ...string) []string { return append([]string{}, names...) }

var unsaid = strings.NewReplacer("-", "", "_", "", ".", "", " ", "")

// Stated returns the family that an author names, or nil where that is not known.
func Stated(family string) *Family {
	plain := unsaid.Replace(strings.ToLower(family))
	for _, f := range families() {
		if f.stated != nil && f.stated.MatchString(plain) {
			return &f
		}
	}
	return nil
}

// Named returns the family that a model's name tells, as "Qwen/Qwen2.5-7B-Instruct" or "Qwen2.5 7B Instruct"; nil where it tells none.
func Named(model string) *Family {
	name := strings.ToLower(model)
	name = name[strings.LastIndexByte(name, '/')+1:]
	name = strings.ReplaceAll(strings.TrimSuffix(name, ".gguf"), " ", "-")
	for _, f := range families() {
		if f.named != nil && f.named.MatchString(name) {
			return &f
		}
	}
	return nil
}

// Speaks reports whether models of the family write a format of the kind, by any of the names of its parser. What is not known may be.
func (f *Family) Speaks(k Kind, parser string) bool {
	formats := f.Tools
	if k == Reasoning {
		formats = f.Reasoning
	}
	if formats == nil || open[plainName(parser)] {
		return true
	}
	ours, known := Format(k, parser)
	return !known || slices.Contains(formats, ours)
}
