package family_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dynamograph/dynamo/nodes/text/family"
	"github.com/dynamograph/dynamo/nodes/text/parse"
	"github.com/dynamograph/dynamo/nodes/text/template"
)

const (
	chain  = "The user wants <b>weather</b>: need a tool."
	answer = "Let me check."
)

const tools = `[
{"type":"function","function":{"name":"get_weather","description":"Weather","parameters":{"type":"object","properties":{
	"location":{"type":"string"},"unit":{"type":"string"},"days":{"type":"integer"}},"required":["location"]}}},
{"type":"function","function":{"name":"search","description":"Search","parameters":{"type":"object","properties":{
	"query":{"type":"string"},"filters":{"type":"array","items":{"type":"object"}},"opts":{"type":"object"}},"required":["query"]}}}]`

var calls = []string{
	`{"name":"get_weather","arguments":{"location":"Zürich 😀","unit":"12","days":3}}`,
	`{"name":"search","arguments":{"query":"a<b> & \"c\"\nd","filters":[{"k":"x]","v":1.5}],"opts":{"deep":true}}}`,
}

// TestRoundTrip renders a turn with thoughts and calls by each published template that a card names, cuts it out, and reads it back by the
// parsers that the card names.
func TestRoundTrip(t *testing.T) {
	dir := os.Getenv("DYNAMO_SHARED")
	if dir == "" {
		t.Skip("NOT RUN: set DYNAMO_SHARED to the folder with the recorded templates")
	}
	b, err := os.ReadFile(filepath.Join(dir, "templates", "templates.json"))
	if err != nil {
		t.Fatal(err)
	}
	var sources map[string]string
	if err := json.Unmarshal(b, &sources); err != nil {
		t.Fatal(err)
	}
	for _, c := range family.All() {
		for _, name := range c.Real {
			t.Run(name, func(t *testing.T) {
				source, ok := sources[name+".jinja"]
				if !ok {
					t.Fatalf("there is no template %s", name)
				}
				o := template.Options{Special: map[string]string{"bos_token": "<s>", "eos_token": "</s>"}, Now: func() time.Time { return time.Unix(1750000000, 0) }}
				tm, err := template.Compile(source, o)
				if err != nil {
					t.Fatal(err)
				}
				back(t, c, tm, len(c.Reasoning) > 0 && !slices.Contains(family.Unthought, name))
			})
		}
	}
}

func back(t *testing.T, c family.Card, tm *template.Template, thinks bool) {
	done, thought := 0, false
	for _, content := range []string{answer, ""} {
		for n := 1; n <= 2; n++ {
			what := fmt.Sprintf("%d calls, content %q", n, content)
			prompt, turn, err := rendered(c, tm, content, n)
			if err != nil {
				t.Logf("%s: %v", what, err)
				continue
			}
			done++
			got := read(t, c, prompt, turn)
			want := message{}
			for _, s := range calls[:n] {
				var w call
				if err := json.Unmarshal([]byte(s), &w); err != nil {
					t.Fatal(err)
				}
				if strings.Contains(turn, w.Name) { // some templates show one call alone
					want.calls = append(want.calls, w)
				}
			}
			if len(want.calls) == 0 {
				t.Errorf("%s: the template shows no call: %q", what, turn)
			}
			if strings.Contains(turn, chain) {
				want.reasoning, thought = chain, true
			}
			if strings.Contains(turn, answer) {
				want.content = answer
				if c.Tools[0] == "harmony" { // the template shows what was said before a call as analysis
					want.content, want.reasoning = "", strings.TrimSpace(answer)
				}
			}
			if !reflect.DeepEqual(got, want) {
				t.Errorf("%s: ...%q and\n%s\n got %+v\nwant %+v", what, prompt[max(0, len(prompt)-40):], turn, got, want)
			}
		}
	}
	if done == 0 {
		t.Error("nothing could be rendered")
	}
	if thought != thinks {
		t.Errorf("thoughts %v, want %v", thought, thinks)
	}
	t.Logf("%d turns, thoughts %v", done, thought)
}

