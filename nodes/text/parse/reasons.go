package parse

import (
	"slices"
	"strings"
	"sync"
)

// reasonFormat is how models write their thoughts.
type reasonFormat struct {
	open, close []string // the first of each is what templates write
	// stray are marks around the answer: they are dropped.
	stray  []string
	forced bool // output begins with thoughts, but where the prompt says otherwise
	first  bool // thoughts begin an output or do not come: the opening mark is text elsewhere
	keep   bool // the thoughts stay content, with their marks
	// whole, if set, reads all of the output by itself. marks are what it looks for, and answer is what begins the answer.
	whole  func(p *Parser)
	marks  []string
	answer string
}

// thunk ends <think>. A no-break space before it is no thought, and no answer where nothing opened it.
var thunk = list("</think>", "\u00a0</think>")

func think(forced bool) *reasonFormat {
	return &reasonFormat{open: list("<think>"), close: thunk, forced: forced}
}

// reasons are the formats of reasoning. Many are the same pair of tags, and have a name each since engines and model cards do. Forced ones
// are those of models that always think and of which some templates leave the opening tag to the model's habit.
var reasons = sync.OnceValue(func() map[string]*reasonFormat {
	return map[string]*reasonFormat{
		"identity":      {},
		"basic":         think(false),
		"qwen3":         think(false),
		"glm45":         think(false),
		"kimi_k2":       think(false),
		"nemotron_deci": think(false),
		"deepseek_v3":   think(false), // V3.1 and V3.2, too: the prompt tells whether they think
		"deepseek_v4":   think(false),
		"deepseek_r1":   think(true),
		"kimi_k25":      think(true),
		"minimax_m2":    think(true),
		"nemotron_nano": think(true),
		"olmo3":         think(true),
		"step3":         think(true),
		// The answer of a format that keeps its thoughts in the content, for clients that send them back so.
		"minimax_append_think": {open: list("<think>"), close: thunk, forced: true, keep: true},

		"ernie45": {open: list("<think>"), close: thunk, stray: list("<response>", "</response>"), forced: true},
		"hunyuan": {open: list("<think>"), close: thunk, stray: list("<answer>", "</answer>")},
		// Granite 3.2 has sentences for marks, of which quantized models write a second spelling (vllm-project/vllm, granite parser); 3.3 has tags.
		"granite": {
			open:  list("<think>", "Here is my thought process:", "Here's my thought process:"),
			close: list("</think>", "Here is my response:", "Here's my response:"),
			stray: list("<response>", "</response>"), first: true,
		},
		"gemma4": {
			// The word behind the mark is the name of the channel.
			open: list("<|channel>thought\n", "<|channel>thought", "<|channel>"), close: list("<channel|>"),
		},
		"kimi_k3": {
			open: list("<|open|>think<|sep|>"), close: list("<|close|>think<|sep|>"),
			stray: list("<|open|>response<|sep|>", "<|close|>response<|sep|>", "<|close|>message<|sep|>", "<|end_of_msg|>"),
		},
		"inkling": {
			open: list("<|message_model|><|content_thinking|>", "<|content_thinking|>"), close: list("<|end_message|>"),
			stray: list("<|message_model|><|content_text|>", "<|message_model|>", "<|content_text|>"),
		},
		"kimi":       {open: list("◁think▷"), close: list("◁/think▷")},
		"minimax_m3": {open: list("<mm:think>"), close: list("</mm:think>")},
		"mistral":    {open: list("[THINK]"), close: list("[/THINK]")},
		"seed_oss":   {open: list("<seed:think>"), close: list("</seed:think>")},

		// Thoughts are one of several channels of the answer.
		"gpt_oss":      {whole: (*Parser).harmony, marks: harmonyMarks, answer: "<|channel|>final<|message|>"},
		"muse_glimmer": {whole: (*Parser).muse, marks: museMarks, answer: " to=user<|message|>"},
	}
})

// turns are pieces of the markup that chat templates put between turns. Behind one of them nothing of an earlier turn goes on.
var turns = []string{
	"<|", "<｜", "[INST]", "[/INST]", "_of_turn>", "turn|>", "]~b]", "<seed:", "<SPECIAL_", "</s>", "<s>", "_of_sentence>", "<assistant>", "<role>", "<sep>",
}

// opened reports whether an output behind tail begins with thoughts. A template that lets the model think may have written the opening mark,
// one that forbids it a closed pair or the closing mark alone; a message that is continued may end in the midst of either. Elsewhere marks
// say nothing: users write them, too.
func (f *reasonFormat) opened(tail string, continued bool) bool {
	end, in := -1, f.forced
	for i, marks := range [][]string{f.open, f.close} {
		for _, m := range marks {
			m = strings.TrimRight(m, blanks)
			if at := strings.LastIndex(tail, m); at >= 0 && at+len(m) > end {
				rest := tail[at+len(m):]
				if strings.TrimLeft(rest, blanks) == "" || continued && !slices.ContainsFunc(turns, func(t string) bool { return strings.Contains(rest, t) }) {
					end, in = at+len(m), i == 0
				}
			}
		}
	}
	return in
}
