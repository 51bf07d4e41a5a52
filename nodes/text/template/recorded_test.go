package template

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"
)

var fixed = func() time.Time { return time.Date(2025, 6, 15, 10, 20, 30, 0, time.UTC) }

// TestRecorded renders 72 real templates with 20 requests each and counts where transformers gave the same: the same text, or an error.
func TestRecorded(t *testing.T) {
	dir := os.Getenv("DYNAMO_SHARED")
	if dir == "" {
		t.Skip("NOT RUN: set DYNAMO_SHARED to the folder with the recorded cases")
	}
	var sources map[string]string
	b, err := os.ReadFile(filepath.Join(dir, "templates", "templates.json"))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, &sources); err != nil {
		t.Fatal(err)
	}
	o := Options{Special: map[string]string{"bos_token": "<s>", "eos_token": "</s>", "pad_token": "<pad>"}, Now: fixed}
	templates := map[string]*Template{}
	for name, src := range sources {
		tp, err := Compile(src, o)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		tp.takes = abilities{parts: true, argsText: true} // transformers brings messages to no other form
		templates[name] = tp
	}
	if b, err = os.ReadFile(filepath.Join(dir, "templates", "cases.jsonl")); err != nil {
		t.Fatal(err)
	}
	var total, rendered, agree, agreeRendered int
	sc := bufio.NewScanner(bytes.NewReader(b))
	sc.Buffer(nil, 4<<20)
	for sc.Scan() {
		var c struct {
			T, C string
			Ctx  map[string]json.RawMessage
			Out  *string
			Err  string
		}
		if err := json.Unmarshal(sc.Bytes(), &c); err != nil {
			t.Fatal(err)
		}
		in := Input{Messages: c.Ctx["messages"], Tools: c.Ctx["tools"], Generate: string(c.Ctx["add_generation_prompt"]) == "true"}
		for _, k := range []string{"messages", "tools", "add_generation_prompt", "bos_token", "eos_token", "pad_token"} {
			delete(c.Ctx, k)
		}
		in.Args, _ = json.Marshal(c.Ctx)
		p, err := templates[c.T].Render(context.Background(), in)
		total++
		if c.Out == nil {
			if err != nil {
				agree++
			}
			continue
		}
		rendered++
		if err == nil && p.Text == *c.Out {
			agree++
			agreeRendered++
		} else if testing.Verbose() {
			t.Logf("%s %s: %v\n got %.600q\nwant %.600q", c.T, c.C, err, p.Text, *c.Out)
		}
	}
	t.Logf("%d of %d agree; of %d that transformers renders, %d", agree, total, rendered, agreeRendered)
	if agree < total || total < 1440 {
		t.Errorf("%d of %d rendered alike: not as transformers does", agreeRendered, rendered)
	}
}
