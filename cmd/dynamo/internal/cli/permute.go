package cli

import (
	"strings"

	"github.com/urfave/cli/v2"
)

// permute moves flags in front of positional arguments: cli/v2 stops parsing flags at the first argument, and would pass "SPEC --output
// json" by in silence. What follows "--" stays as it is. Flags that do not exist are moved too, so that they are refused.
func permute(app *cli.App, args []string) []string {
	if len(args) == 0 {
		return args
	}
	cmds, flags := app.Commands, app.Flags
	out, rest := []string{args[0]}, args[1:]
	for len(rest) > 0 {
		c := find(cmds, rest[0])
		if c == nil {
			break
		}
		out, rest, cmds, flags = append(out, rest[0]), rest[1:], c.Subcommands, c.Flags
	}
	var pos []string
	for i := 0; i < len(rest); i++ {
		a := rest[i]
		if a == "--" {
			pos = append(pos, rest[i:]...)
			break
		}
		if len(a) < 2 || a[0] != '-' {
			pos = append(pos, a)
			continue
		}
		out = append(out, a)
		if !strings.Contains(a, "=") && takesValue(flags, strings.TrimLeft(a, "-")) && i+1 < len(rest) {
			i++
			out = append(out, rest[i])
		}
	}
	return append(out, pos...)
}

func find(cs []*cli.Command, name string) *cli.Command {
	for _, c := range cs {
		if c.HasName(name) {
			return c
		}
	}
	return nil
}

func takesValue(fs []cli.Flag, name string) bool {
	for _, f := range fs {
		for _, n := range f.Names() {
			if n == name {
				_, isBool := f.(*cli.BoolFlag)
				return !isBool
			}
		}
	}
	return false
}
