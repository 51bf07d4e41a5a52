package render_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/dynamograph/dynamo/nodes/text/family"
	"github.com/dynamograph/dynamo/nodes/text/render"
	"github.com/dynamograph/dynamo/nodes/text/template"
)

// The prompts are those that the authors' program writes: see scripts/render.
func TestDeepSeekV32(t *testing.T) {
	source, ok := render.Find("deepseek_v3_2")
	if !ok {
		t.Fatal("not found")
	}
	tp, err := template.Compile(source, template.Options{})
	if err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile("testdata/deepseek_v3_2.json")
	if err != nil {
		t.Fatal(err)
	}
	var all struct {
		Cases []struct {
			Name            string
			Thinking        bool
			Messages, Tools json.RawMessage
			Want            string
		}
	}
	if err := json.Unmarshal(b, &all); err != nil {
		t.Fatal(err)
	}
	if len(all.Cases) < 50 {
		t.Fatalf("%d cases", len(all.Cases))
	}
	for _, c := range all.Cases {
		p, err := tp.Render(context.Background(), template.Input{
			Messages: c.Messages, Tools: c.Tools, Args: json.RawMessage(fmt.Sprintf(`{"thinking":%t}`, c.Thinking)), Generate: true,
		})
		if err != nil || p.Text != c.Want {
			t.Errorf("%s, thinking %t: %v\n got %q\nwant %q", c.Name, c.Thinking, err, p.Text, c.Want)
		}
	}
	p, err := tp.Render(context.Background(), template.Input{Messages: json.RawMessage(`[{"role":"user","content":"Hi"}]`)})
	if err != nil || !strings.HasSuffix(p.Text, "<｜User｜>Hi") {
		t.Errorf("without a turn to open: %q %v", p.Text, err)
	}
	for _, bad := range []string{`[{"role":"tool","content":"x"}]`, `[{"role":"bogus","content":"x"}]`} {
		if _, err := tp.Render(context.Background(), template.Input{Messages: json.RawMessage(bad), Generate: true}); err == nil {
			t.Errorf("%s is rendered", bad)
		}
	}
}

// A card names no renderer that is not here.
func TestCards(t *testing.T) {
	for _, c := range family.All() {
		if _, ok := render.Find(c.Template); c.Template != "" && !ok {
			t.Errorf("%s: there is no renderer %q", c.Name, c.Template)
		}
	}
}
