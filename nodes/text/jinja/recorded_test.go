package jinja

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

var fixed = func() time.Time { return time.Date(2025, 6, 15, 10, 20, 30, 0, time.UTC) }

// TestRecorded renders 72 real templates with 20 contexts each: the text, and the exception with its words, are those of transformers.
func TestRecorded(t *testing.T) {
	dir := os.Getenv("DYNAMO_SHARED")
	if dir == "" {
		t.Skip("NOT RUN: set DYNAMO_SHARED to the folder with the recorded cases")
	}
	var sources map[string]string
	read := func(name string) []byte {
		b, err := os.ReadFile(filepath.Join(dir, "templates", name))
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	if err := json.Unmarshal(read("templates.json"), &sources); err != nil {
		t.Fatal(err)
	}
	templates := map[string]*Template{}
	for name, src := range sources {
		tp, err := Compile(src, Options{Now: fixed})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		templates[name] = tp
	}
	total, agree, worded := 0, 0, 0
	sc := bufio.NewScanner(bytes.NewReader(read("cases.jsonl")))
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
		total++
		vars := map[string]Value{}
		for k, raw := range c.Ctx {
			v, err := ParseJSON(raw, nil)
			if err != nil {
				t.Fatal(err)
			}
			vars[k] = v
		}
		tp := templates[c.T]
		if tp == nil {
			continue
		}
		got, err := tp.Render(context.Background(), Input{Vars: vars})
		if c.Out != nil {
			if err == nil && got == *c.Out {
				agree++
			} else {
				t.Errorf("%s %s: %v\n got %.600q\nwant %.600q", c.T, c.C, err, got, *c.Out)
			}
			continue
		}
		e, ok := err.(*Error)
		if !ok {
			t.Errorf("%s %s: %v, want %s\n got %.600q", c.T, c.C, err, c.Err, got)
			continue
		}
		agree++
		words := e.Type + ": " + e.Msg
		if words == c.Err || len([]rune(c.Err)) >= 200 && strings.HasPrefix(words, c.Err) {
			worded++
		} else {
			t.Logf("%s %s: %q, in Python %q", c.T, c.C, words, c.Err)
		}
	}
	t.Logf("%d of %d agree; %d exceptions have the same words", agree, total, worded)
	if total < 1440 {
		t.Errorf("only %d cases", total)
	}
}
