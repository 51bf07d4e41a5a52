package migrate

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/dynamograph/dynamo/graph/flow"
	"github.com/dynamograph/dynamo/graph/flow/llm"
	"github.com/dynamograph/dynamo/graph/kind"
)

type peer = flow.Peer[*llm.TokensRequest, *llm.TokensDelta]

// waitFor is how long a request waits for somebody to send it to.
const waitFor = 10 * time.Second

// pick returns where an attempt goes: in turn, to one that did not fail this request if there is such. Below a router there is one. It
// waits a bounded time while there is none.
func (n *Node) pick(ctx context.Context, exclude []string) (peer, error) {
	ctx, cancel := context.WithTimeout(ctx, waitFor)
	defer cancel()
	for {
		changed := n.out.Changed()
		list := n.out.List()
		turn := int(n.turn.Add(1) % uint64(max(1, len(list))))
		for i := range list {
			if p := list[(turn+i)%len(list)]; !slices.Contains(exclude, p.ID) {
				return p, nil
			}
		}
		if len(list) > 0 {
			return list[turn], nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return peer{}, &flow.Error{Class: flow.Unavailable, Reason: "migrate.no_instance", RetryAfter: time.Second,
				Msg: fmt.Sprintf("no instance behind node %q for %v", n.host.Node(), waitFor)}
		}
	}
}

// follow reports whether there is somebody to send to, until ctx ends.
func (n *Node) follow(ctx context.Context) {
	for {
		changed := n.out.Changed()
		if len(n.out.List()) > 0 {
			n.host.Report(kind.Ready, "")
		} else {
			n.host.Report(kind.Starting, "waits for an instance to send to")
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return
		}
	}
}
