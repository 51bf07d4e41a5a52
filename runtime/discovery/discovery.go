// Package discovery tells the processes of a graph about each other: who serves which port, and where. Package mem does it inside one
// process, package etcd through a store (package store embeds one). Both pass one suite, package discoverytest.
//
// Serving never depends on the store: while it is away the last known table stands, and registrations come back by themselves.
package discovery

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"time"
)

// Instance is one running replica of a node, and what it serves.
type Instance struct {
	ID      string          `json:"id"`   // unique in the graph and stable over a restart: "decode-1"
	Node    string          `json:"node"` // of the graph: "decode"
	Addr    string          `json:"addr"` // "unix:/path" or "host:port"
	Ports   map[string]Port `json:"ports,omitempty"`
	Started time.Time       `json:"started"`
	Machine string          `json:"machine,omitempty"` // equal where shared memory can be mapped
}

// Port is a served port of an instance.
type Port struct {
	Type string            `json:"type"`
	Info map[string]string `json:"info,omitempty"` // what callers are told
}

// Check says what is wrong with an instance that a program made; nil is nothing.
func (in Instance) Check() error {
	switch {
	case in.ID == "" || strings.ContainsAny(in.ID, "/ \t\n"):
		return fmt.Errorf("instance id %q: must be set, without slash or space", in.ID)
	case in.Node == "":
		return fmt.Errorf("instance %q: node is not set", in.ID)
	}
	return nil
}

// Registry is the table of a graph's instances. It is safe for concurrent use.
type Registry interface {
	// Register adds in to the table and keeps it there until the lease is closed, whatever becomes of the store. It returns without
	// waiting for a store that cannot be reached. One ID has one live lease in a process: a second is ErrRegistered.
	Register(ctx context.Context, in Instance) (Lease, error)
	// Watch yields the whole table, sorted by ID, at once and after each change, until ctx ends or the registry is closed (the error
	// is then the last thing yielded). Changes that come while the loop is busy are merged. The slice and what it holds are shared:
	// read only. With a store, "at once" is when it has been reached; before that nothing is known and nothing is yielded.
	Watch(ctx context.Context) iter.Seq2[[]Instance, error]
	// Close ends every lease, like a Close of each, and every watch.
	Close() error
}

// Lease is a registration.
type Lease interface {
	// Update replaces the instance. Its ID must be the same.
	Update(in Instance) error
	// Close removes the instance: callers see it gone before the process refuses them. It is the first step of a drain. If the store
	// cannot be reached before ctx ends, that is the error, and the entry goes away with its time to live. A second Close does nothing.
	Close(ctx context.Context) error
}

// Errors that a caller may branch on.
var (
	ErrClosed     = errors.New("registry is closed")
	ErrRegistered = errors.New("instance is already registered")
)
