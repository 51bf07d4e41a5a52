package load

import (
	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/ast/astutil"
	"cuelang.org/go/cue/token"
)

// maxCopies bounds how many values the references of a spec may come to before it is evaluated in a process of its own.
const maxCopies = 100_000

// risky reports whether the evaluation may take more than its text lets expect: calls, comprehensions, arithmetic, choices between maps or
// with many others, and references that multiply. What is left is linear in the text.
func (l *loader) risky() bool {
	r := &risk{top: map[string]ast.Expr{}, size: map[ast.Node]int{}}
	for _, s := range l.parsed() {
		for _, d := range s.file.Decls {
			if f, ok := d.(*ast.Field); ok {
				if name, _, err := ast.LabelName(f.Label); err == nil {
					r.top[name] = f.Value
				}
			}
		}
	}
	total := 0
	for _, s := range l.parsed() {
		if s.format != "cue" {
			continue
		}
		astutil.Resolve(s.file, func(token.Pos, string, ...any) {})
		for _, d := range s.file.Decls {
			if total += r.count(d); r.yes || total > maxCopies {
				return true
			}
		}
	}
	return false
}

type risk struct {
	top  map[string]ast.Expr // by name: packages are not told apart, which errs on the safe side
	size map[ast.Node]int    // 0 while it is counted
	yes  bool
}

// of counts the values that n comes to, once for each n.
func (r *risk) of(n ast.Node) int {
	if n == nil || r.yes {
		return 0
	}
	if size, ok := r.size[n]; ok {
		if size == 0 {
			r.yes = true // in a circle
		}
		return size
	}
	r.size[n] = 0
	r.size[n] = r.count(n)
	return r.size[n]
}

func (r *risk) count(n ast.Node) int {
	size := 0
	ast.Walk(n, func(m ast.Node) bool {
		if size++; size > maxCopies {
			r.yes = true
		}
		if r.yes {
			return false
		}
		switch m := m.(type) {
		case *ast.Field: // without its label
			if _, _, err := ast.LabelName(m.Label); err != nil {
				if _, pattern := m.Label.(*ast.ListLit); !pattern {
					r.yes = true
				}
			}
			if m.Value != nil {
				size += r.count(m.Value)
			}
			return false
		case *ast.SelectorExpr:
			if id, ok := m.X.(*ast.Ident); ok {
				if _, ok := id.Node.(*ast.ImportSpec); ok || id.Node == nil {
					if name, _, err := ast.LabelName(m.Sel); err == nil && r.top[name] != nil {
						size += r.of(r.top[name])
					}
					return false
				}
			}
			size += r.count(m.X)
			return false
		case *ast.CallExpr, *ast.Comprehension, *ast.Interpolation, *ast.SliceExpr, *ast.IndexExpr:
			r.yes = true
		case *ast.BinaryExpr:
			r.binary(m)
		case *ast.Ident:
			size += r.target(m)
		}
		return !r.yes
	}, nil)
	return size
}

// target counts what a reference comes to.
func (r *risk) target(id *ast.Ident) int {
	switch x := id.Node.(type) {
	case *ast.Field:
		if x.Label != id {
			return r.of(x.Value)
		}
	case *ast.LetClause:
		return r.of(x.Expr)
	case *ast.ImportSpec:
	case ast.Expr:
		return r.of(x)
	case nil:
		if x, ok := r.top[id.Name]; ok {
			return r.of(x)
		}
	}
	return 0
}

// binary looks at an operator.
func (r *risk) binary(b *ast.BinaryExpr) {
	switch b.Op {
	case token.AND:
		if choices(b) > 64 {
			r.yes = true
		}
	case token.OR:
		ast.Walk(b, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.StructLit, *ast.ListLit, *ast.SelectorExpr:
				r.yes = true
			case *ast.Ident:
				if n.Node != nil || r.top[n.Name] != nil {
					r.yes = true
				}
			}
			return !r.yes
		}, nil)
	default:
		r.yes = true
	}
}

// choices is how many ways there are through an expression.
func choices(x ast.Expr) int {
	switch x := x.(type) {
	case *ast.ParenExpr:
		return choices(x.X)
	case *ast.BinaryExpr:
		switch x.Op {
		case token.AND:
			return min(1<<20, choices(x.X)*choices(x.Y))
		case token.OR:
			return min(1<<20, choices(x.X)+choices(x.Y))
		}
	}
	return 1
}
