package parse

import "testing"

var reasonCases = []struct {
	id, tools, reasoning, tail, text, want string
	cut                                    bool
}{
	{id: "C-001", reasoning: "qwen3", tail: "<|im_start|>assistant\n<think>\n", text: "plan…\n</think>\n\nHi", want: "R plan…|C Hi"},
	{id: "C-001 not opened", reasoning: "qwen3", tail: "<|im_start|>assistant\n", text: "<think>\nplan…\n</think>\n\nHi", want: "R plan…|C Hi"},
	{id: "C-001 forbidden", reasoning: "qwen3", tail: "<|im_start|>assistant\n<think>\n\n</think>\n\n", text: "Hi", want: "C Hi"},
	{id: "C-001 empty", reasoning: "qwen3", tail: "<think>\n", text: "\n</think>\n\nHi", want: "C Hi"},
	{id: "C-004", reasoning: "deepseek_r1", tail: "<｜Assistant｜><think>\n", text: "ab</think>cd", want: "R ab|C cd"},
	{id: "C-004 no end", reasoning: "deepseek_r1", text: "ab</thin", want: "R ab</thin", cut: true},
	{id: "C-005", reasoning: "glm45", tail: "<|assistant|><think>", text: "r1</think>mid<think>r2</think>end", want: "R r1|C mid|R r2|C end"},
	{id: "C-007", reasoning: "deepseek_r1", text: "before <think>x</think> after", want: "R before x|C after"},
	{id: "C-007 at once", reasoning: "deepseek_r1", text: "<think>x</think> after", want: "R x|C after"},
	{id: "C-007 as prompted", reasoning: "qwen3", text: "before <think>x</think> after", want: "C before|R x|C   after"},
	{id: "C-010", tools: "hermes", reasoning: "qwen3", tail: "<think>\n", text: `let me <tool_call>{"name":"f","arguments":{}}</tool_call>`, want: `R let me|0 f {}.`},
	{id: "C-010 and an end", tools: "hermes", reasoning: "qwen3", tail: "<think>\n", text: "let me <tool_call>{\"name\":\"f\",\"arguments\":{}}</tool_call>\n</think>\n\nHi", want: `R let me|0 f {}.|C Hi`},
	{id: "C-010 no call", tools: "hermes", reasoning: "qwen3", tail: "<think>\n", text: `a <tool_call> is what?</think>b`, want: `R a <tool_call> is what?|C b`},
	{id: "C-013", reasoning: "qwen3", tail: "<|im_start|>assistant\n", text: "</think>\n\nAnswer", want: "C Answer"},
	{id: "C-013 </Think>", reasoning: "qwen3", tail: "<|im_start|>assistant\n", text: "</Think>\n\nAnswer", want: "C </Think>\n\nAnswer"}, // the exact tag only
	{id: "C-013 NBSP", reasoning: "qwen3", tail: "<|im_start|>assistant\n", text: "\u00a0</think>\n\nAnswer", want: "C Answer"},
	{id: "C-013 closed already", reasoning: "deepseek_v4", tail: "<｜Assistant｜></think>", text: "</think>Answer", want: "C Answer"},
	{id: "C-013 in the midst", reasoning: "qwen3", text: "One.</think> Two.", want: "C One. Two."},
	{id: "C-014", reasoning: "qwen3", tail: "<think>\n", text: "Here is a thinking process:\n1. …", want: "R Here is a thinking process:\n1. …", cut: true},
	{id: "C-014 not opened", reasoning: "qwen3", tail: "<|im_start|>assistant\n", text: "Here is a thinking process:\n1. …", want: "C Here is a thinking process:\n1. …", cut: true},
	{id: "C-015", reasoning: "granite", text: "Here's my thought process:\nA\nHere's my response:\nB", want: "R A|C B"},
	{id: "C-015 is", reasoning: "granite", text: "Here is my thought process:\nA\nHere is my response:\nB", want: "R A|C B"},
	{id: "C-015 mixed", reasoning: "granite", text: "Here is my thought process: A Here's my response: B", want: "R A|C B"},
	{id: "C-015 tags", reasoning: "granite", text: "<think>A</think><response>B</response>", want: "R A|C B"},
	{id: "C-015 an answer", reasoning: "granite", text: "You asked. Here is my response: B", want: "C You asked. Here is my response: B"},
	{id: "C-015 an answer that begins so", reasoning: "granite", text: "Here is my thought, plainly.", want: "C Here is my thought, plainly."},
	{id: "C-015 an answer about it", reasoning: "granite", text: "Say: Here is my thought process: x", want: "C Say: Here is my thought process: x"},
	{id: "C-017", reasoning: "minimax_append_think", tail: "]~b]ai\n<think>\n", text: "A</think>B", want: "C <think>A</think>B"},
	{id: "C-017 split", reasoning: "minimax_m2", tail: "]~b]ai\n<think>\n", text: "A</think>B", want: "R A|C B"},
	{id: "C-017 its own tag", reasoning: "minimax_append_think", text: "<think>A</think>B", want: "C <think>A</think>B"},
	{id: "C-018", tools: "mistral", reasoning: "mistral", text: "[THINK]A[/THINK]B[TOOL_CALLS]f[ARGS]{}", want: "R A|C B|0 f {}."},
	{id: "C-018 brackets", reasoning: "mistral", text: "[THINK]a [b] [/c] [/THI[/THINK]B [THIN", want: "R a [b] [/c] [/THI|C B [THIN"},
	{id: "C-019", reasoning: "gpt_oss", tail: "<|start|>assistant", text: "<|channel|>analysis<|message|>A<|end|><|start|>assistant<|channel|>final<|message|>B<|return|>", want: "R A|C B"},
	{id: "C-020", reasoning: "deepseek_v3", tail: "<｜Assistant｜></think>", text: "Hi", want: "C Hi"},
	{id: "C-020 absent", reasoning: "deepseek_v3", tail: "<｜Assistant｜>", text: "Hi", want: "C Hi"},
	{id: "C-020 on", reasoning: "deepseek_v3", tail: "<｜Assistant｜><think>", text: "A</think>Hi", want: "R A|C Hi"},

	{id: "kimi", reasoning: "kimi", text: "◁think▷A◁/think▷B ◁ C", want: "R A|C B ◁ C"},
	{id: "gemma4", reasoning: "gemma4", tail: "<|turn>model\n", text: "<|channel>thought\nA\n<channel|>B", want: "R A|C B"},
	{id: "gemma4 no name", reasoning: "gemma4", text: "<|channel>A<channel|>B", want: "R A|C B"},
	{id: "gemma4 forbidden", reasoning: "gemma4", tail: "<|turn>model\n<|channel>thought\n<channel|>", text: "B", want: "C B"},
	{id: "gemma4 opened", reasoning: "gemma4", tail: "<|turn>model\n<|channel>thought\n", text: "A<channel|>B", want: "R A|C B"},
	{id: "hunyuan", reasoning: "hunyuan", text: "<think>\nA\n</think>\n<answer>\nB\n</answer>", want: "R A|C B"},
	{id: "hunyuan fast", reasoning: "hunyuan", text: "<think>\n\n</think>\n<answer>\nB\n</answer>", want: "C B"},
	{id: "ernie45", reasoning: "ernie45", tail: "<think>\n", text: "A\n</think>\n\n\n<response>\nB\n</response>\n", want: "R A|C B"},
	{id: "olmo3", reasoning: "olmo3", text: "A</think>B", want: "R A|C B"},
	{id: "seed_oss", reasoning: "seed_oss", text: "<seed:think>A<seed:cot</seed:think>B", want: "R A<seed:cot|C B"},
	{id: "minimax_m3", reasoning: "minimax_m3", tail: "]~b]ai\n", text: "<mm:think>A</think></mm:think>B", want: "R A</think>|C B"},
	{id: "step3", reasoning: "step3", text: "A</think>B", want: "R A|C B"},
	{id: "identity", reasoning: "identity", text: "<think>A</think>\nB ", want: "C <think>A</think>\nB "},
	{id: "emoji", reasoning: "qwen3", text: "<think>é😀</think>😀 é", want: "R é😀|C 😀 é"},
}

