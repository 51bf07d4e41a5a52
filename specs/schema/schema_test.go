package schema_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/dynamograph/dynamo/graph/kind"
	"github.com/dynamograph/dynamo/specs/schema"
)

func registry(text string) *kind.Registry {
	r := &kind.Registry{}
	kind.Add(r, kind.Kind[struct{}]{Name: "echo", Summary: "e", Schema: text, Default: func() struct{} { return struct{}{} },
		Ports: func(struct{}) []kind.Port { return nil }, New: func(struct{}, kind.Host) (kind.Component, error) { return nil, nil }})
	return r
}

func ExampleFiles() {
	for _, f := range schema.Files(registry("#Echo: kind: \"echo\"\n"))[1:] {
		fmt.Printf("-- %s --\n%s", f.Name, f.Text)
	}
	// Output:
	// -- kind_echo.cue --
	// package spec
	//
	// #Echo: kind: "echo"
	// -- kinds_gen.cue --
	// // Generated from the registry of kinds. DO NOT EDIT.
	//
	// package spec
	//
	// // #Version is that of this schema.
	// #Version: "v0.2"
	//
	// #Kinds: {
	// 	echo: config: #Echo
	// }
}

func TestPackageClause(t *testing.T) {
	for _, text := range []string{"package spec\n\n#Echo: {}", "\n// #Echo is.\npackage spec\n#Echo: {}", "// package spec is not it\n#Echo: {}"} {
		got := schema.Files(registry(text))[1].Text
		if n := strings.Count(got, "\npackage spec\n") + strings.Count(got[:13], "package spec\n"); n != 1 {
			t.Errorf("%q: %d package clauses in %q", text, n, got)
		}
	}
}

// TestDocumented wants a comment above every field of the schema, for it is what editors and findings show.
func TestDocumented(t *testing.T) {
	prev := ""
	n := 0
	for i, line := range strings.Split(schema.Files(&kind.Registry{})[0].Text, "\n") {
		s := strings.TrimSpace(line)
		name, _, isField := strings.Cut(s, ":")
		if isField && !strings.HasPrefix(s, "//") && strings.TrimRight(name, "?!") != "config" && strings.HasPrefix(line, "\t") && strings.ContainsAny(name, "?!") {
			n++
			if want := "// " + strings.TrimRight(name, "?!") + " "; !strings.HasPrefix(prev, "//") {
				t.Errorf("graph.cue:%d: %s has no comment %q", i+1, name, want)
			}
		}
		prev = s
	}
	if n < 30 {
		t.Errorf("%d fields found, want at least 30", n)
	}
}

func TestNewer(t *testing.T) {
	for v, want := range map[string]bool{
		schema.Version: false, "v0.0": false, "v0.1": false, "v0.10": true, "v0.99": true, "": false, "latest": false,
		"v1": true, "v1.0": true, "v9.0.0": true, "v0.2.7": false, "v0.3.0": true, "9": false, "v99999999999999999999.0": true,
	} {
		if got := schema.Newer(v); got != want {
			t.Errorf("%q: %v", v, got)
		}
	}
}
