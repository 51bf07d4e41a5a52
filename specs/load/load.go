// Package load turns a spec (CUE, JSON or YAML, with tags) into a graph.Graph, or into findings that point into the author's file. It is
// the only package that knows CUE: no cue.Value leaves it, and CUE's own error texts do not either. What ports fit and what a kind
// demands of its neighbours is the compiler's to check.
//
// A load has two steps. The spec is evaluated against an open copy of the schema, so that only the author's own contradictions can fail
// there. The plain values that come out are then held against the real schema field by field, in Go: that way one mistake is one finding,
// a mistake hides no other, and every place comes from the author's syntax tree.
package load

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"cuelang.org/go/cue/ast"

	"github.com/dynamograph/dynamo/graph"
	"github.com/dynamograph/dynamo/graph/diag"
	"github.com/dynamograph/dynamo/graph/kind"
)

// Options says how a spec is read. The zero Options reads from the working folder, without tags and with the kinds of kind.Default.
//
// Overlays, tags and settings are unified with the spec: they fill what it leaves open, narrow it and replace defaults (`int | *2`), and
// never change a plain value.
type Options struct {
	Registry *kind.Registry // nil: kind.Default
	Tags     []string       // "key=value", for the @tag attributes of a CUE spec
	Overlays []string       // files in CUE, YAML or JSON
	Set      []string       // "path=value": "nodes.decode.replicas=3"; what is no plain CUE or JSON is text
	Dir      string         // what a relative path is relative to; "" is the working folder
	Limits   Limits         // of the evaluation; zero: 10 s and 1 GiB

	// Modules reaches the modules that the spec's module depends on. It is called when one is needed; nil: then none can be had.
	Modules func() (Modules, error)

	// Isolate has a job done by Serve in another process, within limits that hold whatever happens, and returns the answer. It is called
	// for specs whose evaluation may take more than their text lets expect; nil: they are evaluated here. An error that is ErrCrashed says
	// that the other process ended without an answer.
	Isolate func(ctx context.Context, job []byte, l Limits) ([]byte, error)

	// Sketch, where set, is given what is sound of a spec in which something was found: nodes without findings and the edges between them,
	// for compiler.Edges, so that all mistakes are told at once. It is not called where nothing could be evaluated.
	Sketch func(*graph.Graph)

	explain []string // the path that Explain asks for
}

// ReadFile returns a file that a finding names: also "-t" and "--set", whose lines are arguments. It is a diag.ReadFunc.
func (o Options) ReadFile(name string) ([]byte, error) {
	switch name {
	case setFile:
		return arguments(setFile, o.Set).data, nil
	case tagFile:
		return arguments(tagFile, o.Tags).data, nil
	}
	return os.ReadFile(o.at(name))
}

// at is where a path of the user's lies.
func (o Options) at(path string) string {
	if o.Dir != "" && !filepath.IsAbs(path) {
		return filepath.Join(o.Dir, path)
	}
	return path
}

// File loads the spec at path: a .cue, .yaml, .yml or .json file, or a folder whose .cue files are one package. Findings are sorted and
// name files as path does. The graph is nil where the list has an error; where it is not nil, its configs are valid against the schemas
// of their kinds. The error is for what kept the spec from being checked at all: an unreadable file, a cancelled ctx, a broken schema of
// a kind.
//
// File never panics and is safe for concurrent use. Evaluation is given up at o.Limits, with a finding; as CUE cannot be interrupted, its
// goroutine then runs on until it ends by itself, so a long-lived caller should load untrusted specs in a process of their own.
func File(ctx context.Context, path string, o Options) (*graph.Graph, diag.List, error) {
	r, err := run(ctx, path, o)
	return r.graph, r.list, err
}

