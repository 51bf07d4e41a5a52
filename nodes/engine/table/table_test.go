package table

import (
	"crypto/sha256"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestFiles holds the committed tables to their digests, their size and their shape.
func TestFiles(t *testing.T) {
	want, err := files.ReadFile("SHA256SUMS")
	if err != nil {
		t.Fatal(err)
	}
	sums, size := "", 0
	for _, name := range slices.Sorted(maps.Keys(engines)) {
		b, err := files.ReadFile(name + ".json")
		if err != nil {
			t.Fatal(err)
		}
		sums += fmt.Sprintf("%x  %s.json\n", sha256.Sum256(b), name)
		size += len(b)
	}
	if sums != string(want) {
		t.Errorf("SHA256SUMS is\n%sand not\n%s: run make engine-tables", want, sums)
	}
	if size > 300<<10 {
		t.Errorf("the tables have %d bytes: at most 300 KiB", size)
	}
	least := map[string]struct{ releases, flags int }{"vllm": {3, 150}, "sglang": {2, 250}, "llamacpp": {2, 200}}
	if len(engines) != len(least) {
		t.Errorf("%d engines", len(engines))
	}
	for name, want := range least {
		e := Find(name)
		if e == nil {
			t.Fatalf("no %s", name)
		}
		if len(e.Releases) < want.releases {
			t.Errorf("%s: %d releases", name, len(e.Releases))
		}
		seen := map[string]bool{}
		for _, r := range e.Releases {
			if seen[r.Version] || r.File == "" || !regexp.MustCompile("^[0-9a-f]{64}$").MatchString(r.SHA256) {
				t.Errorf("%s %s: file %q, sha256 %q", name, r.Version, r.File, r.SHA256)
			}
			seen[r.Version] = true
			if n := len(r.Flags()); n < want.flags {
				t.Errorf("%s %s: only %d flags", name, r.Version, n)
			}
			for _, n := range r.Flags() {
				if n != Bare(n) {
					t.Errorf("%s %s: flag %q is not in its plain form", name, r.Version, n)
				}
			}
		}
		types := []Type{Switch, Int, Float, Text, JSON, List, Any}
		for n, variants := range e.flags {
			var in uint64
			for _, v := range variants {
				if !slices.Contains(types, v.flag.Type) {
					t.Errorf("%s: %s: type %q", name, n, v.flag.Type)
				}
				if in&v.in != 0 && v.flag.Name == n {
					t.Errorf("%s: %s: two variants in one release", name, n)
				}
				in |= v.in
			}
		}
	}
}

// TestFacts holds what is known of these engines from running them.
func TestFacts(t *testing.T) {
	for _, tt := range []struct {
		engine, version, flag string
		want                  Flag
		off                   bool
	}{
		{engine: "vllm", version: "0.32.0", flag: "--max-model-len", want: Flag{Name: "max-model-len", Type: Int}},
		{engine: "vllm", version: "v0.32.0", flag: "enforce_eager", want: Flag{Name: "enforce-eager", Type: Switch, Negated: true}},
		{engine: "vllm", version: "0.32.0+cpu", flag: "no-enable-prefix-caching", want: Flag{Name: "enable-prefix-caching", Type: Switch, Negated: true}, off: true},
		{engine: "vllm", version: "0.32.0", flag: "enable-scale-out", want: Flag{Name: "enable-scale-out", Type: Switch, Negated: true}},
		{engine: "vllm", version: "0.32.0", flag: "tp", want: Flag{Name: "tensor-parallel-size", Aliases: []string{"tp"}, Type: Int}},
		{engine: "vllm", version: "0.32.0", flag: "kv-transfer-config", want: Flag{Name: "kv-transfer-config", Type: JSON}},
		{engine: "vllm", version: "0.32.0", flag: "max-num-batched", want: Flag{Name: "max-num-batched-tokens", Type: Int}},
		{engine: "vllm", version: "0.33.0", flag: "disable-flashinfer-autotune", want: Flag{Name: "enable-flashinfer-autotune", Aliases: []string{"disable-flashinfer-autotune"}, Type: Switch, Negated: true}},
		{engine: "vllm", version: "0.10.0", flag: "no-enable-prefix-caching", want: Flag{Name: "enable-prefix-caching", Type: Switch, Negated: true}, off: true},
		{engine: "sglang", version: "0.5.23", flag: "tp", want: Flag{Name: "tp-size", Aliases: []string{"tensor-parallel-size"}, Type: Int}},
		{engine: "sglang", version: "0.5.23", flag: "page-size", want: Flag{Name: "page-size", Type: Int}},
		{engine: "sglang", version: "0.5.23", flag: "disaggregation-mode", want: Flag{Name: "disaggregation-mode", Type: Text, Choices: []string{"decode", "null", "prefill"}}},
		{engine: "sglang", version: "0.5.23", flag: "disable-radix-cache", want: Flag{Name: "disable-radix-cache", Type: Switch}},
		{engine: "llamacpp", version: "b11434", flag: "slot-save-path", want: Flag{Name: "slot-save-path", Type: Text}},
		{engine: "llamacpp", version: "11434", flag: "c", want: Flag{Name: "ctx-size", Aliases: []string{"c"}, Type: Int}},
	} {
		r, ok := Find(tt.engine).Release(tt.version)
		if !ok {
			t.Errorf("%s: no %s", tt.engine, tt.version)
			continue
		}
		f, off, ok := r.Flag(tt.flag)
		if !ok || off != tt.off || f.Name != tt.want.Name || f.Type != tt.want.Type || f.Negated != tt.want.Negated ||
			tt.want.Choices != nil && !slices.Equal(f.Choices, tt.want.Choices) || tt.want.Aliases != nil && !slices.Equal(f.Aliases, tt.want.Aliases) {
			t.Errorf("%s %s %s: got %+v %v %v", tt.engine, tt.version, tt.flag, f, off, ok)
		}
	}
	has := func(engine, version string, k Kind, name string, want bool) {
		t.Helper()
		r, ok := Find(engine).Release(version)
		if !ok || r.Has(k, name) != want {
			t.Errorf("%s %s: %s %q: want %v", engine, version, k, name, want)
		}
	}
	has("vllm", "0.32.0", Tools, "hermes", true)
	has("vllm", "0.32.0", Tools, "hermess", false)
	has("vllm", "0.32.0", Tools, "hf", true)
	has("vllm", "0.31.0", Tools, "hf", false)
	has("vllm", "0.10.0", Tools, "hermes", true)
	has("vllm", "0.10.0", Tools, "kimi_k3", false)
	has("vllm", "0.32.0", Connectors, "NixlConnector", true)
	has("vllm", "0.32.0", Connectors, "P2pNcclConnector", false)
	has("vllm", "0.32.0", Reasoning, "deepseek_r1", true)
	has("sglang", "0.5.23", Tools, "auto", true)
	has("sglang", "0.5.23", Reasoning, "deepseek-r1", true)
	has("sglang", "0.5.23", Connectors, "mooncake", true)
	has("llamacpp", "b11434", Features, "lora", true)
	has("llamacpp", "b11434", Features, "kv-events", false)
	if _, ok := Find("vllm").Release("9.9.9"); ok {
		t.Error("a version that nobody knows is known")
	}
	r, _ := Find("llamacpp").Release("b11434")
	if _, _, ok := r.Flag("ctx-siz"); ok {
		t.Error("llama.cpp takes no shortened flags")
	}
	if _, _, ok := Find("vllm").Newest().Flag("max-num"); ok {
		t.Error("max-num could be one of several")
	}
	if v := Find("vllm").With(Tools, "hf"); len(v) == 0 || slices.Contains(v, "0.31.0") || !slices.Contains(v, "0.32.0") {
		t.Errorf("hf is in %v", v)
	}
}

func TestDecode(t *testing.T) {
	for name, tt := range map[string]struct{ in, want string }{
		"no JSON":     {"{", "unexpected end"},
		"no releases": {`{"releases": []}`, "0 releases"},
		"many":        {`{"releases": [` + strings.Repeat(`{},`, 64) + `{}]}`, "65 releases"},
	} {
		if _, err := decode("x", []byte(tt.in)); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestScript runs the tests of the script that makes the table: on sources that were written for it, and on the committed table's form.
func TestScript(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err == nil {
		err = exec.Command(python, "-c", "import sys; sys.exit(sys.version_info < (3, 11))").Run()
	}
	if err != nil {
		t.Log("NOT RUN: no python3 of version 3.11 or newer:", err)
		return
	}
	for _, script := range [][]string{{"generate.py", "--check"}, {"test_extract.py"}} {
		c := exec.Command(python, append([]string{"-B"}, script...)...)
		c.Dir = "../../../scripts/engines"
		if out, err := c.CombinedOutput(); err != nil {
			t.Errorf("%v: %v\n%s", script, err, out)
		}
	}
}

// TestPage: the page says which releases are known.
func TestPage(t *testing.T) {
	page, err := os.ReadFile("../../../docs/engines.md")
	if err != nil {
		t.Fatal(err)
	}
	for name, load := range engines {
		e := load()
		want := fmt.Sprintf("| %s | %d, from %s to %s |", name, len(e.Releases), e.Releases[0].Version, e.Newest().Version)
		if !strings.Contains(string(page), want) {
			t.Errorf("docs/engines.md lacks %q", want)
		}
	}
}
