// Package cli is what every dynamo command has in common: flags before and after arguments, exit statuses, and where output goes. It is the
// only importer of urfave/cli.
package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/dynamograph/dynamo/graph/diag"
)

// Exit statuses.
const (
	OK          = 0
	Findings    = 1   // the input is wrong, or what ran failed
	Usage       = 2   // the command line is wrong
	Unreachable = 3   // something could not be checked or reached
	Changes     = 4   // plan and diff: there are changes
	Interrupted = 130 // a second Ctrl-C
)

// Types of urfave/cli that commands are made of.
type (
	App             = cli.App
	Command         = cli.Command
	Context         = cli.Context
	Flag            = cli.Flag
	StringFlag      = cli.StringFlag
	StringSliceFlag = cli.StringSliceFlag
	BoolFlag        = cli.BoolFlag
	IntFlag         = cli.IntFlag
	DurationFlag    = cli.DurationFlag
)

// Env is what a command sees of the process: nothing else is ambient.
type Env struct {
	Args   []string // with the program's name
	Stdin  io.Reader
	Stdout io.Writer // data
	Stderr io.Writer // everything else
	Getenv func(string) string
}

// Error is an error with an exit status. An empty Msg says that all has been printed already.
type Error struct {
	Code int
	Msg  string
}

// Error returns the message.
func (e *Error) Error() string { return e.Msg }

// Fail makes an Error.
func Fail(code int, format string, args ...any) error {
	return &Error{code, fmt.Sprintf(format, args...)}
}

// Silent is an exit status whose reasons were printed.
func Silent(code int) error { return &Error{Code: code} }

// Run runs app and returns the exit status; errors are printed to env.Stderr.
func Run(ctx context.Context, app *App, env Env) int {
	app.Writer, app.ErrWriter = env.Stdout, env.Stderr
	app.ExitErrHandler = func(*cli.Context, error) {}
	usage := func(c *cli.Context, err error, _ bool) error {
		return Fail(Usage, "%s%s", err, hint(c, err))
	}
	app.OnUsageError = usage
	app.CommandNotFound = nil
	app.DisableSliceFlagSeparator = true // a value may hold a comma; a flag for several is given several times
	var walk func(cs []*cli.Command)
	walk = func(cs []*cli.Command) {
		for _, c := range cs {
			c.OnUsageError = usage
			c.HideHelpCommand = true // else an argument "h" would be a request for help; there is --help
			walk(c.Subcommands)
			if len(c.Subcommands) > 0 && c.Action == nil {
				c.Action = group
			}
		}
	}
	walk(app.Commands)
	if app.Action == nil {
		app.Action = group
	}
	err := app.RunContext(ctx, permute(app, env.Args))
	if err == nil {
		return OK
	}
	code := Findings
	var e *Error
	if errors.As(err, &e) {
		code = e.Code
	}
	switch msg := err.Error(); {
	case msg == "":
	case wantsJSON(env.Args):
		_ = json.NewEncoder(env.Stderr).Encode(Report{ReportedError{code, msg}})
	default:
		fmt.Fprintf(env.Stderr, "error: %s\n", msg)
	}
	return code
}

// Report is what a command with --output json writes to standard error, in one line, where it ends with an error.
type Report struct {
	Error ReportedError `json:"error"`
}

// ReportedError is an error for programs.
type ReportedError struct {
	Status  int    `json:"status"` // exit status
	Message string `json:"message"`
}

// wantsJSON reports whether the command line asks for JSON; it may be one that could not be understood.
func wantsJSON(args []string) bool {
	for i, a := range args {
		switch {
		case a == "--":
			return false
		case a == "--output=json", a == "-output=json", a == "--output" && i+1 < len(args) && args[i+1] == "json":
			return true
		}
	}
	return false
}

// group is the action of a command that only has subcommands.
func group(c *cli.Context) error {
	if c.Args().Present() {
		var names []string
		for _, s := range c.Command.Subcommands {
			names = append(names, s.Name)
		}
		if len(names) == 0 {
			for _, s := range c.App.Commands {
				names = append(names, s.Name)
			}
		}
		got := c.Args().First()
		msg := fmt.Sprintf("no command %q", got)
		if s := diag.Nearest(got, names); s != "" {
			msg += "; did you mean " + fmt.Sprintf("%q", s) + "?"
		}
		return Fail(Usage, "%s", msg)
	}
	return cli.ShowSubcommandHelp(c)
}

func hint(c *cli.Context, err error) string {
	_, name, ok := strings.Cut(err.Error(), "flag provided but not defined: -")
	if !ok {
		return ""
	}
	var names []string
	for _, f := range c.Command.Flags {
		names = append(names, f.Names()...)
	}
	if s := diag.Nearest(strings.TrimLeft(name, "-"), names); s != "" {
		return "; did you mean \"--" + s + "\"?"
	}
	return ""
}
