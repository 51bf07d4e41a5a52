package load

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/dynamograph/dynamo/graph"
	"github.com/dynamograph/dynamo/graph/diag"
	"github.com/dynamograph/dynamo/graph/kind"
)

// ErrCrashed is what Options.Isolate returns, wrapped with a reason, where the other process ended without an answer.
var ErrCrashed = errors.New("the evaluation ended")

// job is an evaluation for another process: all texts are in it.
type job struct {
	Path      string              `json:"path"`
	Tags, Set []string            `json:",omitempty"`
	Explain   []string            `json:",omitempty"`
	Limits    Limits              `json:"limits"`
	Files     []jobFile           `json:"files"`
	Packages  []jobPackage        `json:"packages,omitempty"`
	Imports   []map[string]string `json:"imports,omitempty"` // what imports are, for each module; the first is the spec's
}

type jobFile struct {
	Name, Format string
	Layer        layer
	Module       int // index into Imports
	Data         []byte
}

type jobPackage struct {
	Path, Name string
	Files      []int
}

// answer is what comes of a job.
type answer struct {
	Graph       *graph.Graph `json:"graph,omitempty"`
	Sketch      *graph.Graph `json:"sketch,omitempty"`
	Explanation *Explanation `json:"explanation,omitempty"`
	Findings    []jobFinding `json:"findings,omitempty"`
	Error       string       `json:"error,omitempty"`
}

type jobFinding struct {
	Severity diag.Severity
	diag.Diagnostic
}

// isolate has the evaluation done elsewhere. The loader has parsed everything.
func (l *loader) isolate(ctx context.Context, in *input, o Options) result {
	j := job{Path: l.path, Tags: o.Tags, Set: o.Set, Explain: o.explain, Limits: o.Limits.usual()}
	modules := map[*tree]int{}
	module := func(t *tree) int {
		if t == nil {
			t = l.home
		}
		if _, ok := modules[t]; !ok {
			modules[t] = len(modules)
			j.Imports = append(j.Imports, l.canon[t])
		}
		return modules[t]
	}
	module(l.home)
	add := func(s *source) int {
		j.Files = append(j.Files, jobFile{Name: s.name, Format: s.format, Layer: s.layer, Module: module(s.of), Data: s.data})
		return len(j.Files) - 1
	}
	for _, s := range in.files {
		add(s)
	}
	for _, p := range l.pkgs {
		jp := jobPackage{Path: p.path, Name: p.name}
		for _, s := range p.files {
			jp.Files = append(jp.Files, add(s))
		}
		j.Packages = append(j.Packages, jp)
	}
	b, err := json.Marshal(j)
	if err != nil {
		return result{err: err}
	}
	ctx, cancel := context.WithTimeout(ctx, 2*j.Limits.Time+5*time.Second) // the other process ends by itself, if it can
	defer cancel()
	b, err = o.Isolate(ctx, b, j.Limits)
	switch {
	case errors.Is(err, ErrCrashed) || ctx.Err() != nil && errors.Is(ctx.Err(), context.DeadlineExceeded):
		why := "passes its limits"
		if errors.Is(err, ErrCrashed) {
			why = err.Error()
		}
		return result{list: diag.List{tooSlow(l.path, "cannot be done within "+j.Limits.String()+": "+why)}}
	case err != nil:
		return result{err: err}
	}
	var a answer
	if err := json.Unmarshal(b, &a); err != nil {
		return result{err: fmt.Errorf("answer of the evaluation: %w", err)}
	}
	r := result{graph: a.Graph, sketch: a.Sketch, explained: a.Explanation}
	if a.Error != "" {
		r.err = errors.New(a.Error)
	}
	for _, f := range a.Findings {
		f.Diagnostic.Severity = f.Severity
		r.list.Add(f.Diagnostic)
	}
	return r
}

// Serve does one job that Options.Isolate was given, in a process of its own: it reads it from in and writes the answer to out. Its
// goroutine may go on after Serve has returned: the caller should end the process.
func Serve(ctx context.Context, r *kind.Registry, in io.Reader, out io.Writer) error {
	b, err := io.ReadAll(in)
	if err != nil {
		return err
	}
	var j job
	if err := json.Unmarshal(b, &j); err != nil {
		return fmt.Errorf("job: %w", err)
	}
	o := Options{Registry: r, Tags: j.Tags, Set: j.Set, explain: j.Explain, Limits: j.Limits}
	res, err := watch(ctx, j.Path, j.Limits, func() result { return j.do(o) })
	if err != nil {
		return err
	}
	a := answer{Graph: res.graph, Sketch: res.sketch, Explanation: res.explained}
	if res.err != nil {
		a.Error = res.err.Error()
	}
	for _, d := range res.list {
		a.Findings = append(a.Findings, jobFinding{d.Severity, d})
	}
	if b, err = json.Marshal(a); err != nil {
		return err
	}
	_, err = out.Write(b)
	return err
}

// do makes the loader again and evaluates.
func (j *job) do(o Options) result {
	trees := make([]*tree, max(1, len(j.Imports)))
	for i := range trees {
		trees[i] = &tree{}
	}
	in := &input{set: arguments(setFile, o.Set), tags: arguments(tagFile, o.Tags), home: trees[0]}
	var all []*source
	for _, f := range j.Files {
		s := &source{name: f.Name, format: f.Format, layer: f.Layer, data: f.Data}
		if f.Module > 0 && f.Module < len(trees) || f.Layer == layerImport {
			s.of = trees[f.Module]
		}
		if all = append(all, s); f.Layer != layerImport {
			in.files = append(in.files, s)
		}
	}
	l := newLoader(j.Path, in)
	l.pkgs, l.canon = map[string]*pkg{}, map[*tree]map[string]string{}
	for i, m := range j.Imports {
		l.canon[trees[i]] = m
	}
	l.parseAll(in)
	for _, p := range j.Packages {
		q := &pkg{path: p.Path, name: p.Name}
		for _, i := range p.Files {
			s := all[i]
			l.srcs[s.name] = s
			l.parse(s)
			q.files = append(q.files, s)
		}
		l.pkgs[p.Path] = q
	}
	if l.list.Failed() {
		return result{list: l.list}
	}
	return l.load(in, o)
}
