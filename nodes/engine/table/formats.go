package table

import (
	"maps"
	"slices"
	"strings"
)

// A format is how models of some families write tool calls or reasoning. Engines have different names for the parser of one format:
// "hermes" in vLLM is "qwen25" in SGLang. The names here are those that a graph may use; the first is ours. The names of engines are facts
// of their registries (see scripts/engines); which are one format is known from their documentation and from the parsers' classes.
var formats = map[Kind]map[string][]string{
	Tools: {
		"hermes":        {"qwen25", "qwen", "qwen3_json"}, // <tool_call>{json}</tool_call>
		"llama3_json":   {"llama3", "llama4_json"},        // a bare JSON object, or after <|python_tag|>
		"pythonic":      {"llama4_pythonic", "lfm2"},      // [f(a=1)]
		"mistral":       {},                               // [TOOL_CALLS][…]
		"phi4":          {"phi4_mini_json"},               // functools[…]
		"harmony":       {"openai", "gpt_oss"},            // <|channel|>commentary to=functions.x
		"deepseek_v3":   {"deepseekv3"},
		"deepseek_v3_1": {"deepseek_v31", "deepseekv31"},
		"deepseek_v3_2": {"deepseek_v32", "deepseekv32"},
		"deepseek_v4":   {"deepseekv4"},
		"deepseek_v4_1": {"deepseek_v41", "deepseekv41"},
		"qwen3_coder":   {"qwen3_xml", "nemotron_nano"}, // <tool_call><function=n><parameter=k>
		"nemotron_deci": {},
		"jamba":         {},
		"minimax_m2":    {},
		"minimax_m3":    {"minimax_m3_nom"},
		"glm45":         {"glm"},
		"glm47":         {},
		"kimi_k2":       {},
		"kimi_k3":       {},
		"gemma4":        {},
		"functiongemma": {},
		"granite":       {},
		"inkling":       {},
		"apertus":       {"apertus2509"},
		"ernie45":       {},
		"hunyuan_a13b":  {"hunyuan"},
		"internlm2":     {"internlm"},
		"longcat":       {},
		"muse_glimmer":  {},
		"olmo3":         {},
		"seed_oss":      {},
		"step3":         {},
		"step3p5":       {},
		"xlam":          {},
		"default":       {},
	},
	Reasoning: {
		"deepseek_r1":          {}, // …</think>, the beginning is in the prompt
		"deepseek_v3":          {"deepseek_v3_1", "deepseek_v3_2"},
		"deepseek_v4":          {},
		"basic":                {}, // <think>…</think>
		"qwen3":                {"qwen3_thinking"},
		"gpt_oss":              {"openai_gptoss", "harmony"},
		"nemotron_deci":        {},
		"nemotron_nano":        {"nemotron3", "nemotron_3", "nemotron_v3"},
		"kimi":                 {},
		"kimi_k2":              {},
		"kimi_k25":             {},
		"kimi_k3":              {},
		"step3":                {},
		"mistral":              {},
		"granite":              {},
		"glm45":                {"glm47"},
		"minimax_m2":           {"minimax"},
		"minimax_m3":           {},
		"minimax_append_think": {"minimax_m2_append_think"},
		"gemma4":               {},
		"inkling":              {},
		"ernie45":              {},
		"hunyuan":              {"hunyuan_a13b"},
		"muse_glimmer":         {},
		"olmo3":                {},
		"seed_oss":             {},
		"identity":             {}, // all is content
	},
}

// open are parsers of engines that follow the model, whatever it is.
var open = map[string]bool{"auto": true, "hf": true, "response_template": true, "default": true, "basic": true, "identity": true}

// plainName is a parser's name without what engines write differently.
func plainName(name string) string { return strings.ReplaceAll(strings.ToLower(name), "-", "_") }

// Format returns our name of the format that a parser reads, whatever engine the parser's name is of, and whether it is known.
func Format(k Kind, parser string) (string, bool) {
	p := plainName(parser)
	if _, ok := formats[k][p]; ok {
		return p, true
	}
	for name, others := range formats[k] {
		if slices.Contains(others, p) {
			return name, true
		}
	}
	return "", false
}

// Formats returns our names of the formats of a kind, sorted.
func Formats(k Kind) []string { return slices.Sorted(maps.Keys(formats[k])) }
