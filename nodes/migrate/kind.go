package migrate

import (
	"time"

	"github.com/dynamograph/dynamo/graph"
	"github.com/dynamograph/dynamo/graph/diag"
	"github.com/dynamograph/dynamo/graph/kind"
)

const schema = `
// #Migrate continues a request elsewhere when the instance that works on it fails. The compiler inserts one above each router.
#Migrate: {
	kind: "migrate"

	// limit is how often one request may be continued elsewhere; 0, which is never, or more. Default: 3.
	limit?: int & >=0 & <=100

	// stall is how long an instance may be silent after its first token before it counts as failed; "0s" does not watch. It must be above
	// the longest step of the engine. Default: "30s".
	stall?: #Duration
}
`

// Config is what a spec may set.
type Config struct {
	Limit int            `json:"limit"`
	Stall graph.Duration `json:"stall"`
}

// DefaultConfig is the config where a spec says nothing.
func DefaultConfig() Config { return Config{Limit: 3, Stall: graph.Duration(30 * time.Second)} }

func init() {
	kind.Register(kind.Kind[Config]{
		Name:     "migrate",
		Summary:  "Continues a request elsewhere when the instance that works on it fails.",
		Schema:   schema,
		Colocate: true,
		Wraps:    "tokens",
		Default:  DefaultConfig,
		Ports: func(Config) []kind.Port {
			return []kind.Port{
				{Name: "in", Type: "tokens", Dir: kind.In, Need: true},
				{Name: "out", Type: "tokens", Dir: kind.Out, Need: true},
			}
		},
		Check: func(c Config, s kind.Site) diag.List {
			if c.Stall >= 0 {
				return nil
			}
			return diag.List{s.Finding("bad-value", "stall", "", "%q is below zero", c.Stall.Std())}
		},
		Limits: func(c Config) []kind.Limit {
			return []kind.Limit{{Bound: kind.Stall, Field: "stall", Value: int64(c.Stall)}}
		},
		New: func(c Config, h kind.Host) (kind.Component, error) { return New(c, h) },
	})
}
