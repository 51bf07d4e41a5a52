package preprocess

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/dynamograph/dynamo/graph/flow"
	"github.com/dynamograph/dynamo/graph/flow/llm"
)

// Faults that users of other servers reported, with the thread that told of each; the model's context is 100 tokens of a byte each.

// ai-dynamo/dynamo#6605, #6635, vllm-project/vllm#33418, #36197: a request that the context cannot hold crashed the worker, or the message gave
// a wrong limit.
func TestCaseE004(t *testing.T) {
	e := &engine{deltas: each(llm.FinishStop)}
	n, _ := start(t, Config{}, chatML, e)
	for _, c := range []struct {
		prompt, max, limit, min int
		echo                    bool // with NoOutput
		want                    int  // what the engine may give; 0: refused
		msg                     string
	}{
		{prompt: 110, msg: "has 110 tokens"},
		{prompt: 96, max: 10, msg: "106 were requested: 96 in the prompt and 10 for the answer; ask for at most 4"},
		{prompt: 96, max: 4, want: 4},
		{prompt: 96, want: 4},
		{prompt: 96, limit: 16, want: 4},
		{prompt: 10, limit: 16, want: 16},
		{prompt: 10, limit: 16, min: 20, want: 20},
		{prompt: 96, min: 5, msg: "101 were requested: 96 in the prompt and min_tokens 5"},
		{prompt: 100, msg: "has 100 tokens"},
		{prompt: 99, echo: true, min: 7, want: 1},
		{prompt: 5000, msg: "has more than "},
	} {
		t.Run(fmt.Sprint(c), func(t *testing.T) {
			e.got = nil
			r := &llm.ChatRequest{Model: "tiny", Prompt: strings.Repeat("x", c.prompt), Stop: llm.Stop{MaxTokens: c.max, MinTokens: c.min}, Limit: c.limit,
				Echo: c.echo, NoOutput: c.echo, Logprobs: -1}
			g := ask(n, r)
			if c.want > 0 {
				if g.err != nil || e.got.Stop.MaxTokens != c.want || e.got.Logprobs != -1 {
					t.Fatalf("%v, engine got %+v", g.err, e.got)
				}
				return
			}
			var f *flow.Error
			if !errors.As(g.err, &f) || f.Class != flow.InvalidRequest || f.Reason != "context_length_exceeded" || f.Param != "prompt" || e.got != nil {
				t.Fatalf("%#v", g.err)
			}
			if !strings.HasPrefix(f.Msg, "This model's maximum context length is 100 tokens, but ") || !strings.Contains(f.Msg, c.msg) {
				t.Errorf("message %q", f.Msg)
			}
		})
	}
}

// logged is each with log-probabilities, and those of a prompt on the first delta.
func logged(prompt string, ids ...uint32) []*llm.TokensDelta {
	out := each(llm.FinishLength, ids...)
	for i, id := range tokens(prompt) {
		l := llm.Logprob{Token: id, Logprob: -float32(i)}
		if i == 0 {
			l = llm.Logprob{}
		}
		out[0].Prompt = append(out[0].Prompt, l)
	}
	for i, id := range ids {
		out[i].Logprobs = []llm.Logprob{{Token: id, Logprob: -0.5}}
	}
	return out
}

