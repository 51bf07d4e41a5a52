package main

import (
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"

	"github.com/dynamograph/dynamo/cmd/dynamo/internal/cli"
	"github.com/dynamograph/dynamo/graph/kind"
	"github.com/dynamograph/dynamo/specs/schema"
)

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

func joinComma(s []string) string { return strings.Join(s, ",") }

// versionInfo is what version --output json writes.
type versionInfo struct {
	Version string   `json:"version"`
	Go      string   `json:"go"`
	Schema  string   `json:"schema"` // module of the schema of specs
	Kinds   []string `json:"kinds"`  // of nodes
}

func (p *program) version() *cli.Command {
	return &cli.Command{
		Name: "version", Usage: "print the version", Flags: []cli.Flag{outputFlag("text or json")},
		Action: func(c *cli.Context) error {
			if err := textOrJSON(c); err != nil {
				return err
			}
			if c.String("output") == "json" {
				v := versionInfo{Version: versionString(), Go: runtime.Version(), Schema: schema.Module}
				for _, k := range kind.Default.All() {
					v.Kinds = append(v.Kinds, k.Name)
				}
				return p.encode(v)
			}
			_, err := fmt.Fprintln(p.Stdout, "dynamo", versionString())
			return err
		},
	}
}
