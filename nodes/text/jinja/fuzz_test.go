package jinja

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"testing"
)

func seeds(f *testing.F) (sources []string, base json.RawMessage) {
	b, err := os.ReadFile("testdata/snippets.jsonl")
	if err != nil {
		f.Fatal(err)
	}
	for sc := bufio.NewScanner(bytes.NewReader(b)); sc.Scan(); {
		var c snippet
		if err := json.Unmarshal(sc.Bytes(), &c); err != nil {
			f.Fatal(err)
		}
		if c.Base != nil {
			base = c.Base
		} else {
			sources = append(sources, c.T)
		}
	}
	return sources, base
}

// bug reports whether err says that this package is wrong.
func bug(err error) bool {
	var e *Error
	var es Errors
	return errors.As(err, &e) && e.Type == TypeBug || errors.As(err, &es) && es[0].Type == TypeBug
}

// FuzzParse: no source makes Compile panic.
func FuzzParse(f *testing.F) {
	sources, _ := seeds(f)
	for _, s := range sources {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, source string) {
		if _, err := Compile(source, Options{}); bug(err) {
			t.Fatal(err)
		}
	})
}

// FuzzRender: no template panics or takes more than its share, with marks and without.
func FuzzRender(f *testing.F) {
	sources, base := seeds(f)
	for _, s := range sources {
		f.Add(s, "text")
	}
	f.Fuzz(func(t *testing.T, source, text string) {
		tp, err := Compile(source, Options{Now: fixed})
		if err != nil {
			return
		}
		in := Input{Vars: vars(t, base), Limits: Limits{Steps: 20_000, Memory: 4 << 20, Output: 1 << 20}}
		in.Vars["x"] = text
		if _, err := tp.Render(context.Background(), in); bug(err) {
			t.Fatal(err)
		}
		in.Mark, in.Vars["s"] = 0xFDD0, "a\uFDD0"+text+"\uFDD0"
		if _, err := tp.Render(context.Background(), in); bug(err) {
			t.Fatal(err)
		}
	})
}
