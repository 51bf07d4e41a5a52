package parse

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// crumbs are what is near the markup of formats, and inside it.
var crumbs = []string{
	`{"name":"f","arguments":`, `{"name": "g", "parameters": `, `"arguments":{"a":1},"name":"f"}`, `{}`, `}`, `]`, `[`, `{`, `"`, `\`, `\"`, `\u00`, `\ud83d\ude00`, `:`, `,`, `;`,
	` `, "\n", "\n\n", `null`, `true`, `1.5`, `'`, `f(a=`, `[f(a='x', b=[1, {'k': None}])]`, `)`, "name", "call:f{k:", "functions.f:0", "to=functions.f", "analysis", "commentary",
	"final", "assistant", "function", "```json\n", "```", "é", "😀", "｜", "<", "<|", "</", "text", "\x00", "\u00a0", "</s>",
	"<function=f>", "<parameter=a>", "</parameter>", "</function>", `<invoke name="f">`, `<parameter name="a">`, "</invoke>", "<arg_key>a</arg_key>", "<arg_value>1</arg_value>",
}

// babble is a text of about n pieces, of marks and what is near them.
func babble(r *rand.Rand, marks []string, n int) string {
	var b strings.Builder
	for range n {
		switch k := r.IntN(10); {
		case k < 4 && len(marks) > 0:
			m := marks[r.IntN(len(marks))]
			if r.IntN(6) == 0 { // a part of one
				m = m[:r.IntN(len(m))]
			}
			b.WriteString(m)
		default:
			b.WriteString(crumbs[r.IntN(len(crumbs))])
		}
	}
	return b.String()
}

// FuzzSplit: for every text and every way to split it, the events are those of the whole, and they are bounded by it.
func FuzzSplit(f *testing.F) {
	for i := range 40 {
		f.Add(uint64(i), "")
	}
	for _, c := range crookedCases {
		f.Add(uint64(len(c.text)), c.text)
	}
	f.Fuzz(func(t *testing.T, seed uint64, text string) { split(t, seed, text) })
}

// TestSplit is FuzzSplit with texts of its own.
func TestSplit(t *testing.T) {
	for seed := range uint64(4000) {
		if split(t, seed, ""); t.Failed() {
			return
		}
	}
}

func split(t *testing.T, seed uint64, text string) {
	r := rand.New(rand.NewPCG(seed, 1))
	formats, thoughts := append(ToolFormats(), ""), append(ReasoningFormats(), "")
	c := lawText{tools: formats[r.IntN(len(formats))], reasoning: thoughts[r.IntN(len(thoughts))], fs: lawFunctions}
	if r.IntN(2) == 0 && usual[c.tools] != "" {
		c.reasoning = usual[c.tools]
	}
	marks := Markers(c.tools, c.reasoning)
	if r.IntN(4) == 0 && len(marks) > 0 {
		c.tail = marks[r.IntN(len(marks))]
	}
	if c.text = text; text == "" {
		c.text = babble(r, marks, r.IntN(30))
	}
	c.name = fmt.Sprintf("seed %d, %s/%s, tail %q", seed, c.tools, c.reasoning, c.tail)
	cut := r.IntN(2) == 0
	whole := run(t, c, cut, c.text)
	var pieces []string
	for s := c.text; s != ""; {
		n := min(len(s), 1+r.IntN(1+r.IntN(12)))
		pieces, s = append(pieces, s[:n]), s[n:]
	}
	if got := run(t, c, cut, pieces...); !slices.Equal(got, whole) {
		t.Errorf("%s, cut %v: %q\n got %+v\nwant %+v", c.name, cut, pieces, got, whole)
	}
	size, open := 0, -1
	for i, e := range whole {
		size += len(e.Text) + len(e.Name)
		switch e.Kind {
		case CallBegin:
			if open = e.Call; e.Name == "" || e.ID == "" {
				t.Errorf("%s: %+v", c.name, e)
			}
		case CallArguments, CallEnd:
			if e.Call != open {
				t.Errorf("%s: %+v outside of its call, behind %+v", c.name, e, whole[:i])
			}
			if e.Kind == CallEnd {
				open = -1
			}
		}
	}
	if limit := 6*len(c.text) + 16; size > limit { // an escape is six bytes for one
		t.Errorf("%s: %d bytes of %d: %q %+v", c.name, size, len(c.text), c.text, whole)
	}
}

// TestLinear: what an output makes the parser copy grows as the output does, whatever is held back, and however it is split.
func TestLinear(t *testing.T) {
	copied := func(tools, lead, unit string, n int) uint64 {
		p, err := New(Options{Tools: tools})
		if err != nil {
			t.Fatal(err)
		}
		defer p.Close()
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		p.Feed(lead)
		for range n {
			p.Feed(unit)
		}
		p.Finish(false)
		runtime.ReadMemStats(&after)
		return after.TotalAlloc - before.TotalAlloc
	}
	for _, name := range ToolFormats() {
		for _, lead := range append(slices.Clone(tools()[name].begins), "", `<tool_call>{"arguments":{"a":"`, `[TOOL_CALLS]f[ARGS]"`, "[f(a='", "```json\n[{\"x") {
			for _, unit := range []string{" ", "x", `\"`, "{", lead} {
				little, much := copied(name, lead, unit, 2000), copied(name, lead, unit, 8000)
				if much > 8*little+1<<20 {
					t.Errorf("%s: %d bytes copied for 2000 times %q behind %q, %d for 8000", name, little, unit, lead, much)
				}
			}
		}
	}
}
