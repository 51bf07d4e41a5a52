package table

import (
	"slices"
	"testing"

	"github.com/dynamograph/dynamo/nodes/text/family"
	"github.com/dynamograph/dynamo/nodes/text/parse"
)

func TestFormat(t *testing.T) {
	for _, tt := range []struct {
		kind         Kind
		parser, want string
	}{
		{Tools, "hermes", "hermes"}, {Tools, "qwen25", "hermes"}, {Tools, "gpt-oss", "harmony"}, {Tools, "openai", "harmony"},
		{Tools, "deepseekv31", "deepseek_v3_1"}, {Tools, "minimax-m2", "minimax_m2"}, {Tools, "hermess", ""},
		{Reasoning, "deepseek-r1", "deepseek_r1"}, {Reasoning, "openai_gptoss", "gpt_oss"}, {Reasoning, "hermes", ""},
	} {
		if got, ok := Format(tt.kind, tt.parser); got != tt.want || ok != (tt.want != "") {
			t.Errorf("%s %s: %q %v, want %q", tt.kind, tt.parser, got, ok, tt.want)
		}
	}
}

// TestFormatNames: no name is of two formats, and all are in their plain form.
func TestFormatNames(t *testing.T) {
	for k, all := range formats {
		seen := map[string]string{}
		for name, others := range all {
			for _, n := range append([]string{name}, others...) {
				if n != plainName(n) {
					t.Errorf("%s %q is not plain", k, n)
				}
				if seen[n] != "" {
					t.Errorf("%s %q is of %s and %s", k, n, seen[n], name)
				}
				seen[n] = name
			}
		}
	}
	for _, c := range family.All() {
		for k, names := range map[Kind][]string{Tools: c.Tools, Reasoning: c.Reasoning} {
			for _, n := range names {
				if _, ok := formats[k][n]; !ok {
					t.Errorf("%s: %s %q is no format", c.Name, k, n)
				}
			}
		}
	}
}

func TestNamed(t *testing.T) {
	for name, want := range map[string]string{
		"meta-llama/Llama-3.1-70B-Instruct":         "llama3",
		"Meta Llama 3.1 8B Instruct":                "llama3",
		"NousResearch/Hermes-3-Llama-3.1-8B":        "hermes",
		"deepseek-ai/DeepSeek-R1-Distill-Llama-8B":  "deepseek-r1-distill",
		"deepseek-ai/DeepSeek-R1-Distill-Qwen-1.5B": "deepseek-r1-distill",
		"deepseek-ai/DeepSeek-R1-0528-Qwen3-8B":     "deepseek-r1-distill",
		"deepseek-ai/DeepSeek-R1":                   "deepseek-r1",
		"deepseek-ai/DeepSeek-V3-0324":              "deepseek-v3",
		"deepseek-ai/DeepSeek-V3.1":                 "deepseek-v3.1",
		"Qwen/Qwen2.5-7B-Instruct":                  "qwen2.5",
		"Qwen/Qwen3-8B":                             "qwen3",
		"Qwen/Qwen3-30B-A3B-Thinking-2507":          "qwen3",
		"Qwen/Qwen3-Coder-30B-A3B-Instruct":         "qwen3-coder",
		"Qwen/Qwen3-Embedding-8B":                   "",
		"SmolLM2 135M Instruct":                     "smollm2",
		"smollm2-135m-instruct-q4_1.gguf":           "smollm2",
		"openai/gpt-oss-20b":                        "gpt-oss",
		"zai-org/GLM-4.5-Air":                       "glm4.5",
		"acme/our-qwen2.5-tuned":                    "",
		"meta-llama/Llama-3.1-70B":                  "", // a base model: whoever tunes it decides
	} {
		got := ""
		if f := Named(name); f != nil {
			got = f.Name
		}
		if got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}

func TestSpeaks(t *testing.T) {
	for _, tt := range []struct {
		family string
		kind   Kind
		parser string
		want   bool
	}{
		{"llama3", Tools, "llama3_json", true}, {"llama-3.1", Tools, "llama3", true}, {"Llama3", Tools, "hermes", false},
		{"qwen2.5", Tools, "hermes", true}, {"qwen25", Tools, "qwen25", true}, {"qwen2.5", Tools, "llama3_json", false},
		{"qwen2.5", Reasoning, "deepseek_r1", false}, {"qwen3", Reasoning, "deepseek-r1", true}, {"qwen3", Reasoning, "qwen3-thinking", true},
		{"qwen3", Tools, "qwen3_coder", true}, {"qwen3", Tools, "mistral", false},
		{"qwen2.5", Reasoning, "auto", true}, {"qwen2.5", Tools, "hf", true}, {"gpt-oss", Tools, "hermes", false},
		{"smollm2", Tools, "hermes", true},       // not known
		{"qwen2.5", Tools, "some-plug-in", true}, // not known
	} {
		f := Stated(tt.family)
		if f == nil {
			t.Errorf("no family %s", tt.family)
		} else if got := f.Speaks(tt.kind, tt.parser); got != tt.want {
			t.Errorf("%s %s %s: %v", tt.family, tt.kind, tt.parser, got)
		}
	}
	if f := Named("Qwen/Qwen3-8B"); f == nil || f.Speaks(Tools, "qwen3_coder") {
		t.Errorf("%v writes the coders' format", f)
	}
	if f := Stated("acme"); f != nil {
		t.Errorf("acme is %s", f.Name)
	}
	if got := Formats(Reasoning); !slices.IsSorted(got) || !slices.Contains(got, "qwen3") {
		t.Errorf("%v", got)
	}
}

// foreign are formats that only engines of others read.
var foreign = map[string]string{
	"default": "whatever the engine takes for it",
}

// TestParsers: every format has a parser, but for those of others; every parser is a format; and the first format of a family has one.
func TestParsers(t *testing.T) {
	for k, have := range map[Kind][]string{Tools: parse.ToolFormats(), Reasoning: parse.ReasoningFormats()} {
		for name := range formats[k] {
			if slices.Contains(have, name) == (foreign[name] != "") {
				t.Errorf("%s %q: a parser, and foreign, or neither", k, name)
			}
		}
		for _, name := range have {
			if _, ok := formats[k][name]; !ok && name != "json" { // what a constraint makes any model write
				t.Errorf("%s %q has a parser and is no format", k, name)
			}
		}
		for _, c := range family.All() {
			names := c.Tools
			if k == Reasoning {
				names = c.Reasoning
			}
			if len(names) > 0 && !slices.Contains(have, names[0]) {
				t.Errorf("%s: %s %q has no parser", c.Name, k, names[0])
			}
		}
	}
}
