package load

import (
	"slices"

	"cuelang.org/go/cue"
	"cuelang.org/go/cue/ast"

	"github.com/dynamograph/dynamo/graph/diag"
)

// labelAt returns the place of a field's name, or what is nearest to it.
func (c *checker) labelAt(path []string, v cue.Value) (diag.Pos, int) {
	if p, n := c.ownLabel(path, v); p.IsValid() {
		return p, n
	}
	return c.above(path, v)
}

// ownLabel returns the place of a field's name where the author wrote it: from the syntax, or from the value where an expression made the
// field.
func (c *checker) ownLabel(path []string, v cue.Value) (diag.Pos, int) {
	if p, n := c.spans.label(path); p.IsValid() {
		return p, n
	}
	if f, ok := v.Source().(*ast.Field); ok {
		if p := c.pos(f.Label.Pos()); p.IsValid() {
			return p, c.srcs[p.File].width(p)
		}
	}
	return diag.Pos{}, 0
}

// setAt returns the place of a field's name where its value comes from: in the highest layer that gives one.
func (c *checker) setAt(path []string, v cue.Value) (diag.Pos, int) {
	p, n := c.ownLabel(path, v)
	for _, sp := range c.spans.at[key(path)] {
		if g := gives(sp.expr); c.layerOf(sp.label).over(c.layerOf(p)) && (g == "value" || g == "part") {
			p, n = sp.label, sp.width
		}
	}
	return p, n
}

// valueAt returns the place of a field's value.
func (c *checker) valueAt(path []string, v cue.Value) (diag.Pos, int) {
	if p, n := c.spans.value(path, show(v)); p.IsValid() {
		return p, n
	}
	return c.above(path, v)
}

// above falls back to the value's own place, then to the nearest field above it, then to the graph.
func (c *checker) above(path []string, v cue.Value) (diag.Pos, int) {
	if p := c.pos(v.Pos()); p.IsValid() {
		return p, c.srcs[p.File].width(p)
	}
	for i := len(path) - 1; i > 0; i-- {
		if p, n := c.spans.label(path[:i]); p.IsValid() {
			return p, n
		}
	}
	return c.root()
}

// root is the place of the graph itself: where #Graph is written, or the start of the file.
func (c *checker) root() (diag.Pos, int) {
	p, n := diag.Pos{File: c.path, Line: 1, Col: 1}, 1
	for _, name := range slices.Backward(c.fileNames()) {
		if c.srcs[name].layer != layerSpec {
			continue
		}
		ast.Walk(c.srcs[name].file, func(x ast.Node) bool {
			if sel, ok := x.(*ast.SelectorExpr); ok {
				if id, ok := sel.Sel.(*ast.Ident); ok && id.Name == "#Graph" {
					p = c.pos(sel.Pos())
					n = c.srcs[name].width(p)
				}
			}
			return true
		}, nil)
		p.File = name
	}
	return p, n
}

func (l *loader) fileNames() []string {
	var out []string
	for n := range l.srcs {
		out = append(out, n)
	}
	slices.Sort(out)
	return out
}
