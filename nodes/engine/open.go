package engine

import (
	"fmt"
	"slices"
	"strings"

	"github.com/dynamograph/dynamo/graph/flow"
	"github.com/dynamograph/dynamo/graph/flow/llm"
	"github.com/dynamograph/dynamo/graph/kind"
)

// Options is what the node gives an engine beside the user's Config.
type Options struct {
	Config Config
	Host   kind.Host
	Model  *kind.Model // nil: only the mock engine does without
	// Fetch finds the instance that holds a hand-off's blocks; nil where the node has no kv edge.
	Fetch func(peer string) (flow.AsyncEngine[*llm.KVFetch, *llm.KVBlock], error)
	// Die ends the process at once, for the mock's failure "die"; nil: the engine closes instead.
	Die func()
}

// OpenFunc opens an engine. It may take seconds and reports progress by Host.Report(Starting, …).
type OpenFunc func(Options) (Engine, error)

var engines = map[string]OpenFunc{}

// Register makes an engine known by name; call it from init. It panics on a repeated name.
func Register(name string, open OpenFunc) {
	if _, ok := engines[name]; ok {
		panic("engine " + name + ": registered twice")
	}
	engines[name] = open
}

// Names returns the known engines, sorted.
func Names() []string {
	out := make([]string, 0, len(engines))
	for n := range engines {
		out = append(out, n)
	}
	slices.Sort(out)
	return out
}

// Open opens the engine that o.Config names.
func Open(o Options) (Engine, error) {
	open, ok := engines[o.Config.Engine]
	if !ok {
		return nil, fmt.Errorf("engine %q: unknown; known: %s", o.Config.Engine, strings.Join(Names(), ", "))
	}
	return open(o)
}
