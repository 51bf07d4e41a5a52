package family

import (
	"encoding/json"
	"slices"
	"testing"
)

func names(cards []Card) (out []string) {
	for _, c := range cards {
		out = append(out, c.Name)
	}
	return out
}

// TestCards: each card is found by its own name, stands once, and says nothing that cannot be.
func TestCards(t *testing.T) {
	if len(cards) < 35 {
		t.Errorf("%d cards", len(cards))
	}
	seen := map[string]bool{}
	for _, c := range All() {
		if seen[c.Name] {
			t.Errorf("%s: twice", c.Name)
		}
		seen[c.Name] = true
		if s := Stated(c.Name); len(s) == 0 || s[0].Name != c.Name && c.Name != "qwen3-coder" {
			t.Errorf("%s: its own name is of %v", c.Name, names(s))
		}
		if c.named == "" || c.Tokenizer == "" && c.Name != "xlam2" {
			t.Errorf("%s: no pattern of names, or no tokenizer", c.Name)
		}
		for _, list := range [][]string{c.Tools, c.Reasoning, c.Stop, c.Real} {
			if sorted := slices.Sorted(slices.Values(list)); len(slices.Compact(sorted)) != len(list) || slices.Contains(list, "") {
				t.Errorf("%s: %q", c.Name, list)
			}
		}
		if s := c.Thinking; (s.Arg == "") != (s.On == "") || (s.On == "") != (s.Off == "") {
			t.Errorf("%s: half a switch: %+v", c.Name, s)
		} else if s.Arg != "" && (!json.Valid([]byte(s.On)) || !json.Valid([]byte(s.Off)) || s.On == s.Off) {
			t.Errorf("%s: the values of its switch: %+v", c.Name, s)
		}
		if c.Thinking != (Switch{}) && c.Reasoning != nil && len(c.Reasoning) == 0 {
			t.Errorf("%s: a switch of thinking, but no reasoning", c.Name)
		}
	}
}

func TestStated(t *testing.T) {
	for word, want := range map[string][]string{
		"llama-3.1": {"llama3"}, "Llama3": {"llama3"}, "qwen25": {"qwen2.5"}, "qwen3": {"qwen3", "qwen3-coder"}, "Qwen3 Coder": {"qwen3-coder"},
		"deepseek_v3.1": {"deepseek-v3.1"}, "DeepSeek-R1-Distill-Llama": {"deepseek-r1-distill"}, "acme": nil, "": nil,
	} {
		if got := names(Stated(word)); !slices.Equal(got, want) {
			t.Errorf("%q: %v, want %v", word, got, want)
		}
	}
}

func TestNamed(t *testing.T) {
	for name, want := range map[string]string{
		"meta-llama/Llama-3.1-70B-Instruct":          "llama3",
		"Meta Llama 3.1 8B Instruct":                 "llama3",
		"meta-llama/Llama-3.1-70B":                   "", // a base model: whoever tunes it decides
		"meta-llama/Llama-4-Scout-17B-16E-Instruct":  "llama4",
		"NousResearch/Hermes-3-Llama-3.1-8B":         "hermes",
		"deepseek-ai/DeepSeek-R1-Distill-Llama-8B":   "deepseek-r1-distill",
		"deepseek-ai/DeepSeek-R1-0528-Qwen3-8B":      "deepseek-r1-distill",
		"deepseek-ai/DeepSeek-R1":                    "deepseek-r1",
		"deepseek-ai/DeepSeek-V3.1-Terminus":         "deepseek-v3.1",
		"deepseek-ai/DeepSeek-V4-Flash":              "deepseek-v4",
		"Qwen/Qwen2.5-7B-Instruct":                   "qwen2.5",
		"qwen2.5-0.5b-instruct-q4_k_m.gguf":          "qwen2.5",
		"Qwen/QwQ-32B":                               "qwq",
		"Qwen/Qwen3-30B-A3B-Thinking-2507":           "qwen3",
		"Qwen/Qwen3-Coder-30B-A3B-Instruct":          "qwen3-coder",
		"Qwen/Qwen3.5-4B":                            "qwen3.5",
		"Qwen/Qwen3-Embedding-8B":                    "",
		"SmolLM2 135M Instruct":                      "smollm2",
		"HuggingFaceTB/SmolLM3-3B":                   "smollm3",
		"openai/gpt-oss-20b":                         "gpt-oss",
		"zai-org/GLM-4.5-Air":                        "glm4.5",
		"zai-org/GLM-4.7-Flash":                      "glm4.7",
		"moonshotai/Kimi-K2-Instruct":                "kimi-k2",
		"moonshotai/Kimi-K2-Thinking":                "kimi-k2-thinking",
		"moonshotai/Kimi-K2.5":                       "kimi-k2.5",
		"moonshotai/Kimi-K3":                         "kimi-k3",
		"MiniMaxAI/MiniMax-M2.1":                     "minimax-m2",
		"MiniMaxAI/MiniMax-M3":                       "minimax-m3",
		"mistralai/Ministral-3-14B-Reasoning-2512":   "magistral",
		"mistralai/Ministral-3-14B-Instruct-2512":    "mistral",
		"mistralai/Magistral-Small-2507":             "magistral",
		"mistralai/Devstral-Small-2507":              "mistral",
		"google/gemma-3-4b-it":                       "gemma",
		"google/gemma-4-31B-it":                      "gemma4",
		"google/functiongemma-270m-it":               "functiongemma",
		"microsoft/Phi-4-mini-instruct":              "phi4-mini",
		"ai21labs/AI21-Jamba-1.5-Mini":               "jamba",
		"ByteDance-Seed/Seed-OSS-36B-Instruct":       "seed-oss",
		"ibm-granite/granite-3.2-8b-instruct":        "granite3",
		"ibm-granite/granite-4.0-h-small":            "granite4",
		"nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16": "nemotron-3-nano",
		"nvidia/NVIDIA-Nemotron-Nano-9B-v2":          "nemotron-nano-v2",
		"nvidia/Llama-3_3-Nemotron-Super-49B-v1_5":   "llama-nemotron",
		"nvidia/Llama-3.1-Nemotron-Nano-8B-v1":       "llama-nemotron",
		"stepfun-ai/Step-3.5-Flash":                  "step3.5",
		"swiss-ai/Apertus-8B-Instruct-2509":          "apertus",
		"baidu/ERNIE-4.5-21B-A3B-Thinking":           "ernie4.5-thinking",
		"tencent/Hunyuan-A13B-Instruct":              "hunyuan-a13b",
		"LiquidAI/LFM2.5-8B-A1B":                     "lfm2",
		"poolside/Laguna-XS.2":                       "laguna",
		"allenai/Olmo-3-32B-Think":                   "olmo3-think",
		"Salesforce/Llama-xLAM-2-8b-fc-r":            "xlam2",
		"acme/our-qwen2.5-tuned":                     "",
		"":                                           "",
	} {
		got, ok := Named(name)
		if got.Name != want || ok != (want != "") {
			t.Errorf("%s: %q, want %q", name, got.Name, want)
		}
	}
}
