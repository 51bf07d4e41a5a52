// Package arch holds the tree to its own rules: who may import whom, how long a file may be, and what only the command may do.
package arch

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

const (
	root     = "../.."
	module   = "github.com/dynamograph/dynamo/"
	maxLines = 600
)

type file struct {
	path string // slash-separated, from the root
	pkg  string // its folder
	ast  *ast.File
	fset *token.FileSet
	src  string
}

func (f file) test() bool      { return strings.HasSuffix(f.path, "_test.go") }
func (f file) generated() bool { return ast.IsGenerated(f.ast) }

func files(t *testing.T) []file {
	t.Helper()
	var out []file
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (strings.HasPrefix(d.Name(), ".") && d.Name() != ".." && path != root || d.Name() == "testdata" || d.Name() == "bin") {
			return filepath.SkipDir
		}
		if !strings.HasSuffix(path, ".go") {
			return nil
		}
		src, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		fset := token.NewFileSet()
		f, err := parser.ParseFile(fset, path, src, parser.ParseComments)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		rel = filepath.ToSlash(rel)
		out = append(out, file{rel, rel[:max(0, strings.LastIndexByte(rel, '/'))], f, fset, string(src)})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(out) < 50 {
		t.Fatalf("found only %d files: is the root right?", len(out))
	}
	return out
}

func imports(f file) []string {
	var out []string
	for _, i := range f.ast.Imports {
		p, err := strconv.Unquote(i.Path.Value)
		if err == nil {
			out = append(out, p)
		}
	}
	return out
}

// layer gives the folders that code of a package may import, from the module. The first prefix that fits counts.
var layers = []struct {
	prefix string
	may    []string
}{
	{"graph/diag", nil},
	{"graph/model", []string{"graph/diag", "graph/model"}},
	{"graph/flow", []string{"graph/diag", "graph/flow"}},
	{"graph/plan", []string{"graph/diag", "graph/plan"}},
	{"graph", []string{"graph"}},
	{"specs", []string{"graph", "specs"}},
	{"compiler", []string{"graph", "compiler"}},
	{"nodes", []string{"graph", "nodes"}},
	{"runtime", []string{"graph", "runtime"}},
	{"cmd", []string{"graph", "specs", "recipes", "compiler", "nodes", "runtime", "cmd"}},
	{"recipes", nil},
	{"tests", []string{"graph", "specs", "recipes", "compiler", "nodes", "runtime", "cmd", "examples"}},
	{"examples", []string{"graph", "specs", "compiler", "nodes", "runtime"}},
	{"scripts", nil},
}

func within(p, prefix string) bool { return p == prefix || strings.HasPrefix(p, prefix+"/") }

func TestImports(t *testing.T) {
	for _, f := range files(t) {
		for _, l := range layers {
			if !within(f.pkg, l.prefix) {
				continue
			}
			for _, imp := range imports(f) {
				p, ours := strings.CutPrefix(imp, module)
				if !ours || p == f.pkg {
					continue
				}
				ok := false
				for _, m := range l.may {
					ok = ok || within(p, m)
				}
				if !ok {
					t.Errorf("%s: imports %s: %s may import %v of this module", f.path, p, l.prefix, l.may)
				}
			}
			break
		}
	}
}

// owners are the only importers of a foreign module, by folder; tests of other folders may not import them either unless listed.
var owners = map[string][]string{
	"cuelang.org/go":                  {"specs", "tests"},
	"cuelabs.dev/go":                  {"specs/mod"},
	"go.etcd.io/etcd":                 {"runtime/discovery"},
	"google.golang.org/grpc":          {"runtime/transport", "runtime/api", "runtime/discovery/etcd"},
	"google.golang.org/protobuf":      {"runtime/transport", "runtime/api", "runtime/telemetry/tracetest"},
	"github.com/prometheus":           {"runtime/telemetry"},
	"github.com/urfave/cli":           {"cmd/dynamo/internal/cli"},
	"github.com/dominikbraun/graph":   {"graph/internal/dag"},
	"github.com/clipperhouse/uax29":   {"nodes/text/tokenizer"},
	"github.com/mmcloughlin/avo":      {"nodes/engine/native/kernel"},
	"go.opentelemetry.io/otel":        {"runtime/telemetry", "runtime/transport"},
	"go.opentelemetry.io/proto":       {"runtime/telemetry/tracetest"},
	"github.com/rogpeppe/go-internal": {"tests", "specs", "compiler", "graph/viz", "cmd"},
	"go.yaml.in/yaml":                 {"specs"},
	"github.com/ebitengine/purego":    {"none"},
}

