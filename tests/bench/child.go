package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
)

// job is what a child reads, a line each; answer is what it writes.
type job struct {
	Prompts [][]uint32 `json:"prompts"`
	Output  int        `json:"output"`
}

type answer struct {
	About   string   `json:"about,omitempty"` // on the first line alone, once it is ready
	Streams []stream `json:"streams,omitempty"`
	Error   string   `json:"error,omitempty"`
}

// child is a subject that talks over stdin and stdout. It is measured without any server.
type child struct {
	cmd  *exec.Cmd
	in   io.WriteCloser
	out  *bufio.Reader
	text string
}

// openChild starts a command on the first CPUs, as many as threads.
func openChild(threads int, name string, args ...string) func(context.Context) (subject, error) {
	return func(ctx context.Context) (subject, error) {
		c := &child{cmd: pinned(ctx, threads, name, args...)}
		c.cmd.Stderr = os.Stderr
		var err error
		if c.in, err = c.cmd.StdinPipe(); err != nil {
			return nil, err
		}
		out, err := c.cmd.StdoutPipe()
		if err != nil {
			return nil, err
		}
		c.out = bufio.NewReader(out)
		if err := c.cmd.Start(); err != nil {
			return nil, err
		}
		a, err := c.read()
		if err != nil {
			return nil, errors.Join(err, c.stop())
		}
		c.text = a.About
		return c, nil
	}
}

func (c *child) read() (answer, error) {
	var a answer
	line, err := c.out.ReadBytes('\n')
	if err != nil {
		return a, fmt.Errorf("%s: %w", c.cmd.Path, err)
	}
	if err := json.Unmarshal(line, &a); err != nil {
		return a, fmt.Errorf("%s said %q: %w", c.cmd.Path, line, err)
	}
	if a.Error != "" {
		return a, errors.New(a.Error)
	}
	return a, nil
}

func (c *child) run(_ context.Context, prompts [][]uint32, output int) ([]stream, error) {
	b, err := json.Marshal(job{prompts, output})
	if err != nil {
		return nil, err
	}
	if _, err := c.in.Write(append(b, '\n')); err != nil {
		return nil, err
	}
	a, err := c.read()
	return a.Streams, err
}

func (c *child) processes() map[string]int { return map[string]int{"": c.cmd.Process.Pid} }
func (c *child) about() string             { return c.text }

func (c *child) stop() error {
	_ = c.in.Close()
	return c.cmd.Wait()
}

// pinned is a command that runs on the first n CPUs only.
func pinned(ctx context.Context, n int, name string, args ...string) *exec.Cmd {
	return exec.CommandContext(ctx, "taskset", append([]string{"-c", fmt.Sprintf("0-%d", n-1), name}, args...)...)
}
