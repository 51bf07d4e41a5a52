package load

import (
	"strconv"

	"cuelang.org/go/cue/ast"
)

// loosen opens what a file unifies with definitions of the schema. The open copy of the schema does not know which fields are below these, so
// that a definition of the author's (`#T: spec.#Graph & {nodes: w: kv: tokens: 64}`) would be closed to them, as it is not under the real
// schema: whoever takes it could not say kv.block. What is said there is held against the real schema all the same. Definitions that have
// nothing to do with the schema stay closed.
func loosen(f *ast.File) {
	name := ""
	for spec := range f.ImportSpecs() {
		if p, err := strconv.Unquote(spec.Path.Value); err == nil && isSchema(p) {
			if name = "spec"; spec.Name != nil {
				name = spec.Name.Name
			}
		}
	}
	if name == "" {
		return
	}
	ast.Walk(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.BinaryExpr: // spec.#Decode & {…}
			if mentions(n, name) {
				for _, x := range operands(n, nil) {
					openMaps(x)
				}
			}
		case *ast.StructLit: // {spec.#Decode, …}
			for _, d := range n.Elts {
				if e, ok := d.(*ast.EmbedDecl); ok && mentions(e.Expr, name) {
					openMaps(n)
				}
			}
		}
		return true
	}, nil)
}

// operands lists what a chain of & unifies.
func operands(x ast.Expr, out []ast.Expr) []ast.Expr {
	switch x := x.(type) {
	case *ast.BinaryExpr:
		if x.Op.String() == "&" {
			return operands(x.Y, operands(x.X, out))
		}
	case *ast.ParenExpr:
		return operands(x.X, out)
	}
	return append(out, x)
}

// mentions reports whether a chain of & has a definition of the schema.
func mentions(x ast.Expr, name string) bool {
	for _, x := range operands(x, nil) {
		if s, ok := x.(*ast.SelectorExpr); ok {
			if id, ok := s.X.(*ast.Ident); ok && id.Name == name {
				return true
			}
		}
	}
	return false
}

// openMaps opens a map, and maps and lists of maps in it.
func openMaps(x ast.Expr) {
	switch x := x.(type) {
	case *ast.StructLit:
		for _, d := range x.Elts {
			switch d := d.(type) {
			case *ast.Ellipsis:
				return
			case *ast.Field:
				openMaps(d.Value)
			}
		}
		x.Elts = append(x.Elts, &ast.Ellipsis{})
	case *ast.ListLit:
		for _, e := range x.Elts {
			openMaps(e)
		}
	case *ast.BinaryExpr:
		for _, o := range operands(x, nil) {
			if o != ast.Expr(x) {
				openMaps(o)
			}
		}
	case *ast.ParenExpr:
		openMaps(x.X)
	}
}
