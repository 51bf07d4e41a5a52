package parse

import "sync"

// reasons are the formats of reasoning by name.
var reasons = sync.OnceValue(func() map[string]*reasonFormat {
	think := list("<think>")
	thunk := list("</think>")
	plain := func() *reasonFormat { return &reasonFormat{open: think, close: thunk} }
	forced := func() *reasonFormat { return &reasonFormat{open: think, close: thunk, forced: true} }
	return map[string]*reasonFormat{
		"basic":                plain(),
		"deepseek_r1":          forced(),
		"deepseek_v3":          plain(), // its template opens or closes by itself
		"deepseek_v4":          plain(),
		"qwen3":                plain(),
		"nemotron_deci":        plain(),
		"nemotron_nano":        plain(),
		"kimi":                 {open: list("◁think▷"), close: list("◁/think▷")},
		"kimi_k2":              plain(),
		"kimi_k25":             plain(),
		"step3":                forced(),
		"mistral":              {open: list("[THINK]"), close: list("[/THINK]")},
		"granite":              {open: list("Here is my thought process:", "Here's my thought process:"), close: list("Here is my response:", "Here's my response:")},
		"glm45":                plain(),
		"minimax_m2":           forced(),
		"minimax_m3":           {open: list("<mm:think>"), close: list("</mm:think>")},
		"minimax_append_think": {open: think, close: thunk, forced: true, keep: true},
		"gemma4":               {open: list("<|channel>thought\n", "<|channel>thought"), close: list("<channel|>")},
		"seed_oss":             {open: list("<seed:think>"), close: list("</seed:think>")},
		"hunyuan":              {open: list("<think>"), close: list("</think>\n<answer>", "</think><answer>", "</think>", "</answer>", "<answer>")},
		"ernie45":              {open: think, close: list("</think>\n\n<response>\n", "</think>", "<response>", "</response>")},
		"olmo3":                forced(),
		"gpt_oss":              {whole: (*Parser).harmony},
	}
})
