package cli

import (
	"bytes"
	"context"
	"strings"
	"testing"
)

func run(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	app := &App{Name: "x", Commands: []*Command{{Name: "graph", Subcommands: []*Command{{
		Name:  "vet",
		Flags: []Flag{&StringSliceFlag{Name: "tag", Aliases: []string{"t"}}, &BoolFlag{Name: "quiet"}, &StringFlag{Name: "output"}},
		Action: func(c *Context) error {
			_, err := c.App.Writer.Write([]byte(strings.Join(c.Args().Slice(), ",") + "|" + strings.Join(c.StringSlice("tag"), ",") + "|" + c.String("output")))
			return err
		},
	}}}}}
	var out, errb bytes.Buffer
	code = Run(context.Background(), app, Env{Args: append([]string{"x"}, args...), Stdout: &out, Stderr: &errb})
	return code, out.String(), errb.String()
}

func TestFlagsAnywhere(t *testing.T) {
	for _, c := range []struct{ args, want string }{
		{"graph vet a.cue --output json -t k=v b.cue", "a.cue,b.cue|k=v|json"},
		{"graph vet --quiet a.cue -t a=1 -t=b=2", "a.cue|a=1,b=2|"},
		{"graph vet a.cue -- --output json", "a.cue,--output,json||"},
	} {
		code, out, stderr := run(t, strings.Fields(c.args)...)
		// cli/v2 keeps a "--" that follows an argument.
		if out = strings.Replace(out, ",--,", ",", 1); code != OK || out != c.want {
			t.Errorf("%s: %d %q %q, want %q", c.args, code, out, stderr, c.want)
		}
	}
}

func TestUsage(t *testing.T) {
	for _, c := range []struct{ args, want string }{
		{"graph vet a.cue --outptu json", `did you mean "--output"?`},
		{"graph vat", `no command "vat"; did you mean "vet"?`},
		{"grpah", `no command "grpah"; did you mean "graph"?`},
	} {
		code, out, stderr := run(t, strings.Fields(c.args)...)
		if code != Usage || out != "" || !strings.Contains(stderr, c.want) || strings.Count(stderr, "\n") != 1 {
			t.Errorf("%s: %d %q %q, want %q", c.args, code, out, stderr, c.want)
		}
	}
}
