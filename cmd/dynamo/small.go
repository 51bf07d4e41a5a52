package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/dynamograph/dynamo/cmd/dynamo/internal/cli"
)

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

func joinComma(s []string) string { return strings.Join(s, ",") }

func (p *program) version() *cli.Command {
	return &cli.Command{Name: "version", Usage: "print the version", Action: func(*cli.Context) error {
		_, err := fmt.Fprintln(p.Stdout, "dynamo", versionString())
		return err
	}}
}