// echo of completions as vLLM's tests have it: the first token's log-probability is none, the prompt comes once, offsets count characters.
func TestCaseA031(t *testing.T) {
	places := func(l []llm.TextLogprob) (s string) {
		for _, t := range l {
			s += fmt.Sprintf("%s@%d%v ", t.Text, t.Offset, t.None)
		}
		return s
	}
	e := &engine{}
	n, _ := start(t, Config{}, chatML, e)
	e.deltas = logged("Hé", tokens("yü!")...)
	g := ask(n, &llm.ChatRequest{Model: "tiny", Prompt: "Hé", Echo: true, Logprobs: 0})
	if want := "H@0true \uFFFD@1false \uFFFD@1false y@2false \uFFFD@3false \uFFFD@3false !@4false "; places(g.lp) != want || g.text() != "Héyü!" {
		t.Errorf("%s of %q", places(g.lp), g.text())
	}
	e.deltas = logged("Hi", tokens("y")...)
	g = ask(n, &llm.ChatRequest{Model: "tiny", Prompt: "Hi", Echo: true, NoOutput: true, Logprobs: 0})
	if g.text() != "Hi" || g.finish != llm.FinishLength || len(g.tokens) != 0 || places(g.lp) != "H@0true i@1false " || *g.usage != (llm.Usage{Prompt: 2, Cached: 3}) {
		t.Errorf("no output: %+v", g)
	}
	e.deltas = each(llm.FinishStop) // the engine ends at once
	if g = ask(n, &llm.ChatRequest{Model: "tiny", Prompt: "Hi", Echo: true, NoOutput: true, Logprobs: -1}); g.text() != "Hi" || g.finish != llm.FinishLength {
		t.Errorf("end at once: %+v", g)
	}
	// Log-probabilities of the prompt alone, before there is a token.
	e.deltas = append([]*llm.TokensDelta{{Prompt: logged("Hi", 'y')[0].Prompt}}, each(llm.FinishStop, 'y')...)
	e.deltas[1].Logprobs = []llm.Logprob{{Token: 'y', Logprob: -0.5}}
	if g = ask(n, &llm.ChatRequest{Model: "tiny", Prompt: "Hi", Echo: true, Logprobs: 0}); g.text() != "Hiy" || places(g.lp) != "H@0true i@1false y@2false " {
		t.Errorf("prompt first: %+v", g)
	}
	// Special tokens are no text of an answer, but where the author wrote them.
	e.deltas = logged("<|im_end|>H", end, 'y')
	if g = ask(n, &llm.ChatRequest{Model: "tiny", Prompt: "<|im_end|>H", Echo: true, Logprobs: 0}); g.text() != "<|im_end|>Hy" ||
		places(g.lp) != "<|im_end|>@0true H@10false <|im_end|>@11false y@11false " {
		t.Errorf("special: %s of %q", places(g.lp), g.text())
	}
	if g = ask(n, &llm.ChatRequest{Model: "tiny", Tokens: []uint32{end, 'H'}, Echo: true, Logprobs: 0}); g.text() != "Hy" ||
		places(g.lp) != "<|im_end|>@0true H@0false <|im_end|>@1false y@1false " {
		t.Errorf("special by number: %s of %q", places(g.lp), g.text())
	}
}

// ai-dynamo/dynamo#14378, vllm-project/vllm#1973, #8468: why an answer ended, with stop strings in play. Engines may give several tokens at once:
// stream_interval of vLLM, ai-dynamo/dynamo#14317.
func TestCasesStops(t *testing.T) {
	for _, c := range []struct {
		id, text  string
		r         llm.ChatRequest
		want      string
		finish    llm.FinishReason // the engine ends with length
		completed int
	}{
		{"A-011 whole", " uno dos tres", llm.ChatRequest{StopStrings: []string{" uno dos tres"}}, "", llm.FinishStop, 13},
		{"A-011 cut", " uno dos", llm.ChatRequest{StopStrings: []string{" uno dos tres"}}, " uno dos", llm.FinishLength, 8},
		{"A-013", "aEND b", llm.ChatRequest{StopStrings: []string{"END"}, IncludeStop: true}, "aEND", llm.FinishStop, 4},
		{"A-014", "Hi there##", llm.ChatRequest{StopStrings: []string{"###"}}, "Hi there##", llm.FinishLength, 10},
		{"A-019", "aaaaaa", llm.ChatRequest{StopStrings: []string{"a"}, Stop: llm.Stop{MinTokens: 5}}, "aaaaa", llm.FinishStop, 6},
		{"A-033", "", llm.ChatRequest{}, "", llm.FinishLength, 0},
		{"A-035", "a✓ <think> 👩‍💻 b", llm.ChatRequest{StopStrings: []string{"💻 c"}}, "a✓ <think> 👩‍💻 b", llm.FinishLength, 26},
	} {
		t.Run(c.id, func(t *testing.T) {
			ids := tokens(c.text)
			for size := 1; size <= max(len(ids), 1); size++ { // tokens a delta
				e := &engine{}
				for part := range slices.Chunk(ids, size) {
					e.deltas = append(e.deltas, &llm.TokensDelta{Tokens: part})
				}
				e.deltas = append(e.deltas, &llm.TokensDelta{Finish: llm.FinishLength, Usage: &llm.Usage{Completion: len(ids)}})
				n, _ := start(t, Config{}, chatML, e)
				r := c.r
				r.Model, r.Prompt, r.Logprobs = "tiny", "x", -1
				g := ask(n, &r)
				if g.err != nil || g.text() != c.want || g.finish != c.finish || g.usage.Completion != c.completed || len(g.tokens) != c.completed {
					t.Errorf("%d tokens a delta: %q, finish %q, %+v, %d tokens, %v", size, g.text(), g.finish, g.usage, len(g.tokens), g.err)
				}
			}
		})
	}
}
