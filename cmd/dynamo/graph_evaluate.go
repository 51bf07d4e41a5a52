package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime/debug"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/dynamograph/dynamo/cmd/dynamo/internal/cli"
	"github.com/dynamograph/dynamo/graph/kind"
	"github.com/dynamograph/dynamo/specs/load"
)

// evaluate is what isolate runs: it evaluates one spec and ends.
func (p *program) evaluate() *cli.Command {
	return &cli.Command{
		Name:   "evaluate",
		Usage:  "evaluate one spec for another dynamo",
		Hidden: true,
		Flags:  []cli.Flag{&cli.StringFlag{Name: "memory", Usage: "`BYTES` that it may take"}},
		Action: func(c *cli.Context) error {
			n, err := strconv.ParseInt(c.String("memory"), 10, 64)
			if err != nil || n <= 0 {
				return cli.Fail(cli.Usage, "memory %q: want a number above 0", c.String("memory"))
			}
			debug.SetMaxStack(256 << 20)
			debug.SetMemoryLimit(n + n/4)
			// What the loader's own watch does not see in time, the kernel refuses: the heap may be twice what lives in it.
			most := uint64(2*n) + 512<<20
			if err := syscall.Setrlimit(syscall.RLIMIT_DATA, &syscall.Rlimit{Cur: most, Max: most}); err != nil && !errors.Is(err, syscall.EPERM) {
				return cli.Fail(cli.Unreachable, "limit of memory: %v", err)
			}
			if err := load.Serve(c.Context, kind.Default, p.Stdin, p.Stdout); err != nil {
				return cli.Fail(cli.Unreachable, "%v", err)
			}
			return nil
		},
	}
}

// isolate is a load.Options.Isolate: it has a spec evaluated by another process of this program, so that one that is made to take all memory
// and time takes no more than it may.
func (p *program) isolate(ctx context.Context, job []byte, l load.Limits) ([]byte, error) {
	exe, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, exe, "graph", "evaluate", "--memory", strconv.FormatInt(l.Memory, 10))
	cmd.Args[0] = p.Args[0]
	cmd.WaitDelay = time.Second
	var out, stderr bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(job), &out, &stderr
	err = cmd.Run()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		if exit.ExitCode() == cli.Unreachable {
			return nil, errors.New(strings.TrimSpace(strings.TrimPrefix(stderr.String(), "error: ")))
		}
		why := exit.ProcessState.String()
		switch text := stderr.String(); {
		case strings.Contains(text, "out of memory") || strings.Contains(text, "cannot allocate memory"):
			why = "out of memory"
		case strings.Contains(text, "stack overflow") || strings.Contains(text, "stack exceeds"):
			why = "it is nested without end"
		}
		return nil, fmt.Errorf("%w: %s", load.ErrCrashed, why)
	}
	return out.Bytes(), err
}
