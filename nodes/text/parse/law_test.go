package parse

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// A lawText is an output that every way to cut it must give the same of.
type lawText struct {
	name             string
	tools, reasoning string
	tail, text       string
	fs               []Function
	well             bool // well-formed: no marker may be in content or reasoning, and want holds
	want             string
}

var lawSchema = json.RawMessage(`{"type":"object","properties":{"s":{"type":"string"},"n":{"type":"integer"},"b":{"type":"boolean"},
"a":{"type":"array","items":{"type":"string"}},"o":{"type":"object"}}}`)

var lawFunctions = []Function{{Name: "look", Parameters: lawSchema}, {Name: "find_bus-2", Parameters: lawSchema}, {Name: "ping"}}

var (
	lawOne  = []wcall{{"look", []warg{{"s", `"K4"`}}}}
	lawNone = []wcall{{"ping", nil}}
	lawTwo  = []wcall{{"find_bus-2", []warg{{"s", `"Zürich 😀 a<b & c"`}, {"n", `12`}, {"b", `true`}}}, {"look", []warg{{"a", `["x","y]"]`}, {"o", `{"k":{"z":1}}`}}}}
)

// usual is the reasoning that models which write a tool format write, where it is not <think>.
var usual = map[string]string{
	"harmony": "gpt_oss", "mistral": "mistral", "gemma4": "gemma4", "kimi_k3": "kimi_k3", "inkling": "inkling", "muse_glimmer": "muse_glimmer",
	"minimax_m3": "minimax_m3", "seed_oss": "seed_oss", "granite": "granite", "glm45": "glm45", "glm47": "glm45", "deepseek_v4": "deepseek_v4",
	"minimax_m2": "minimax_m2", "kimi_k2": "kimi_k2", "hunyuan_a13b": "hunyuan", "ernie45": "ernie45",
}

// thoughts writes reasoning and what ends it.
var thoughts = map[string][2]string{
	"kimi": {"◁think▷", "◁/think▷"}, "mistral": {"[THINK]", "[/THINK]"}, "minimax_m3": {"<mm:think>", "</mm:think>"},
	"seed_oss": {"<seed:think>", "</seed:think>"}, "gemma4": {"<|channel>thought\n", "<channel|>"},
	"granite":  {"Here is my thought process:", "Here is my response:"},
	"hunyuan":  {"<think>\n", "\n</think>\n<answer>\n"},
	"ernie45":  {"<think>\n", "\n</think>\n\n\n"},
	"gpt_oss":  {"<|channel|>analysis<|message|>", "<|end|><|start|>assistant"},
	"kimi_k3":  {"<|open|>think<|sep|>", "<|close|>think<|sep|>"},
	"inkling":  {"<|message_model|><|content_thinking|>", "<|end_message|>"},
	"identity": {"", ""}, "": {"", ""},
	"muse_glimmer": {"<|start|>assistant to=self<|message|>", "<|eom|>"},
}

// says writes content where it is more than its text.
var says = map[string][2]string{
	"gpt_oss": {"<|channel|>final<|message|>", "<|return|>"}, "kimi_k3": {"<|open|>response<|sep|>", "<|close|>response<|sep|>"},
	"inkling":      {"<|message_model|><|content_text|>", "<|end_message|>"},
	"muse_glimmer": {"<|start|>assistant to=user<|message|>", "<|eom|>"},
}

func lawTexts(t testing.TB) []lawText {
	var out []lawText
	for _, tools := range append(ToolFormats(), "") {
		write := wires[tools]
		if write == nil && tools != "" {
			t.Errorf("%s: no wire form in this test", tools)
			continue
		}
		reasoning := "qwen3"
		if r, ok := usual[tools]; ok {
			reasoning = r
		}
		if tools == "" {
			continue
		}
		out = append(out, textsOf(tools, reasoning, write)...)
	}
	for _, r := range ReasoningFormats() {
		out = append(out, textsOf("", r, nil)...)
	}
	return out
}

func textsOf(tools, reasoning string, write func([]wcall) string) []lawText {
	think, ok := thoughts[reasoning]
	if !ok {
		think = [2]string{"<think>", "</think>"}
	}
	say := says[reasoning]
	var out []lawText
	add := func(name, text, want string, well bool) {
		out = append(out, lawText{name: tools + "/" + reasoning + "/" + name, tools: tools, reasoning: reasoning, text: text, fs: lawFunctions, want: want, well: well})
	}
	thought, said := think[0]+"2 < 3, so"+think[1], say[0]+"It is [so] <b> {x} & 5 <"+say[1]
	if reasoning == "identity" {
		add("plain", "a <think>b</think> c", "content a <think>b</think> c\n", true)
		return out
	}
	add("thought", thought+said, "reasoning 2 < 3, so\ncontent It is [so] <b> {x} & 5 <\n", reasoning != "minimax_append_think")
	add("cut in thought", think[0]+"2 < 3, so", "reasoning 2 < 3, so\n", reasoning != "minimax_append_think")
	add("noise", "</think><think>a"+think[1]+think[1]+"b"+think[0]+"c"+think[0]+"d"+think[1]+"\n\n e "+think[1][:len(think[1])/2], "", false)
	add("half", think[0][:len(think[0])/2]+"x"+think[1][:len(think[1])/2]+"y", "", false)
	if write == nil {
		return out
	}
	one, two, none := write(lawOne), write(lawTwo), write(lawNone)
	add("call", one, "call look {\"s\":\"K4\"}\n", true)
	add("no arguments", none, "call ping {}\n", true)
	add("thought and two", thought+two, "reasoning 2 < 3, so\ncall find_bus-2 {\"s\":\"Zürich 😀 a<b & c\",\"n\":12,\"b\":true}\ncall look {\"a\":[\"x\",\"y]\"],\"o\":{\"k\":{\"z\":1}}}\n", true)
	add("cut in call", one[:len(one)*2/3], "", false)
	add("call in thought", think[0]+"hm "+one, "", false)
	add("twice", one+one+"x"+none, "", false)
	add("torn", one[:len(one)/3]+two[len(two)/4:], "", false)
	if f := reasons()[reasoning]; f.forced { // the prompt says that there are no thoughts
		tail := f.close[0]
		out = append(out, lawText{name: tools + "/" + reasoning + "/bare", tools: tools, reasoning: reasoning, tail: tail, text: say[0] + "Hm." + say[1] + one, fs: lawFunctions,
			want: "content Hm.\ncall look {\"s\":\"K4\"}\n", well: true})
		return out
	}
	add("bare", say[0]+"Hm."+say[1]+one, "content Hm.\ncall look {\"s\":\"K4\"}\n", !slices.Contains([]string{"json", "pythonic", "xlam"}, tools))
	return out
}

