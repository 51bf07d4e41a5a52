// Package node runs the units of one group of a plan in this process: it makes the components, joins them to each other and to the rest of
// the graph, and drains them. It is the only implementation of kind.Host outside tests. It does not choose what runs where (the compiler
// did) and does not restart anything (package supervise does).
package node

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"time"

	"github.com/dynamograph/dynamo/graph/kind"
	"github.com/dynamograph/dynamo/graph/plan"
	"github.com/dynamograph/dynamo/runtime/discovery"
	"github.com/dynamograph/dynamo/runtime/transport"
)

// Options say what runs and with what. Plan, Group, Kinds, Log and Metrics are needed.
type Options struct {
	Plan    *plan.Plan
	Group   string // of the plan
	Replica int    // of the group; instances are called "<node>-<replica>"
	Kinds   *kind.Registry
	Models  []*kind.Model // those of the plan that the group's units use, by name

	// Discovery, Server and Dial join the group to others; all nil where the plan has one group.
	Discovery discovery.Registry
	Server    transport.Server                           // whose listener is at Addr
	Addr      string                                     // "unix:/path" or "host:port": told to the others
	Dial      func(addr, instance string) transport.Conn // one connection a peer process; instance names it in errors

	RunDir, CacheDir string
	Machine          string        // equal in all processes that can share memory
	DrainTimeout     time.Duration // 0: 30 s

	Getenv func(string) string // for references "env:NAME" of the spec; nil: none is set

	Log     *slog.Logger
	Metrics kind.Metrics
	Tracer  kind.Tracer  // nil: no traces
	Status  net.Listener // nil: none; Run answers /live, /ready and /metrics there, and closes it
	// Tell hears each change of a node's state. addr is what people reach it at, "" where there is none.
	Tell func(node string, s kind.State, reason, addr string)
}

// Run starts the group's units, callees before callers, and blocks until ctx ends; then it leaves the table of instances, drains callers
// before callees, and closes everything. A unit that cannot be made or started, or that reports kind.Failed later, is an error that names
// it: the process cannot do its work, and whoever started it decides whether another one can.
func Run(ctx context.Context, o Options) error {
	if o.DrainTimeout == 0 {
		o.DrainTimeout = 30 * time.Second
	}
	g := groupByName(o.Plan, o.Group)
	if g == nil {
		return fmt.Errorf("group %q: not in plan %q; its groups: %s", o.Group, o.Plan.Graph, groupNames(o.Plan))
	}
	p := newProcess(o, g)
	defer p.close()
	if o.Status != nil {
		defer p.serveStatus(o.Status)()
	}
	type started struct {
		unit *plan.Unit
		kind.Component
	}
	var up []started // callees first
	closeAll := func() error {
		var errs []error
		for i := len(up) - 1; i >= 0; i-- { // callers first
			if err := up[i].Close(); err != nil {
				errs = append(errs, fmt.Errorf("node %s: close: %w", up[i].unit.Node, err))
			}
		}
		return errors.Join(errs...)
	}
	for i := len(g.Units) - 1; i >= 0; i-- {
		u := g.Units[i]
		k := o.Kinds.Lookup(u.Kind)
		if k == nil {
			return errors.Join(fmt.Errorf("node %s: kind %q: not in this binary", u.Node, u.Kind), closeAll())
		}
		h := p.host(u)
		h.Report(kind.Starting, "")
		c, err := k.New(u.Config, h)
		if err == nil {
			up = append(up, started{u, c})
			p.made(u.Node, c)
			err = c.Start(ctx)
		}
		if err != nil {
			if prefix := "node " + u.Node + ": "; !strings.HasPrefix(err.Error(), prefix) {
				err = fmt.Errorf("%s%w", prefix, err)
			}
			h.Report(kind.Failed, err.Error()) // where the component has not said so itself
			return errors.Join(err, closeAll())
		}
	}
	var failure error
	select {
	case <-ctx.Done():
	case failure = <-p.failed:
	}
	dctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), o.DrainTimeout)
	defer cancel()
	p.leave(dctx)
	for i := len(up) - 1; i >= 0; i-- {
		p.report(up[i].unit.Node, kind.Draining, "")
		if err := up[i].Drain(dctx); err != nil {
			o.Log.Warn("drain cut short", "node", up[i].unit.Node, "err", err)
		}
	}
	if o.Server != nil {
		if err := o.Server.Drain(dctx); err != nil {
			o.Log.Warn("drain cut short", "err", err)
		}
	}
	return errors.Join(failure, closeAll())
}

func groupNames(p *plan.Plan) string {
	var names []string
	for _, g := range p.Groups {
		names = append(names, g.Name)
	}
	return strings.Join(names, ", ")
}

func groupByName(p *plan.Plan, name string) *plan.Group {
	for _, g := range p.Groups {
		if g.Name == name {
			return g
		}
	}
	return nil
}