func TestReasonCases(t *testing.T) {
	for _, c := range reasonCases {
		t.Run(c.id, func(t *testing.T) {
			if tools()[c.tools] == nil && c.tools != "" {
				t.Fatalf("no tool format %q", c.tools)
			}
			got := read(t, Options{Tools: c.tools, Reasoning: c.reasoning, Tail: c.tail, Functions: lawFunctions}, c.cut, c.text)
			if got != c.want {
				t.Errorf("%q\n got %s\nwant %s", c.text, got, c.want)
			}
			law(t, lawText{name: c.id, tools: c.tools, reasoning: c.reasoning, tail: c.tail, text: c.text, fs: lawFunctions})
		})
	}
}

// TestOpened: what the end of a prompt says of the beginning of the output.
func TestOpened(t *testing.T) {
	for _, c := range []struct {
		reasoning, tail string
		continued, want bool
	}{
		{"qwen3", "", false, false},
		{"qwen3", "<|im_start|>assistant\n", false, false},
		{"qwen3", "<|im_start|>assistant\n<think>\n", false, true},
		{"qwen3", "<|im_start|>assistant\n<think>\n\n</think>\n\n", false, false},
		{"qwen3", "what is <think>?<|im_end|>\n<|im_start|>assistant\n", false, false},
		{"qwen3", "what is <think>", false, true},
		{"deepseek_r1", "", false, true},
		{"deepseek_r1", "<｜Assistant｜>", false, true},
		{"deepseek_r1", "<｜Assistant｜><think>\n</think>\n", false, false},
		{"deepseek_r1", "<｜Assistant｜>a</think>b", true, false},
		{"qwen3", "<|im_start|>assistant\n<think>\nhalf a thou", true, true},
		{"qwen3", "<|im_start|>assistant\n<think>\na\n</think>\n\nHalf an ans", true, false},
		{"qwen3", "<|im_start|>assistant\nwhat is <think>?<|im_end|>\n<|im_start|>assistant\nHalf an ans", true, false},
		{"qwen3", "<|im_start|>assistant\n<think>\nhalf a thou", false, false},
		{"mistral", "[/INST][THINK]half", true, true},
		{"mistral", "[THINK]half[/INST]", true, false},
		{"gemma4", "<|turn>model\n<|channel>thought\nhalf", true, true},
		{"gemma4", "<|turn>model\n<|channel>thought\n<channel|>", false, false},
		{"granite", "Here is my thought process:\n", true, true},
		{"identity", "<think>", false, false},
	} {
		if got := reasons()[c.reasoning].opened(c.tail, c.continued); got != c.want {
			t.Errorf("%s %q, continued %v: %v", c.reasoning, c.tail, c.continued, got)
		}
	}
}
