package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"

	"github.com/dynamograph/dynamo/cmd/dynamo/internal/cli"
	"github.com/dynamograph/dynamo/graph/plan"
	"github.com/dynamograph/dynamo/runtime/status"
	"github.com/dynamograph/dynamo/runtime/supervise"
)

// statusSocket is where a child of a run answers for itself.
func statusSocket(dir, child string) string { return "unix:" + filepath.Join(dir, child+".http") }

// serveStatus makes the board of a run and answers for it at addr, "" for nowhere, until stop is called.
func (p *program) serveStatus(ctx context.Context, addr string, v *view, children []supervise.Child, dir string) (stop func(), err error) {
	b, err := plan.Encode(v.plan)
	if err != nil {
		return nil, err
	}
	sockets := map[string]string{}
	for _, c := range children {
		if c.Name != "store" {
			sockets[c.Name] = statusSocket(dir, c.Name)
		}
	}
	v.board = status.New(v.plan.Graph, b, children, sockets)
	if addr == "" {
		return func() {}, nil
	}
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", addr)
	if err != nil {
		return nil, cli.Fail(cli.Unreachable, "status: %v; set --status to another address, or to \"\" for none", err)
	}
	v.url = "http://" + l.Addr().String()
	if err := os.WriteFile(filepath.Join(dir, urlName), []byte(v.url), 0o600); err != nil {
		_ = l.Close()
		return nil, cli.Fail(cli.Unreachable, "%v", err)
	}
	return v.board.Serve(l, func(err error) { _, _ = fmt.Fprintf(p.Stderr, "status: %v\n", err) }), nil
}
