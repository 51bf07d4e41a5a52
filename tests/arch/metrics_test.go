package arch

import (
	"flag"
	"fmt"
	"go/ast"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the table of metrics into docs/observe.md")

// TestMetricsTable holds the table of docs/observe.md to the metrics that the code makes.
func TestMetricsTable(t *testing.T) {
	rows := map[string]string{}
	for _, f := range files(t) {
		if f.test() || !within(f.pkg, "nodes") && !within(f.pkg, "runtime") {
			continue
		}
		ast.Inspect(f.ast, func(n ast.Node) bool {
			c, ok := n.(*ast.CallExpr)
			if !ok || len(c.Args) < 2 {
				return true
			}
			name, help := literal(c.Args[0]), literal(c.Args[1])
			if !strings.HasPrefix(name, "dynamo_") || help == "" {
				return true
			}
			typ, labels := "", []string{}
			switch fun := c.Fun.(type) {
			case *ast.SelectorExpr:
				typ = strings.ToLower(fun.Sel.Name)
				rest := c.Args[2:]
				if typ == "histogram" {
					rest = c.Args[3:]
				}
				for _, a := range rest {
					labels = append(labels, "`"+literal(a)+"`")
				}
			case *ast.Ident: // runtime/telemetry's own, about processes
				if s, ok := c.Args[2].(*ast.SelectorExpr); ok {
					typ = strings.ToLower(strings.TrimPrefix(s.Sel.Name, "MetricType_"))
				}
				labels = append(labels, "`process`")
			}
			row := fmt.Sprintf("| `%s` | %s | %s | %s |", name, typ, strings.Join(labels, ", "), help)
			if old, ok := rows[name]; ok && old != row {
				t.Errorf("%s: metric %q is told differently elsewhere:\n%s\n%s", f.path, name, row, old)
			}
			rows[name] = row
			return true
		})
	}
	if len(rows) < 15 {
		t.Fatalf("found only %d metrics", len(rows))
	}
	want := "| metric | type | labels | what |\n|---|---|---|---|\n"
	for _, n := range slices.Sorted(maps.Keys(rows)) {
		want += rows[n] + "\n"
	}
	page := filepath.Join(root, "docs/observe.md")
	b, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	const first, last = "<!-- metrics: written by go test ./tests/arch -update -->\n", "<!-- /metrics -->"
	before, rest, ok := strings.Cut(string(b), first)
	got, after, ok2 := strings.Cut(rest, last)
	switch {
	case !ok || !ok2:
		t.Fatalf("docs/observe.md: the marks of the table are not there")
	case got != want && *update:
		if err := os.WriteFile(page, []byte(before+first+want+last+after), 0o644); err != nil {
			t.Fatal(err)
		}
	case got != want:
		t.Errorf("docs/observe.md: the table is not what the code does; go test ./tests/arch -update writes it. Want:\n%s", want)
	}
}

// literal is the value of a string in the source, or "".
func literal(e ast.Expr) string {
	l, ok := e.(*ast.BasicLit)
	if !ok || l.Kind != token.STRING {
		return ""
	}
	s, err := strconv.Unquote(l.Value)
	if err != nil {
		return ""
	}
	return s
}
