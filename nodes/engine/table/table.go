// Package table is what the releases of foreign engines take on their command lines and have: flags with their types and values, parsers,
// KV connectors, features. The facts are read by scripts/engines out of the packages that their authors publish; each release is named with
// its file and SHA-256. The package also holds which formats of tool calls and reasoning the families of models speak (formats.go,
// families.go), which is ours. It knows nothing of graphs and finds no mistakes: package check does.
//
// Everything here is read-only and safe for concurrent use.
package table

import (
	"embed"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
)

//go:embed *.json SHA256SUMS
var files embed.FS

// Type says what a flag takes.
type Type string

// The types. Any is what could not be read for certain: whatever is given to it is right.
const (
	Switch Type = "switch" // nothing, or true and false
	Int    Type = "int"
	Float  Type = "float"
	Text   Type = "text"
	JSON   Type = "json"
	List   Type = "list" // one value or several
	Any    Type = "any"
)

// Flag is one command-line flag of a release. Names are without the hyphens before them.
type Flag struct {
	Name    string   // as the engine's own help calls it: "max-model-len"
	Aliases []string // its other names
	Type    Type
	Choices []string // all values that it takes, sorted; empty: not known, or any
	Negated bool     // "no-" before the name turns it off
}

// Release is one version of an engine, or of all of them (see Engine.Ever).
type Release struct {
	Version string // as its authors write it: "0.32.0", "b11434"; "" for Engine.Ever
	File    string // of the package that the facts were read from
	SHA256  string // of that file, as the package index states it

	engine *Engine
	bits   uint64
}

// Engine is what is known of one engine.
type Engine struct {
	Name     string    // as a graph calls it: "vllm"
	Package  string    // that the facts were read from
	Releases []Release // oldest first

	flags map[string][]variant
	lists map[Kind]map[string]uint64
}

type variant struct {
	flag Flag
	in   uint64 // bits of the releases
}

// Kind is a kind of names that a release has.
type Kind string

// The kinds.
const (
	Tools      Kind = "tools"      // parsers of tool calls
	Reasoning  Kind = "reasoning"  // parsers of reasoning
	Connectors Kind = "connectors" // that move KV
	Features   Kind = "features"   // names of kind.Features, "kv-events", "kv-transfer"
)

// engines are decoded when they are first asked for.
var engines = func() map[string]func() *Engine {
	out := map[string]func() *Engine{}
	for _, name := range []string{"llamacpp", "sglang", "vllm"} {
		out[name] = sync.OnceValue(func() *Engine {
			b, err := files.ReadFile(name + ".json")
			if err == nil {
				var e *Engine
				if e, err = decode(name, b); err == nil {
					return e
				}
			}
			panic(name + ".json: " + err.Error()) // embedded, and decoded by a test
		})
	}
	return out
}()

// decode reads the form that scripts/engines/generate.py writes.
func decode(name string, b []byte) (*Engine, error) {
	type flag struct {
		Type    Type     `json:"type"`
		Choices []string `json:"choices"`
		Aliases []string `json:"aliases"`
		Negated bool     `json:"negated"`
		In      uint64   `json:"in"` // bits; 0: all
	}
	var raw struct {
		Package  string `json:"package"`
		Releases []struct {
			Version string `json:"version"`
			File    string `json:"file"`
			SHA256  string `json:"sha256"`
		} `json:"releases"`
		Flags      map[string][]flag `json:"flags"`
		Tools      map[string]uint64 `json:"tools"` // bits; 0: all
		Reasoning  map[string]uint64 `json:"reasoning"`
		Connectors map[string]uint64 `json:"connectors"`
		Features   map[string]uint64 `json:"features"`
	}
	if err := json.Unmarshal(b, &raw); err != nil {
		return nil, err
	}
	n := len(raw.Releases)
	if n == 0 || n > 64 {
		return nil, fmt.Errorf("%d releases: want 1 to 64", n)
	}
	bits := func(in uint64) uint64 {
		if in == 0 {
			return ^uint64(0) >> (64 - n)
		}
		return in
	}
	e := &Engine{Name: name, Package: raw.Package, flags: make(map[string][]variant, 2*len(raw.Flags)), lists: map[Kind]map[string]uint64{}}
	for i, v := range raw.Releases {
		e.Releases = append(e.Releases, Release{Version: v.Version, File: v.File, SHA256: v.SHA256, engine: e, bits: 1 << i})
	}
	for name, variants := range raw.Flags {
		for _, v := range variants {
			f := variant{Flag{Name: name, Aliases: v.Aliases, Type: v.Type, Choices: v.Choices, Negated: v.Negated}, bits(v.In)}
			e.flags[name] = append(e.flags[name], f)
			for _, other := range v.Aliases {
				e.flags[other] = append(e.flags[other], f)
			}
		}
	}
	for k, names := range map[Kind]map[string]uint64{Tools: raw.Tools, Reasoning: raw.Reasoning, Connectors: raw.Connectors, Features: raw.Features} {
		e.lists[k] = map[string]uint64{}
		for name, in := range names {
			e.lists[k][name] = bits(in)
		}
	}
	return e, nil
}