// lawParser makes a parser whose ids can be foretold.
func lawParser(t testing.TB, c lawText) *Parser {
	p, err := New(Options{Tools: c.tools, Reasoning: c.reasoning, Functions: c.fs, Tail: c.tail, NewID: func(n int, _ string) string { return fmt.Sprint("id", n) }})
	if err != nil {
		t.Fatalf("%s: %v", c.name, err)
	}
	return p
}

// merged joins pieces of the same text, so that events can be compared however they were cut.
type merged struct{ out []Event }

func (m *merged) add(events []Event) {
	for _, e := range events {
		e.Text = strings.Clone(e.Text)
		if n := len(m.out); n > 0 && (e.Kind == Content || e.Kind == Reasoning || e.Kind == CallArguments) && m.out[n-1].Kind == e.Kind && m.out[n-1].Call == e.Call {
			m.out[n-1].Text += e.Text
		} else if e.Text != "" || e.Kind != Content && e.Kind != Reasoning && e.Kind != CallArguments {
			m.out = append(m.out, e)
		}
	}
}

func run(t testing.TB, c lawText, cut bool, pieces ...string) []Event {
	p := lawParser(t, c)
	var m merged
	for _, s := range pieces {
		m.add(p.Feed(s))
	}
	m.add(p.Finish(cut))
	return m.out
}

// tell writes events as a test can state them.
func tell(events []Event) string {
	var b strings.Builder
	args, name := "", ""
	for _, e := range events {
		switch e.Kind {
		case Content:
			fmt.Fprintf(&b, "content %s\n", e.Text)
		case Reasoning:
			fmt.Fprintf(&b, "reasoning %s\n", e.Text)
		case CallBegin:
			args, name = "", e.Name
		case CallArguments:
			args += e.Text
		case CallEnd:
			var flat bytes.Buffer
			if json.Compact(&flat, []byte(args)) != nil {
				flat.WriteString("no JSON: " + args)
			}
			fmt.Fprintf(&b, "call %s %s\n", name, flat.String())
		}
	}
	return b.String()
}

// TestWire: what models write of each format is read as what they mean, and no byte of markup is left.
func TestWire(t *testing.T) {
	for _, c := range lawTexts(t) {
		if !c.well {
			continue
		}
		events := run(t, c, false, c.text)
		if got := tell(events); got != c.want {
			t.Errorf("%s: %q\n got %s\nwant %s", c.name, c.text, got, c.want)
		}
	}
}

// thorough tries every pair of cuts of the long texts, too.
var thorough = os.Getenv("DYNAMO_TEST_LAW") == "all"

// TestLaw: for every split of an output the events are those of the whole.
func TestLaw(t *testing.T) {
	for _, c := range lawTexts(t) {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			law(t, c)
		})
	}
}

func law(t *testing.T, c lawText) {
	for _, cut := range []bool{false, true} {
		whole := run(t, c, cut, c.text)
		check := func(how string, pieces ...string) bool {
			if got := run(t, c, cut, pieces...); !slices.Equal(got, whole) {
				t.Errorf("%s, cut %v: %q\n got %+v\nwant %+v", how, cut, pieces, got, whole)
				return false
			}
			return true
		}
		n := len(c.text)
		for i := 0; i <= n; i++ {
			if !check("one cut", c.text[:i], c.text[i:]) {
				return
			}
		}
		step := 1
		if !thorough {
			step = 1 + n*n/2000
		}
		for i, k := 0, 0; i <= n; i++ {
			for j := i; j <= n; j++ {
				if k++; k%step == 0 && !check("two cuts", c.text[:i], c.text[i:j], c.text[j:]) {
					return
				}
			}
		}
		var bytewise, runewise []string
		for i := range n {
			bytewise = append(bytewise, c.text[i:i+1])
		}
		for s := c.text; s != ""; {
			_, w := utf8.DecodeRuneInString(s)
			runewise, s = append(runewise, s[:w]), s[w:]
		}
		check("bytes", bytewise...)
		check("runes", runewise...)
		r := rand.New(rand.NewPCG(1, uint64(n)))
		for range 20 {
			var pieces []string
			for s := c.text; s != ""; {
				w := min(len(s), 1+r.IntN(9))
				pieces, s = append(pieces, s[:w]), s[w:]
			}
			if !check("random", pieces...) {
				return
			}
		}
	}
}
