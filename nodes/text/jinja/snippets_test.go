package jinja

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

type snippet struct {
	T    string
	C    string // what it is called, where its template is long
	Base json.RawMessage
	V    json.RawMessage
	Out  *string
	Err  string
}

// TestSnippets renders templates of our own, one for each thing that the language has; what transformers makes of them is recorded.
func TestSnippets(t *testing.T) {
	b, err := os.ReadFile("testdata/snippets.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	checkSnippets(t, b)
}

// TestEqualTransformers asks transformers itself.
func TestEqualTransformers(t *testing.T) {
	python := os.Getenv("DYNAMO_TEST_TRANSFORMERS")
	if python == "" {
		t.Skip("NOT RUN: set DYNAMO_TEST_TRANSFORMERS to a Python that has transformers and jinja2")
	}
	b, err := os.ReadFile("testdata/snippets.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	checkSnippets(t, rendered(t, python, b))
}

// TestEqualContexts asks transformers what the published templates make of contexts of our own.
func TestEqualContexts(t *testing.T) {
	python, dir := os.Getenv("DYNAMO_TEST_TRANSFORMERS"), os.Getenv("DYNAMO_SHARED")
	if python == "" || dir == "" {
		t.Skip("NOT RUN: set DYNAMO_TEST_TRANSFORMERS, and DYNAMO_SHARED to the folder with the published templates")
	}
	var templates map[string]string
	b, err := os.ReadFile(filepath.Join(dir, "templates", "templates.json"))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, &templates); err != nil {
		t.Fatal(err)
	}
	if b, err = os.ReadFile("testdata/contexts.jsonl"); err != nil {
		t.Fatal(err)
	}
	var in bytes.Buffer
	enc := json.NewEncoder(&in)
	enc.SetEscapeHTML(false)
	for _, name := range slices.Sorted(maps.Keys(templates)) {
		sc := bufio.NewScanner(bytes.NewReader(b))
		for sc.Scan() {
			var c snippet
			if err := json.Unmarshal(sc.Bytes(), &c); err != nil {
				t.Fatal(err)
			}
			if c.C = name + ", " + c.C; enc.Encode(map[string]any{"c": c.C, "t": templates[name], "v": c.V}) != nil {
				t.Fatal(c.C)
			}
		}
	}
	checkSnippets(t, rendered(t, python, in.Bytes()))
}

// rendered is what testdata/render.py makes of lines.
func rendered(t *testing.T, python string, lines []byte) []byte {
	t.Helper()
	cmd := exec.Command(python, "testdata/render.py")
	cmd.Stdin = bytes.NewReader(lines)
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func vars(t testing.TB, raws ...json.RawMessage) map[string]Value {
	t.Helper()
	out := map[string]Value{}
	for _, raw := range raws {
		if len(raw) == 0 {
			continue
		}
		v, err := ParseJSON(raw, nil)
		if err != nil {
			t.Fatal(err)
		}
		d := v.(*Dict)
		for i := range d.Len() {
			k, v := d.At(i)
			out[k.(string)] = v
		}
	}
	return out
}

func checkSnippets(t *testing.T, b []byte) {
	t.Helper()
	var base json.RawMessage
	n, refused, worded := 0, 0, 0
	sc := bufio.NewScanner(bytes.NewReader(b))
	sc.Buffer(nil, 4<<20)
	for sc.Scan() {
		var c snippet
		if err := json.Unmarshal(sc.Bytes(), &c); err != nil {
			t.Fatal(err)
		}
		if c.Base != nil {
			base = c.Base
			continue
		}
		n++
		name := c.C
		if name == "" {
			name = c.T
		}
		tp, err := Compile(c.T, Options{Now: fixed})
		got := ""
		if err == nil {
			got, err = tp.Render(context.Background(), Input{Vars: vars(t, base, c.V)})
		}
		if c.Out != nil {
			if err != nil || got != *c.Out {
				t.Errorf("%q: %q, %v\n want %q", name, got, err, *c.Out)
			}
			continue
		}
		if err == nil {
			t.Errorf("%q: %q, want %s", name, got, c.Err)
			continue
		}
		refused++
		var e *Error
		var es Errors
		if errors.As(err, &es) {
			e = es[0]
		} else if !errors.As(err, &e) {
			t.Fatalf("%q: %T", name, err)
		}
		if e.Type == TypeBug {
			t.Errorf("%q: %v", name, err)
		}
		if words := e.Type + ": " + e.Msg; words == c.Err {
			worded++
		} else if testing.Verbose() {
			t.Logf("%q: %s\n   in Python %s", name, words, strings.TrimSpace(c.Err))
		}
	}
	if sc.Err() != nil {
		t.Fatal(sc.Err())
	}
	t.Logf("%d snippets, %d refused, %d in the same words", n, refused, worded)
	if n < 1000 {
		t.Errorf("only %d snippets", n)
	}
}
