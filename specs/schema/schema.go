// Package schema holds the CUE package that specs import as "dynamo.graph/spec", and completes it with the kinds of a registry. It does
// not evaluate CUE: package load does.
package schema

import (
	_ "embed"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/dynamograph/dynamo/graph/kind"
)

// Version is the version of the language that this build speaks: it grows by one with each release that adds to it.
const Version = "v0.2"

// Newer reports whether v, as a spec's field schema holds it, is above Version: "v0.9", "v1", "v1.4.2". What is no version is not.
func Newer(v string) bool {
	return slices.Compare(numbers(v), numbers(Version)) > 0
}

var version = regexp.MustCompile(`^v([0-9]+)(?:[.]([0-9]+))?(?:[.][0-9]+)?$`)

// numbers are major and minor of a version.
func numbers(v string) []int {
	m := version.FindStringSubmatch(v)
	if m == nil {
		return nil
	}
	major, _ := strconv.Atoi(m[1]) // what no int holds is the largest
	minor, _ := strconv.Atoi(m[2]) // none is 0
	return []int{major, minor}
}

// Where specs find the schema.
const (
	Module     = "dynamo.graph@v0"
	ImportPath = "dynamo.graph/spec"
	Package    = "spec"
)

//go:embed graph.cue
var graph string

// File is one file of the package.
type File struct {
	Name string // "graph.cue"
	Text string
}

// Files returns the package with the kinds of r: graph.cue, one file for each kind and the catalogue. The order is fixed.
func Files(r *kind.Registry) []File {
	out := []File{{"graph.cue", graph}}
	var b strings.Builder
	b.WriteString("// Generated from the registry of kinds. DO NOT EDIT.\n\npackage spec\n\n")
	fmt.Fprintf(&b, "// #Version is that of this schema.\n#Version: %q\n\n#Kinds: {\n", Version)
	width := 0
	for _, e := range r.All() {
		width = max(width, len(e.Name))
	}
	for _, e := range r.All() {
		label := e.Name + ": config:"
		fmt.Fprintf(&b, "\t%-*s %s\n", width+len(": config:"), label, Definition(e.Name)) // as cue fmt does it
		text := strings.TrimLeft(e.Schema, "\n")
		if !hasPackage(text) {
			text = "package spec\n\n" + text
		}
		out = append(out, File{"kind_" + e.Name + ".cue", text})
	}
	b.WriteString("}\n")
	return append(out, File{"kinds_gen.cue", b.String()})
}

// Definition returns the name of a kind's definition: "#Decode" for "decode".
func Definition(kind string) string {
	if kind == "" {
		return "#"
	}
	return "#" + strings.ToUpper(kind[:1]) + kind[1:]
}

// hasPackage reports whether a CUE file has a package clause: what comes first after comments and blank lines.
func hasPackage(text string) bool {
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "//") {
			continue
		}
		return strings.HasPrefix(line, "package ")
	}
	return false
}
