package family

func list(names ...string) []string { return append([]string{}, names...) }

// Switches that many families share.
var (
	thinksUnlessOff = Switch{Arg: "enable_thinking", On: "true", Off: "false", Default: true}
	thinksIfOn      = Switch{Arg: "enable_thinking", On: "true", Off: "false"}
	deepseekIfOn    = Switch{Arg: "thinking", On: "true", Off: "false"}
)

// cards: a pattern of stated is held against a word without hyphens, underscores, dots and blanks, in lower case; one of named against a
// model's name in lower case, with hyphens for blanks and without the organisation. The first card that fits counts, so special ones
// stand before general ones.
var cards = []Card{
	// Meta
	{Name: "llama3", stated: `llama3[0-3]?`, named: `(meta-)?llama-?3(\.[1-3])?-[0-9].*instruct.*`,
		Tools: list("llama3_json", "pythonic"), Reasoning: list(), ShowsTools: true, Tokenizer: "llama-bpe",
		Stop: list("<|eot_id|>", "<|eom_id|>"),
		Real: list("meta-llama-Llama-3.1-8B-Instruct", "meta-llama-Llama-3.2-3B-Instruct", "meta-llama-Llama-3.3-70B-Instruct")},
	{Name: "llama4", stated: `llama4`, named: `llama-4-.*`,
		Tools: list("pythonic", "llama3_json"), Reasoning: list(), ShowsTools: true, Tokenizer: "llama4", Stop: list("<|eot|>", "<|eom|>")},

	// Alibaba
	{Name: "qwen2.5", stated: `qwen2(5)?`, named: `qwen2(\.5)?-.*`,
		Tools: list("hermes"), Reasoning: list(), ShowsTools: true, Tokenizer: "qwen2", Stop: list("<|im_end|>"),
		Real: list("Qwen-Qwen2.5-7B-Instruct")},
	{Name: "qwq", stated: `qwq`, named: `qwq-.*`,
		Tools: list("hermes"), Reasoning: list("deepseek_r1", "qwen3"), ShowsTools: true, Tokenizer: "qwen2", Stop: list("<|im_end|>"),
		Real: list("Qwen-QwQ-32B")},
	{Name: "qwen3", stated: `qwen3`, named: `qwen3-([0-9]|next|vl|omni).*`,
		Tools: list("hermes"), Reasoning: list("qwen3", "deepseek_r1"), Thinking: thinksUnlessOff, ShowsTools: true, Tokenizer: "qwen2",
		Stop: list("<|im_end|>"), Real: list("Qwen-Qwen3-0.6B")},
	{Name: "qwen3-coder", stated: `qwen3(coder)?`, named: `qwen3-coder-.*`,
		Tools: list("qwen3_coder"), Reasoning: list(), ShowsTools: true, Tokenizer: "qwen2", Stop: list("<|im_end|>"), Real: list("Qwen3-Coder")},
	{Name: "qwen3.5", stated: `qwen3[56]`, named: `qwen3\.[56]-.*`,
		Tools: list("qwen3_coder"), Reasoning: list("qwen3"), Thinking: thinksUnlessOff, ShowsTools: true, Tokenizer: "qwen35",
		Stop: list("<|im_end|>"), Real: list("Qwen3.5-4B")},

	// DeepSeek
	{Name: "deepseek-r1-distill", stated: `deepseekr1distill.*`, named: `deepseek-r1-(0528-qwen3|distill)-.*`,
		Reasoning: list("deepseek_r1", "qwen3"), Tokenizer: "deepseek-r1-qwen", Stop: list("<｜end▁of▁sentence｜>")},
	{Name: "deepseek-r1", stated: `deepseekr1`, named: `deepseek-r1(-0528|-zero)?`,
		Tools: list("deepseek_v3"), Reasoning: list("deepseek_r1"), Tokenizer: "deepseek-v3", Stop: list("<｜end▁of▁sentence｜>")},
	{Name: "deepseek-v3", stated: `deepseekv3`, named: `deepseek-v3(-0324)?`,
		Tools: list("deepseek_v3"), Tokenizer: "deepseek-v3", Stop: list("<｜end▁of▁sentence｜>")},
	{Name: "deepseek-v3.1", stated: `deepseekv31`, named: `deepseek-v3\.1(-terminus)?`,
		Tools: list("deepseek_v3_1"), Reasoning: list("deepseek_v3", "deepseek_r1"), Thinking: deepseekIfOn, Tokenizer: "deepseek-v3",
		Stop: list("<｜end▁of▁sentence｜>"), Real: list("deepseek-ai-DeepSeek-V3.1")},
	{Name: "deepseek-v3.2", stated: `deepseekv32`, named: `deepseek-v3\.2.*`,
		Tools: list("deepseek_v3_2", "deepseek_v3_1"), Reasoning: list("deepseek_v3", "deepseek_r1"), Thinking: deepseekIfOn,
		Template: "deepseek_v3_2", ShowsTools: true, Tokenizer: "deepseek-v3", Stop: list("<｜end▁of▁sentence｜>"),
		Real: list("deepseek-ai-DeepSeek-V3.2")},
	{Name: "deepseek-v4", stated: `deepseekv4`, named: `deepseek-v4-.*`,
		Tools: list("deepseek_v4"), Reasoning: list("deepseek_v4", "deepseek_v3"), Thinking: Switch{Arg: "thinking", On: "true", Off: "false", Effort: true},
		ShowsTools: true, Tokenizer: "deepseek-v3", Stop: list("<｜end▁of▁sentence｜>"),
		Real: list("deepseek-ai-DeepSeek-V4", "deepseek-ai-DeepSeek-V4-Flash-0731")},

	{Name: "deepseek-v4.1", stated: `deepseekv41`, named: `deepseek-v4\.1(-.*)?`,
		Tools: list("deepseek_v4_1", "deepseek_v4"), Reasoning: list("deepseek_v4", "deepseek_v3"),
		Thinking:   Switch{Arg: "thinking", On: "true", Off: "false", Effort: true},
		ShowsTools: true, Tokenizer: "deepseek-v3", Stop: list("<｜end▁of▁sentence｜>")},

	// OpenAI
	{Name: "gpt-oss", stated: `gptoss`, named: `gpt-oss-.*`,
		Tools: list("harmony"), Reasoning: list("gpt_oss"), Thinking: Switch{Default: true, Effort: true}, ShowsTools: true,
		Tokenizer: "gpt-4o", Stop: list("<|return|>", "<|call|>"), Real: list("openai-gpt-oss-120b")},

	// Mistral
	{Name: "magistral", stated: `magistral`, named: `magistral-.*|ministral-3-.*reasoning.*`,
		Tools: list("mistral"), Reasoning: list("mistral"), ShowsTools: true, Tokenizer: "tekken", Stop: list("</s>"), CallIDs: NineID,
		Real: list("mistralai-Ministral-3-14B-Reasoning-2512")},
	{Name: "mistral", stated: `mistral|ministral|mixtral|devstral`, named: `(mistral|ministral|mixtral)-.*instruct.*|devstral-.*`,
		Tools: list("mistral"), Reasoning: list("mistral"), ShowsTools: true, Tokenizer: "tekken", Stop: list("</s>"), CallIDs: NineID,
		Real: list("mistralai-Mistral-Nemo-Instruct-2407", "Mistral-Small-3.2-24B-Instruct-2506", "unsloth-mistral-Devstral-Small-2507")},

	// Nous
	{Name: "hermes", stated: `hermes[23]?(pro)?`, named: `hermes-[23]-.*`,
		Tools: list("hermes"), ShowsTools: true, Tokenizer: "llama-bpe", Stop: list("<|im_end|>"),
		Real: list("NousResearch-Hermes-2-Pro-Llama-3-8B-tool_use", "NousResearch-Hermes-3-Llama-3.1-8B-tool_use")},

	// Hugging Face
	{Name: "smollm2", stated: `smollm2?`, named: `smollm2?-.*`, Reasoning: list(), Tokenizer: "smollm", Stop: list("<|im_end|>")},
	{Name: "smollm3", stated: `smollm3`, named: `smollm3-.*`,
		Tools: list("hermes"), Reasoning: list("qwen3"), Thinking: thinksUnlessOff, Tokenizer: "llama-bpe", Stop: list("<|im_end|>")},

	// Google
	{Name: "gemma", stated: `gemma[23]?`, named: `gemma-[23]-.*`, Reasoning: list(), Tokenizer: "spm", Stop: list("<end_of_turn>")},
	{Name: "gemma4", stated: `gemma4`, named: `gemma-4-.*`,
		Tools: list("gemma4"), Reasoning: list("gemma4"), Thinking: thinksIfOn, ShowsTools: true, Tokenizer: "spm", Stop: list("<turn|>", "<|tool_response>"),
		Real: list("google-gemma-4-31B-it", "google-gemma-4-31B-it-interleaved")},
	{Name: "functiongemma", stated: `functiongemma`, named: `functiongemma-.*`,
		Tools: list("functiongemma"), Reasoning: list(), ShowsTools: true, Tokenizer: "spm", Stop: list("<end_of_turn>")},

	// Z.ai
	{Name: "glm4.5", stated: `glm4[56]`, named: `glm-4\.[56](-.*)?`,
		Tools: list("glm45", "glm47"), Reasoning: list("glm45"), Thinking: thinksUnlessOff, ShowsTools: true, Tokenizer: "bpe",
		Stop: list("<|user|>", "<|observation|>"), Real: list("GLM-4.6")},
	{Name: "glm4.7", stated: `glm47`, named: `glm-4\.7(-.*)?`,
		Tools: list("glm47", "glm45"), Reasoning: list("glm45"), Thinking: thinksUnlessOff, ShowsTools: true, Tokenizer: "bpe",
		Stop: list("<|user|>", "<|observation|>"), Real: list("GLM-4.7-Flash")},

	// Moonshot AI
	{Name: "kimi-k2-thinking", stated: `kimik2thinking`, named: `kimi-k2-thinking.*`,
		Tools: list("kimi_k2"), Reasoning: list("kimi_k2", "kimi_k25"), ShowsTools: true, Tokenizer: "bpe", Stop: list("<|im_end|>"),
		CallIDs: NumberID},
	{Name: "kimi-k2.5", stated: `kimik2[56]`, named: `kimi-k2\.[56](-.*)?`,
		Tools: list("kimi_k2"), Reasoning: list("kimi_k25", "kimi_k2"), Thinking: Switch{Arg: "thinking", On: "true", Off: "false", Default: true},
		ShowsTools: true, Tokenizer: "bpe", Stop: list("<|im_end|>"), CallIDs: NumberID},
	{Name: "kimi-k2", stated: `kimik2`, named: `kimi-k2-.*`,
		Tools: list("kimi_k2"), ShowsTools: true, Tokenizer: "bpe", Stop: list("<|im_end|>"), CallIDs: NumberID,
		Real: list("moonshotai-Kimi-K2")},
	{Name: "kimi-k3", stated: `kimik3`, named: `kimi-k3(-.*)?`,
		Tools: list("kimi_k3"), Reasoning: list("kimi_k3"), Thinking: Switch{Arg: "thinking", On: "true", Off: "false", Default: true},
		ShowsTools: true, Tokenizer: "bpe", Stop: list("<|end_of_msg|>"), Real: list("Kimi-K3")},

	// MiniMax
	{Name: "minimax-m2", stated: `minimaxm2`, named: `minimax-m2(\.[0-9]+)?(-.*)?`,
		Tools: list("minimax_m2"), Reasoning: list("minimax_m2", "minimax_append_think"), ShowsTools: true, Tokenizer: "bpe", Stop: list("[e~["),
		Real: list("MiniMax-M2")},
	{Name: "minimax-m3", stated: `minimaxm3`, named: `minimax-m3(-.*)?`,
		Tools: list("minimax_m3"), Reasoning: list("minimax_m3"), Thinking: Switch{Arg: "thinking_mode", On: `"enabled"`, Off: `"disabled"`, Default: true},
		ShowsTools: true, Tokenizer: "bpe", Stop: list("[e~["), Real: list("MiniMax-M3")},

	// Microsoft
	{Name: "phi4-mini", stated: `phi4mini`, named: `phi-4-mini-instruct`,
		Tools: list("phi4"), Reasoning: list(), ShowsTools: true, Tokenizer: "gpt-4o", Stop: list("<|end|>")},
	{Name: "phi3.5", stated: `phi35`, named: `phi-3\.5-mini-instruct`, Reasoning: list(), Tokenizer: "spm", Stop: list("<|end|>")},

	// AI21
	{Name: "jamba", stated: `jamba`, named: `(ai21-)?jamba-.*`, Tools: list("jamba"), ShowsTools: true, Tokenizer: "spm"},

	// ByteDance
	{Name: "seed-oss", stated: `seedoss`, named: `seed-oss-.*`,
		Tools: list("seed_oss"), Reasoning: list("seed_oss"), Thinking: Switch{Arg: "thinking_budget", On: "-1", Off: "0", Default: true},
		ShowsTools: true, Tokenizer: "bpe", Stop: list("<seed:eos>"), Real: list("ByteDance-Seed-OSS")},

	// IBM
	{Name: "granite4", stated: `granite4[01]?`, named: `granite-4\.[01]-.*`,
		Tools: list("hermes"), Reasoning: list(), ShowsTools: true, Tokenizer: "bpe", Stop: list("<|end_of_text|>"),
		Real: list("ibm-granite-granite-4.0", "ibm-granite-granite-4.1")},
	{Name: "granite3", stated: `granite3[0-3]?`, named: `granite-3\.[0-3]-.*instruct.*`,
		Tools: list("granite"), Reasoning: list("granite"), Thinking: Switch{Arg: "thinking", On: "true", Off: "false"}, Tokenizer: "refact",
		Stop: list("<|end_of_text|>")},

	// NVIDIA
	{Name: "nemotron-3-nano", stated: `nemotron3(nano)?`, named: `(nvidia-)?nemotron-3-nano-.*`,
		Tools: list("qwen3_coder"), Reasoning: list("nemotron_nano"), Thinking: thinksUnlessOff, ShowsTools: true, Tokenizer: "tekken",
		Stop: list("<|im_end|>"), Real: list("NVIDIA-Nemotron-3-Nano-30B-A3B-BF16")},
	{Name: "nemotron-nano-v2", stated: `nemotronnanov?2`, named: `(nvidia-)?nemotron-nano-(9b|12b)-v2.*`,
		Tools: list("nemotron_deci"), Reasoning: list("nemotron_nano"), Thinking: Switch{Default: true}, ShowsTools: true, Tokenizer: "tekken",
		Stop: list("<SPECIAL_12>"), Real: list("NVIDIA-Nemotron-Nano-v2")},
	{Name: "llama-nemotron", stated: `llama(31|33)?nemotron.*`, named: `llama-3[._][13]-nemotron-(nano|super|ultra)-.*`,
		Tools: list("nemotron_deci"), Reasoning: list("nemotron_deci"), Thinking: Switch{}, Tokenizer: "llama-bpe", Stop: list("<|eot_id|>")},

	// StepFun
	{Name: "step3.5", stated: `step35(flash)?`, named: `step-?3\.5-.*`,
		Tools: list("step3p5", "qwen3_coder"), Reasoning: list("step3"), Thinking: Switch{Default: true}, ShowsTools: true, Tokenizer: "bpe",
		Stop: list("<|im_end|>"), Real: list("StepFun3.5-Flash")},

	// Others
	{Name: "apertus", stated: `apertus`, named: `apertus-.*instruct.*`,
		Tools: list("apertus"), Thinking: thinksIfOn, ShowsTools: true, Tokenizer: "tekken", Stop: list("<|assistant_end|>"),
		Real: list("Apertus-8B-Instruct")},
	{Name: "bielik", stated: `bielik(11b)?(v3)?`, named: `bielik-11b-v3.*instruct.*`,
		Tools: list("hermes"), Reasoning: list("qwen3"), Thinking: thinksIfOn, ShowsTools: true, Tokenizer: "bpe", Stop: list("<|im_end|>"),
		Real: list("Bielik-11B-v3.0-Instruct")},
	{Name: "ernie4.5-thinking", stated: `ernie45thinking`, named: `ernie-4\.5-.*thinking.*`,
		Tools: list("ernie45"), Reasoning: list("ernie45"), Thinking: Switch{Default: true}, ShowsTools: true, Tokenizer: "spm", Stop: list("<|im_end|>")},
	{Name: "hunyuan-a13b", stated: `hunyuan(a13b)?`, named: `hunyuan-a13b-instruct.*`,
		Tools: list("hunyuan_a13b"), Reasoning: list("hunyuan"), Thinking: thinksUnlessOff, ShowsTools: true, Tokenizer: "bpe", Stop: list("<|eos|>")},
	{Name: "inkling", stated: `inkling`, named: `inkling(-.*)?`,
		Tools: list("inkling"), Reasoning: list("inkling"), Thinking: Switch{Default: true, Effort: true}, ShowsTools: true,
		Tokenizer: "bpe", Stop: list("<|content_model_end_sampling|>")},
	{Name: "internlm3", stated: `internlm(2|25|3)`, named: `internlm(2|2_5|3)-.*(chat|instruct).*`,
		Tools: list("internlm2"), Reasoning: list(), Tokenizer: "spm", Stop: list("<|im_end|>")},
	{Name: "laguna", stated: `laguna.*`, named: `laguna-.*`,
		Tools: list("glm47", "glm45"), Reasoning: list("glm45"), Thinking: thinksIfOn, ShowsTools: true, Tokenizer: "bpe", Stop: list("</assistant>"),
		Real: list("poolside-Laguna-XS.2", "poolside-Laguna-XS-2.1", "poolside-Laguna-S-2.1")},
	{Name: "lfm2", stated: `lfm2(5)?`, named: `lfm2(\.5)?-.*`,
		Tools: list("pythonic"), Reasoning: list("qwen3"), ShowsTools: true, Tokenizer: "bpe", Stop: list("<|im_end|>"),
		Real: list("LFM2.5-8B-A1B")},
	{Name: "ling3", stated: `ling3(flash)?`, named: `ling-3\.0-.*`,
		Tools: list("glm45", "glm47"), Reasoning: list("glm45"), Thinking: thinksIfOn, ShowsTools: true, Tokenizer: "bpe", Stop: list("<|role_end|>"),
		Real: list("inclusionai-ling-3.0-flash")},
	{Name: "llm-jp-4.1", stated: `llmjp41`, named: `llm-jp-4\.1-.*thinking.*`,
		Tools: list("harmony"), Reasoning: list("gpt_oss"), Thinking: Switch{Default: true, Effort: true}, ShowsTools: true, Tokenizer: "bpe",
		Stop: list("<|return|>", "<|call|>"), Real: list("llm-jp-llm-jp-4.1-8b-thinking")},
	{Name: "longcat", stated: `longcat.*`, named: `longcat-flash-.*`,
		Tools: list("longcat"), ShowsTools: true, Tokenizer: "bpe"},
	{Name: "mimo-vl", stated: `mimo(vl)?`, named: `mimo-vl-.*`,
		Tools: list("hermes"), Reasoning: list("qwen3"), ShowsTools: true, Tokenizer: "qwen2", Stop: list("<|im_end|>"), Real: list("MiMo-VL")},
	{Name: "muse-glimmer", stated: `museglimmer`, named: `muse-glimmer(-.*)?`,
		Tools: list("muse_glimmer"), Reasoning: list("muse_glimmer"), Thinking: Switch{Default: true}, ShowsTools: true, Tokenizer: "bpe",
		Stop: list("<|eot|>"), Real: list("muse-glimmer")},
	{Name: "olmo3-think", stated: `olmo3(think)?`, named: `olmo-3(\.[0-9])?-.*think.*`,
		Tools: list("olmo3"), Reasoning: list("olmo3"), Thinking: Switch{Default: true}, ShowsTools: true, Tokenizer: "bpe", Stop: list("<|im_end|>")},
	{Name: "reka-edge", stated: `rekaedge`, named: `reka-edge(-.*)?`,
		Tools: list("hermes"), Reasoning: list("qwen3"), Thinking: thinksIfOn, ShowsTools: true, Tokenizer: "bpe", Stop: list("<sep>"),
		Real: list("Reka-Edge")},
	{Name: "spark2.5", stated: `spark25`, named: `spark-?2\.5-.*`,
		Tools: list("glm47", "glm45"), Reasoning: list("glm45"), Thinking: thinksUnlessOff, ShowsTools: true, Tokenizer: "bpe",
		Stop: list("<｜end▁of▁sentence｜>"), Real: list("Spark2.5")},
	{Name: "xlam2", stated: `xlam2?`, named: `(llama-)?xlam-2-.*`,
		Tools: list("xlam"), Reasoning: list(), ShowsTools: true},
}
