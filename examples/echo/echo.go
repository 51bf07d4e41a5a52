// Command echo is a kind of node of one's own in one file, and a graph with it in one process: an engine that answers with the prompt, behind
// the frontend, the tokenizer and the router of the standard set. Researchers can put a scheduler of theirs in its place.
//
//	go run ./examples/echo
//	curl http://127.0.0.1:8000/v1/chat/completions -H 'content-type: application/json' \
//	  -d '{"model":"echo","messages":[{"role":"user","content":"hello"}]}'
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"time"

	"github.com/sourcegraph/conc/pool"

	"github.com/dynamograph/dynamo/compiler"
	"github.com/dynamograph/dynamo/graph"
	"github.com/dynamograph/dynamo/graph/diag"
	"github.com/dynamograph/dynamo/graph/flow"
	"github.com/dynamograph/dynamo/graph/flow/llm"
	"github.com/dynamograph/dynamo/graph/kind"
	"github.com/dynamograph/dynamo/graph/model"
	"github.com/dynamograph/dynamo/graph/plan"
	_ "github.com/dynamograph/dynamo/nodes/all"
	"github.com/dynamograph/dynamo/runtime/discovery/mem"
	"github.com/dynamograph/dynamo/runtime/node"
	"github.com/dynamograph/dynamo/runtime/telemetry"
	"github.com/dynamograph/dynamo/runtime/transport"
	"github.com/dynamograph/dynamo/runtime/transport/inproc"
	"github.com/dynamograph/dynamo/specs/load"
)

// Config is what a spec may set of an echo node.
type Config struct {
	Delay graph.Duration `json:"delay"` // between tokens
}

func init() {
	kind.Register(kind.Kind[Config]{
		Name:    "echo",
		Summary: "Answers with the prompt, token by token.",
		Schema: `
			// #Echo answers with the prompt, token by token.
			#Echo: {
				#worker

				kind: "echo"
				// delay is the time between tokens. Default: "0s".
				delay?: #Duration
			}`,
		Default: func() Config { return Config{} },
		Ports: func(Config) []kind.Port {
			return []kind.Port{{Name: "in", Type: "tokens", Dir: kind.In, Need: true, Doc: "it takes the tokens of a prompt and gives them back"}}
		},
		Check: check,
		Size:  func(Config, model.Facts) plan.Needs { return plan.Needs{MemoryBytes: 16 << 20, Threads: 1} },
		New:   func(c Config, h kind.Host) (kind.Component, error) { return &echo{c, h}, nil },
	})
}

// check finds what a schema cannot say. A finding points at the field where its author set it.
func check(c Config, s kind.Site) diag.List {
	if c.Delay >= 0 {
		return nil
	}
	return diag.List{s.Finding("bad-value", "delay", "", "%q is below zero", c.Delay.Std())}
}

type echo struct {
	Config
	host kind.Host
}

func (e *echo) Start(context.Context) error {
	if err := kind.Serve(e.host, llm.Tokens, "in", e, nil); err != nil {
		return err
	}
	e.host.Report(kind.Ready, "")
	return nil
}

func (e *echo) Drain(context.Context) error { return nil }
func (e *echo) Close() error                { return nil }

// Generate answers a request with its prompt.
func (e *echo) Generate(ctx context.Context, q *llm.TokensRequest) iter.Seq2[*llm.TokensDelta, error] {
	return func(yield func(*llm.TokensDelta, error) bool) {
		n := min(len(q.Tokens), q.Stop.MaxTokens)
		for i := range n {
			select {
			case <-ctx.Done():
				yield(nil, flow.AsError(ctx.Err()))
				return
			case <-time.After(e.Delay.Std()):
			}
			if !yield(&llm.TokensDelta{Tokens: q.Tokens[i : i+1]}, nil) {
				return
			}
		}
		yield(&llm.TokensDelta{Finish: llm.FinishLength, Usage: &llm.Usage{Prompt: len(q.Tokens), Completion: n}}, nil)
	}
}

const spec = `
package echo

import "dynamo.graph/spec"

spec.#Graph & {
	name: "echo"
	nodes: {
		api: spec.#Frontend & {listen: string | *"127.0.0.1:8000" @tag(listen)}
		route: spec.#Router
		echo: spec.#Echo & {delay: string | *"10ms" @tag(delay), replicas: 2}
	}
	edges: {
		"api -> route": {}
		"route.worker -> echo": {}
	}
}
`

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Stderr, nil); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

// run compiles the spec and runs all of its groups in this process until ctx ends. It prints the frontend's address.
func run(ctx context.Context, out io.Writer, tags []string) error {
	dir, err := os.MkdirTemp("", "echo-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	p, err := compile(ctx, out, filepath.Join(dir, "echo.cue"), tags)
	if err != nil {
		return err
	}
	log := telemetry.NewLog(out, telemetry.LogOptions{Level: slog.LevelWarn})
	table, servers := mem.New(), map[string]*inproc.Server{}
	defer table.Close()
	for _, g := range p.Groups {
		for r := range g.Replicas.Want {
			addr := fmt.Sprintf("%s-%d", g.Name, r)
			servers[addr] = inproc.NewServer(addr, log)
			defer servers[addr].Close()
		}
	}
	processes := pool.New().WithContext(ctx).WithCancelOnError()
	for _, g := range p.Groups {
		for r := range g.Replicas.Want {
			addr := fmt.Sprintf("%s-%d", g.Name, r)
			processes.Go(func(ctx context.Context) error {
				return node.Run(ctx, node.Options{
					Plan: p, Group: g.Name, Replica: r, Kinds: kind.Default,
					Discovery: table, Server: servers[addr], Addr: addr,
					Dial:   func(addr, _ string) transport.Conn { return servers[addr].Conn() },
					RunDir: dir, CacheDir: dir, Log: log, Metrics: telemetry.NewMetrics(),
					Tell: func(node string, s kind.State, _, addr string) {
						if s == kind.Ready && addr != "" {
							fmt.Fprintf(out, "%s is ready: %s\n", node, addr)
						}
					},
				})
			})
		}
	}
	return processes.Wait()
}

// compile checks the spec and lowers it; findings go to out.
func compile(ctx context.Context, out io.Writer, file string, tags []string) (*plan.Plan, error) {
	if err := os.WriteFile(file, []byte(spec), 0o600); err != nil {
		return nil, err
	}
	g, list, err := load.File(ctx, file, load.Options{Registry: kind.Default, Tags: tags})
	if err != nil {
		return nil, err
	}
	var p *plan.Plan
	if g != nil {
		var more diag.List
		p, more = compiler.Compile(g, compiler.Options{})
		list = append(list, more...)
	}
	if err := diag.Text(out, list, os.ReadFile, false); err != nil {
		return nil, err
	}
	if p == nil {
		return nil, errors.New("the spec is wrong")
	}
	return p, nil
}
