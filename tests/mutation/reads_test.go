package mutation

import (
	"fmt"
	"go/ast"
	"go/types"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"golang.org/x/tools/go/packages"
)

// checking are the files of kinds that only look at a config before it runs: that a field is read there is no effect.
var checking = []string{"kind.go", "check.go", "routes.go", "contract.go", "size.go", "ports.go", "parallel.go", "config.go"}

// reads loads packages and returns the fields of their and of nodes/engine's structs that their code reads while it runs, as "file:line" of
// the declaration.
func reads(t *testing.T, pkgs ...string) map[string]bool {
	t.Helper()
	const mode = packages.NeedName | packages.NeedFiles | packages.NeedImports | packages.NeedSyntax | packages.NeedTypes | packages.NeedTypesInfo |
		packages.NeedExportFile
	ps, err := packages.Load(&packages.Config{Mode: mode, Dir: "../.."}, pkgs...)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]bool{}
	for _, p := range ps {
		for _, e := range p.Errors {
			t.Fatal(e)
		}
		for _, file := range p.Syntax {
			if slices.Contains(checking, filepath.Base(p.Fset.Position(file.Pos()).Filename)) {
				continue
			}
			written := map[ast.Expr]bool{}
			ast.Inspect(file, func(n ast.Node) bool {
				if a, ok := n.(*ast.AssignStmt); ok {
					for _, l := range a.Lhs {
						written[l] = true
					}
				}
				return true
			})
			ast.Inspect(file, func(n ast.Node) bool {
				s, ok := n.(*ast.SelectorExpr)
				if !ok || written[s] {
					return true
				}
				if sel := p.TypesInfo.Selections[s]; sel != nil && sel.Kind() == types.FieldVal {
					out[place(p, sel.Obj())] = true
				}
				return true
			})
		}
	}
	return out
}

func place(p *packages.Package, o types.Object) string {
	pos := p.Fset.Position(o.Pos())
	return fmt.Sprintf("%s/%s:%d", filepath.Base(filepath.Dir(pos.Filename)), filepath.Base(pos.Filename), pos.Line)
}

// fields returns the place of each field of a package's struct, by its path in JSON.
func fields(t *testing.T, pkg, name string) map[string]string {
	t.Helper()
	const mode = packages.NeedName | packages.NeedFiles | packages.NeedImports | packages.NeedTypes | packages.NeedSyntax | packages.NeedTypesInfo |
		packages.NeedExportFile
	ps, err := packages.Load(&packages.Config{Mode: mode, Dir: "../.."}, pkg)
	if err != nil || len(ps) != 1 || len(ps[0].Errors) > 0 {
		t.Fatal(err, ps)
	}
	out := map[string]string{}
	var walk func(prefix string, typ types.Type)
	walk = func(prefix string, typ types.Type) {
		for {
			switch u := typ.Underlying().(type) {
			case *types.Pointer:
				typ = u.Elem()
				continue
			case *types.Slice:
				typ = u.Elem()
				continue
			}
			break
		}
		st, ok := typ.Underlying().(*types.Struct)
		if !ok {
			return
		}
		for i := range st.NumFields() {
			tag, _, _ := strings.Cut(reflect.StructTag(st.Tag(i)).Get("json"), ",")
			if tag == "" || tag == "-" {
				continue
			}
			out[prefix+tag] = place(ps[0], st.Field(i))
			walk(prefix+tag+".", st.Field(i).Type())
		}
	}
	obj := ps[0].Types.Scope().Lookup(name)
	if obj == nil {
		t.Fatalf("%s has no type %s", pkg, name)
	}
	walk("", obj.Type())
	return out
}