// run loads a spec. Its result has no graph and no explanation where its list failed.
func run(ctx context.Context, path string, o Options) (result, error) {
	if o.Registry == nil {
		o.Registry = kind.Default
	}
	in, list, err := o.read(path)
	if err != nil || list.Failed() {
		o.pointBelow(path, list)
		return result{list: list}, err
	}
	l := newLoader(path, in)
	first := func() result { l.parseAll(in); return result{list: l.list} }
	packages := func() result {
		err := l.imports(ctx, in, o)
		return result{list: l.list, err: err}
	}
	var r result
	for i, step := range []struct {
		limits Limits
		f      func() result
	}{
		{o.Limits, first},
		{Limits{Time: 10 * time.Minute, Memory: o.Limits.Memory}, packages}, // from a network
		{o.Limits, func() result { return l.load(in, o) }},
	} {
		if i == 2 && o.Isolate != nil {
			risky := false
			if r, err = watch(ctx, path, o.Limits, func() result { risky = l.risky(); return result{} }); err != nil || r.list.Failed() {
				return r, err
			}
			if risky {
				if r = l.isolate(ctx, in, o); r.err != nil {
					return result{}, fmt.Errorf("%s: %w", path, r.err)
				}
				break
			}
		}
		if r, err = watch(ctx, path, step.limits, step.f); err != nil {
			return result{}, fmt.Errorf("%s: %w", path, err)
		}
		if r.err != nil {
			return result{}, r.err
		}
		if r.list.Failed() {
			break
		}
	}
	r.list.Sort()
	if r.list.Failed() {
		o.pointBelow(path, r.list)
		r.graph, r.explained = nil, nil
		if o.Sketch != nil && r.sketch != nil {
			o.Sketch(r.sketch)
		}
	}
	return r, nil
}

// input is what a spec is made of, in memory.
type input struct {
	files     []*source // of the spec and of overlays
	set, tags *source   // arguments
	root      string    // of the module that the spec lies in; "" for none
	home      *tree     // that module; opened by imports
}

// read reads the spec at path and what is laid over it.
func (o Options) read(path string) (*input, diag.List, error) {
	var left int64 = maxBytes
	srcs, list, err := read(path, o.at(path), &left)
	for _, s := range srcs {
		s.layer = layerSpec
	}
	for _, name := range o.Overlays {
		more, found, e := read(name, o.at(name), &left)
		for _, s := range more {
			s.layer = layerOverlay
		}
		srcs, list = append(srcs, more...), append(list, found...)
		if err == nil {
			err = e
		}
	}
	in := &input{files: srcs, set: arguments(setFile, o.Set), tags: arguments(tagFile, o.Tags), home: &tree{}}
	if err == nil && !list.Failed() {
		folder := len(srcs) > 0 && srcs[0].name != path
		if in.root, in.home.name, err = home(path, o.at(path), folder); in.root != "" {
			in.home.fsys = os.DirFS(in.root)
		}
	}
	return in, list, err
}

// result is what a load makes.
type result struct {
	graph     *graph.Graph
	sketch    *graph.Graph // of a spec that failed
	explained *Explanation // where it was asked for
	list      diag.List
	err       error
}

func newLoader(path string, in *input) *loader {
	l := &loader{srcs: map[string]*source{}, path: path, home: in.home}
	for _, s := range append(slices.Clip(in.files), in.set, in.tags) {
		l.srcs[s.name] = s
	}
	return l
}

// parseAll parses the files of the spec and of overlays. Like load it may panic; watch contains it.
func (l *loader) parseAll(in *input) {
	for _, s := range in.files {
		l.parse(s)
	}
	if !l.list.Failed() {
		l.onePackage(in.files)
	}
}

// load evaluates and checks what is parsed.
func (l *loader) load(in *input, o Options) result {
	srcs := in.files
	sc, err := compileSchema(o.Registry)
	if err != nil {
		return result{err: err}
	}
	l.schema = sc
	l.tags(srcs, in.tags, o.Tags)
	if len(o.Set) > 0 {
		l.settings(in.set, o.Set)
		srcs = append(srcs, in.set)
	}
	v, ok := l.evaluate(srcs)
	if l.fail != nil {
		return result{err: l.fail}
	}
	if !ok {
		return result{list: l.list}
	}
	l.check(v)
	if l.list.Failed() {
		return result{list: l.list, sketch: l.sketch(v, o.Registry)}
	}
	r := result{graph: l.graph(v, o.Registry)}
	if len(o.explain) > 0 {
		c := &checker{loader: l, v: v, shapes: map[string]*shape{}}
		r.explained = c.explained(o.explain, o.Registry)
	}
	r.list = l.list
	return r
}

// loader is the state of one load.
type loader struct {
	path   string
	srcs   map[string]*source          // by name
	home   *tree                       // the module that the spec lies in
	pkgs   map[string]*pkg             // imported, by canonical path
	canon  map[*tree]map[string]string // what a module's imports are
	edges  map[string][]string         // which package imports which
	list   diag.List
	schema *compiled
	spans  *spans
	fail   error               // of the schema, not of the spec
	given  map[string]tagUse   // by place of the field's label
	words  map[diag.Pos]string // plain values and names by place; made by word
	poison map[*ast.Ident]bool // references to nothing, which stand for any value after they are reported
}
