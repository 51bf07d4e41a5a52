package arch

import (
	"go/ast"
	"go/token"
	"strconv"
	"testing"

	"github.com/dynamograph/dynamo/graph/kind"
	_ "github.com/dynamograph/dynamo/nodes/all"
)

// The compiler names no kind: what it knows of one is what the kind's own file says. Nor do the loader and the schema, which comes out of
// the kinds. specs/dgd reads a language of others, and does.
func TestNoKindIsNamed(t *testing.T) {
	names := map[string]bool{}
	for _, k := range kind.Default.All() {
		names[k.Name] = true
	}
	if len(names) < 12 {
		t.Fatalf("only %d kinds", len(names))
	}
	seen := 0
	for _, f := range files(t) {
		if f.test() || !within(f.pkg, "compiler") && !within(f.pkg, "specs") || within(f.pkg, "compiler/compilertest") || within(f.pkg, "specs/dgd") {
			continue
		}
		seen++
		ast.Inspect(f.ast, func(n ast.Node) bool {
			l, ok := n.(*ast.BasicLit)
			if !ok || l.Kind != token.STRING {
				return true
			}
			if s, err := strconv.Unquote(l.Value); err == nil && names[s] {
				t.Errorf("%s: names the kind %q", f.fset.Position(l.Pos()), s)
			}
			return true
		})
	}
	if seen < 50 {
		t.Errorf("looked at %d files: is the root right?", seen)
	}
}