// Find returns what is known of an engine, nil where that is nothing.
func Find(engine string) *Engine {
	if load, ok := engines[engine]; ok {
		return load()
	}
	return nil
}

// Release returns a version of the engine as a user may write it ("0.32.0", "v0.32.0", "0.32.0+cpu", "11434"), and whether it is known.
func (e *Engine) Release(version string) (Release, bool) {
	want := plain(version)
	for _, r := range e.Releases {
		if plain(r.Version) == want {
			return r, true
		}
	}
	return Release{}, false
}

func plain(version string) string {
	v, _, _ := strings.Cut(strings.ToLower(strings.TrimSpace(version)), "+")
	v = strings.TrimPrefix(v, "v")
	if rest := strings.TrimPrefix(v, "b"); rest != "" && strings.Trim(rest, "0123456789") == "" {
		return rest
	}
	return v
}

// Newest is the newest release that is known.
func (e *Engine) Newest() Release { return e.Releases[len(e.Releases)-1] }

// Ever has what any of the known releases has, a flag as the newest of them takes it.
func (e *Engine) Ever() Release { return Release{engine: e, bits: ^uint64(0)} }

// Flag returns the flag of that name: hyphens before it are cut off, underscores count as hyphens. A shortened name is the flag's that
// alone begins with it, where the engine takes shortened names. With "no-" before it, off is true.
func (r Release) Flag(name string) (f Flag, off, ok bool) {
	n := Bare(name)
	if f, ok := r.exact(n); ok {
		return f, false, true
	}
	if rest, cut := strings.CutPrefix(n, "no-"); cut {
		if f, ok := r.exact(rest); ok && f.Negated {
			return f, true, true
		}
	}
	if !r.engine.shortened() || len(n) < 2 {
		return Flag{}, false, false
	}
	for called := range r.engine.flags {
		if !strings.HasPrefix(called, n) {
			continue
		}
		if g, has := r.exact(called); has {
			if ok && g.Name != f.Name {
				return Flag{}, false, false // several begin so
			}
			f, ok = g, true
		}
	}
	return f, false, ok
}

// shortened reports whether the engine's parser takes the beginning of a flag for the flag, as Python's argparse does.
func (e *Engine) shortened() bool { return e.Name != "llamacpp" }

// Bare is a flag's name without the hyphens before it, and with hyphens for underscores.
func Bare(name string) string { return strings.ReplaceAll(strings.TrimLeft(name, "-"), "_", "-") }

func (r Release) exact(name string) (Flag, bool) {
	var best variant
	for _, v := range r.engine.flags[name] {
		if v.in&r.bits > best.in&r.bits { // of several releases the one with the newest
			best = v
		}
	}
	return best.flag, best.in != 0
}

// Flags returns the names of all flags, aliases too, sorted.
func (r Release) Flags() []string {
	var out []string
	for n := range r.engine.flags {
		if _, ok := r.exact(n); ok {
			out = append(out, n)
		}
	}
	slices.Sort(out)
	return out
}

// Has reports whether the release has a name of that kind, exactly so written.
func (r Release) Has(k Kind, name string) bool { return r.engine.lists[k][name]&r.bits != 0 }

// Names returns all names of a kind, sorted.
func (r Release) Names(k Kind) []string {
	var out []string
	for n, in := range r.engine.lists[k] {
		if in&r.bits != 0 {
			out = append(out, n)
		}
	}
	slices.Sort(out)
	return out
}

// With returns the versions of the engine that have a name of that kind, or a flag of that name where k is "", oldest first.
func (e *Engine) With(k Kind, name string) []string {
	var out []string
	for _, r := range e.Releases {
		has := false
		if k == "" {
			_, has = r.exact(Bare(name))
		} else {
			has = r.Has(k, name)
		}
		if has {
			out = append(out, r.Version)
		}
	}
	return out
}
