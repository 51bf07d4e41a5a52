// Package kvtier registers the kind of node "kvtier": KV blocks for which engines have no room. It is checked, but not run yet.
package kvtier

import (
	"fmt"

	"github.com/dynamograph/dynamo/graph"
	"github.com/dynamograph/dynamo/graph/diag"
	"github.com/dynamograph/dynamo/graph/kind"
	"github.com/dynamograph/dynamo/graph/model"
	"github.com/dynamograph/dynamo/graph/plan"
)

const schema = `
// #Kvtier keeps KV blocks for which engines have no room, and gives them back. It is checked, but not run yet.
#Kvtier: {
	kind: "kvtier"

	// tiers are where blocks are kept, from the fastest to the largest: a medium is not faster, and a size not smaller, than the one before.
	tiers!: [#Tier, ...#Tier]

	// scope says who finds what is kept: "tenant" keeps the blocks of each tenant apart, "graph" gives them to all. Default: "tenant".
	scope?: "tenant" | "graph"
}

// #Tier is one store of KV blocks.
#Tier: {
	// medium is what it is made of: main memory, a local disk, or an object store.
	medium!: "dram" | "nvme" | "object"

	// size is its room; above "0Ki".
	size!: #Size

	// evict says which blocks go first where there is no room: the least recently used, the least often used, or the oldest. Default: "lru".
	evict?: "lru" | "lfu" | "fifo"

	// path is the folder of a tier of medium "nvme". Default: one in the node's own.
	path?: string & !=""

	// url is where a tier of medium "object" lies, as "s3://BUCKET/PREFIX"; it must be set there, and there only. Default: none.
	url?: =~"^[a-z][a-z0-9]*://[^ @]+$"
}
`

// Config is what a spec may set.
type Config struct {
	Tiers []Tier `json:"tiers"`
	Scope string `json:"scope"` // "tenant" or "graph"
}

// Tier is one store of blocks.
type Tier struct {
	Medium string `json:"medium"` // "dram", "nvme" or "object"
	Size   string `json:"size"`   // see graph.ParseSize
	Evict  string `json:"evict,omitempty"`
	Path   string `json:"path,omitempty"`
	URL    string `json:"url,omitempty"`
}

func init() {
	kind.Register(kind.Kind[Config]{
		Name:    "kvtier",
		Summary: "Keeps KV blocks for which engines have no room.",
		Schema:  schema,
		Default: func() Config { return Config{Tiers: []Tier{}, Scope: "tenant"} },
		Ports: func(Config) []kind.Port {
			return []kind.Port{
				{Name: "kv", Type: "tier", Dir: kind.In, Need: true, Many: true, Doc: `it takes what engines offload: their output "offload"`},
				{Name: "events", Type: "events", Dir: kind.Out, Many: true, Signals: []string{"blocks"}},
			}
		},
		Check: check,
		Size:  size,
		Tenants: func(c Config) (string, string) {
			if c.Scope == "graph" {
				return "mixes", "scope"
			}
			return "", ""
		},
	})
}

// speed orders media, the fastest first.
var speed = map[string]int{"dram": 0, "nvme": 1, "object": 2}

func check(c Config, s kind.Site) diag.List {
	var l diag.List
	add := func(code, field, hint, format string, args ...any) *diag.Diagnostic {
		l.Add(s.Finding(code, field, hint, format, args...))
		return &l[len(l)-1]
	}
	for i, t := range c.Tiers {
		at := func(f string) string { return fmt.Sprintf("tiers.%d.%s", i, f) }
		bytes, err := graph.ParseSize(t.Size)
		if err != nil {
			add("bad-size", at("size"), "", "%v", err)
			continue
		}
		if bytes == 0 {
			add("bad-value", at("size"), "give it room, or remove the tier", "%q keeps nothing", t.Size)
		}
		switch {
		case t.Medium == "object" && t.URL == "":
			add("missing-field", at("url"), `add url: "s3://BUCKET/PREFIX"`, "an object store has an address")
		case t.Medium != "object" && t.URL != "":
			add("no-effect", at("url"), `remove it, or set medium: "object"`, "has no effect with medium %q", t.Medium)
		}
		if t.Medium != "nvme" && t.Path != "" {
			add("no-effect", at("path"), `remove it, or set medium: "nvme"`, "has no effect with medium %q", t.Medium)
		}
		if i == 0 {
			continue
		}
		above := c.Tiers[i-1]
		room, err := graph.ParseSize(above.Size)
		var d *diag.Diagnostic
		switch {
		case speed[t.Medium] < speed[above.Medium]:
			d = add("tier-order", at("medium"), "put the faster one first", "%q is faster than %q above it", t.Medium, above.Medium)
		case err == nil && bytes < room:
			d = add("tier-order", at("size"), "make it at least as large, or change their order", "%s, but the tier above it has %s", t.Size, above.Size)
		default:
			continue
		}
		d.Related = []diag.Related{{Pos: s.Field(fmt.Sprintf("tiers.%d", i-1)), Msg: fmt.Sprintf("the tier above it: %s, %s", above.Medium, above.Size)}}
	}
	return l
}

// size is what the tiers take of the machine.
func size(c Config, _ model.Facts) plan.Needs {
	var n plan.Needs
	n.Add(plan.Part{Name: "process", Place: plan.InMemory, Bytes: 32 << 20, Guess: true})
	for _, t := range c.Tiers {
		b, err := graph.ParseSize(t.Size)
		if err != nil {
			continue // check tells
		}
		switch t.Medium {
		case "dram":
			n.Add(plan.Part{Name: "tier in memory", Place: plan.InMemory, Bytes: b, Keeps: true})
		case "nvme":
			n.Add(plan.Part{Name: "tier on disk", Place: plan.OnDisk, Bytes: b, Keeps: true})
		}
	}
	return n
}