func TestForeignImports(t *testing.T) {
	for _, f := range files(t) {
		for _, imp := range imports(f) {
			for mod, where := range owners {
				if !within(imp, mod) {
					continue
				}
				ok := false
				for _, w := range where {
					ok = ok || within(f.pkg, w)
				}
				if !ok {
					t.Errorf("%s: imports %s, which belongs to %v", f.path, imp, where)
				}
			}
			if within(f.pkg, "graph") && !f.test() && strings.Contains(strings.SplitN(imp, "/", 2)[0], ".") && !strings.HasPrefix(imp, module) && f.pkg != "graph/internal/dag" {
				t.Errorf("%s: imports %s: graph has the standard library only", f.path, imp)
			}
			if imp == "C" {
				t.Errorf("%s: uses cgo", f.path)
			}
		}
	}
}

// A kind of node does not know another: what they share is in graph, nodes/engine, nodes/kv or nodes/text.
func TestKindsAreApart(t *testing.T) {
	shared := []string{"nodes/engine", "nodes/inflight", "nodes/kv", "nodes/text", "nodes/nodetest", "nodes/throttle"}
	for _, f := range files(t) {
		if !within(f.pkg, "nodes") || f.pkg == "nodes/all" || f.test() {
			continue
		}
		own := strings.Join(strings.SplitN(f.pkg, "/", 3)[:2], "/")
		for _, imp := range imports(f) {
			p, ours := strings.CutPrefix(imp, module)
			if !ours || !within(p, "nodes") || within(p, own) {
				continue
			}
			ok := false
			for _, s := range shared {
				ok = ok || within(p, s)
			}
			if !ok {
				t.Errorf("%s: imports %s: kinds of nodes do not import each other", f.path, p)
			}
		}
	}
}

func TestFileLength(t *testing.T) {
	for _, f := range files(t) {
		if n := strings.Count(f.src, "\n"); n > maxLines && !f.generated() && !strings.Contains(f.src, "//arch:table") {
			t.Errorf("%s: %d lines, at most %d", f.path, n, maxLines)
		}
	}
}

// banned calls belong to the command.
var banned = map[string][]string{
	"os":   {"Getenv", "LookupEnv", "Environ", "Exit"},
	"fmt":  {"Print", "Printf", "Println"},
	"time": {"Sleep"},
	"log":  {"Print", "Printf", "Println", "Fatal", "Fatalf", "Fatalln"},
}

func TestBannedCalls(t *testing.T) {
	for _, f := range files(t) {
		if f.test() || strings.HasSuffix(f.pkg, "test") || within(f.pkg, "cmd") || within(f.pkg, "tests") || within(f.pkg, "examples") || f.ast.Name.Name == "main" {
			continue
		}
		names := map[string]string{} // local name of an import
		for _, i := range f.ast.Imports {
			p, _ := strconv.Unquote(i.Path.Value)
			n := p[strings.LastIndexByte(p, '/')+1:]
			if i.Name != nil {
				n = i.Name.Name
			}
			names[n] = p
		}
		ast.Inspect(f.ast, func(n ast.Node) bool {
			s, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			x, ok := s.X.(*ast.Ident)
			if !ok {
				return true
			}
			for _, b := range banned[names[x.Name]] {
				if s.Sel.Name == b {
					t.Errorf("%s: %s.%s: only the command may", f.fset.Position(s.Pos()), x.Name, b)
				}
			}
			return true
		})
	}
}

func TestPackageDocs(t *testing.T) {
	has := map[string]bool{}
	for _, f := range files(t) {
		if f.test() {
			continue
		}
		has[f.pkg] = has[f.pkg] || f.ast.Doc != nil || f.generated()
	}
	for p, ok := range has {
		if !ok {
			t.Errorf("%s: no package has a comment that says what it is", p)
		}
	}
}
