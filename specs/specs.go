// Package specs holds the graphs that are ready to run, and below it the language that they are written in: schema is what a spec imports,
// load reads one.
package specs

import (
	"embed"
	"fmt"
	"io/fs"
	"strings"
)

//go:embed *.cue
var ready embed.FS

// Names lists the ready specs, sorted, without ".cue".
func Names() []string {
	names, _ := fs.Glob(ready, "*.cue") // the pattern is well-formed
	for i, n := range names {
		names[i] = strings.TrimSuffix(n, ".cue")
	}
	return names
}

// Read returns a ready spec by its name, "llama-disagg".
func Read(name string) ([]byte, error) {
	b, err := ready.ReadFile(name + ".cue")
	if err != nil {
		return nil, fmt.Errorf("spec %q: no such ready spec; there are: %s", name, strings.Join(Names(), ", "))
	}
	return b, nil
}