// rendered gives a prompt and the turn that the template makes of the model's answer to it.
func rendered(c family.Card, tm *template.Template, content string, n int) (prompt, turn string, err error) {
	history := `[{"role":"user","content":"Weather?"}`
	var made, results []string
	for i, s := range calls[:n] {
		id := fmt.Sprintf("call0000%d", i)
		made = append(made, fmt.Sprintf(`{"id":%q,"type":"function","function":%s}`, id, s))
		results = append(results, fmt.Sprintf(`{"role":"tool","tool_call_id":%q,"name":"x","content":"cold"}`, id))
	}
	said := fmt.Sprintf(`{"role":"assistant","content":%q,"reasoning_content":%q,"reasoning":%q,"thinking":%q,"tool_calls":[%s]}`,
		content, chain, chain, chain, strings.Join(made, ","))
	args := "{}"
	if c.Thinking.Arg != "" {
		args = fmt.Sprintf(`{%q:%s}`, c.Thinking.Arg, c.Thinking.On)
	}
	render := func(messages string, generate bool) (string, error) {
		p, err := tm.Render(context.Background(), template.Input{Messages: []byte(messages), Tools: []byte(tools), Args: []byte(args), Generate: generate})
		return p.Text, err
	}
	if prompt, err = render(history+"]", true); err != nil {
		return "", "", err
	}
	all, err := render(history+","+said+","+strings.Join(results, ",")+"]", false)
	if err != nil {
		return "", "", err
	}
	opens, closes := "", ""
	if len(c.Reasoning) > 0 {
		opens, closes = parse.ReasoningMarks(c.Reasoning[0])
	}
	prompt, turn, err = apart(prompt, all, strings.TrimSpace(opens), closes)
	end := len(turn)
	for _, stop := range append([]string{"[cold"}, c.Stop...) { // Apertus's turn goes on behind the results
		if i := strings.Index(turn, stop); i >= 0 {
			end = min(end, i)
		}
	}
	return prompt, turn[:end], err
}

// apart finds the turn behind the prompt. Marks of thoughts that end the prompt stand in the turn, too, but where the template leaves out the
// thoughts of the history: then they are put back, since the model would have written them.
func apart(prompt, all, opens, closes string) (string, string, error) {
	if turn, ok := strings.CutPrefix(all, prompt); ok {
		return prompt, turn, nil
	}
	base, open := strings.TrimRight(prompt, "\n "), false
	if opens != "" {
		base = strings.TrimRight(strings.TrimSuffix(base, closes), "\n ")
		open = base == strings.TrimRight(prompt, "\n ")
		base = strings.TrimSuffix(base, opens)
	}
	turn, ok := strings.CutPrefix(all, base)
	switch {
	case !ok:
		return "", "", fmt.Errorf("the prompt %q is not in the history", prompt[max(0, len(prompt)-60):])
	case opens != "" && strings.HasPrefix(strings.TrimLeft(turn, "\n "), opens):
		return base, turn, nil
	case open:
		turn = chain + "\n" + closes + "\n" + turn
	}
	return prompt, turn, nil
}

type call struct {
	Name      string
	Arguments any
}

type message struct {
	reasoning, content string
	calls              []call
}

func read(t *testing.T, c family.Card, prompt, turn string) (m message) {
	o := parse.Options{Tools: c.Tools[0], Tail: prompt}
	if len(c.Reasoning) > 0 {
		o.Reasoning = c.Reasoning[0]
	}
	var list []struct{ Function parse.Function }
	if err := json.Unmarshal([]byte(tools), &list); err != nil {
		t.Fatal(err)
	}
	for _, f := range list {
		o.Functions = append(o.Functions, f.Function)
	}
	p, err := parse.New(o)
	if err != nil {
		t.Fatal(err)
	}
	events := append([]parse.Event{}, p.Feed(turn)...)
	events = append(events, p.Finish(false)...)
	args := ""
	for _, e := range events {
		switch e.Kind {
		case parse.Content:
			m.content += e.Text
		case parse.Reasoning:
			m.reasoning += e.Text
		case parse.CallBegin:
			args = ""
			m.calls = append(m.calls, call{Name: e.Name})
		case parse.CallArguments:
			args += e.Text
		case parse.CallEnd:
			if err := json.Unmarshal([]byte(args), &m.calls[e.Call].Arguments); err != nil {
				t.Errorf("%q: %v", args, err)
			}
		}
	}
	m.content = strings.TrimSpace(m.content)
	return m
}
