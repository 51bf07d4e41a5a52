// Package recipes holds ready modules of graphs, a folder a model: see README.md. They are CUE and can be used without Go; the package puts
// them into the program, for `dynamo graph init --recipe`.
package recipes

import (
	"embed"
	"fmt"
	"io/fs"
	"slices"
	"strings"
)

//go:embed all:gemma-3-270m all:llama-3-70b all:smollm2
var all embed.FS

// Names lists the recipes, sorted: "smollm2".
func Names() []string {
	var out []string
	es, err := all.ReadDir(".")
	if err != nil {
		panic(err) // the root of an embed.FS is always there
	}
	for _, e := range es {
		out = append(out, e.Name())
	}
	return out
}

// Module returns the files of a recipe.
func Module(name string) (fs.FS, error) {
	if !slices.Contains(Names(), name) {
		return nil, fmt.Errorf("no recipe %q; there are: %s", name, strings.Join(Names(), ", "))
	}
	return fs.Sub(all, name)
}
