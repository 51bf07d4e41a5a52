package diff

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/dynamograph/dynamo/graph"
)

// Stream is what a change means for the requests of one model that are in progress.
type Stream struct {
	Model   string   `json:"model"`             // key of the old plan's models; "" where the graph has none
	Names   []string `json:"names,omitempty"`   // what clients call it
	Effect  Effect   `json:"effect"`            // the worst of what its groups do
	Through []string `json:"through,omitempty"` // groups on its way that change, sorted
	Why     []string `json:"why,omitempty"`     // one line for each of them
}

// Effect is what becomes of a request in progress.
type Effect string

// The effects, the mildest first.
const (
	None    Effect = "none"    // it does not pass what changes
	Migrate Effect = "migrate" // it is continued on another instance
	Cut     Effect = "cut"     // it is finished while the process drains, else cut
)

// streams says for each model of the old plan what its requests pass that changes.
func (c *comparer) streams() {
	keys := slices.Sorted(maps.Keys(c.from.Models))
	if len(keys) == 0 {
		keys = []string{""}
	}
	change := map[string]Group{}
	for _, g := range c.d.Groups {
		change[g.Name] = g
	}
	for _, key := range keys {
		s := Stream{Model: key, Effect: None}
		if m := c.from.Models[key]; m != nil {
			s.Names = m.Names
		}
		way := c.way(key)
		for _, name := range slices.Sorted(maps.Keys(way)) {
			g := change[name]
			effect, why := c.effect(g, way)
			if effect == None {
				continue
			}
			s.Through, s.Why = append(s.Through, name), append(s.Why, why)
			if s.Effect != Cut {
				s.Effect = effect
			}
		}
		c.d.Streams = append(c.d.Streams, s)
	}
}

// way returns the groups that requests of a model pass in the old plan; true for those where they come in.
func (c *comparer) way(model string) map[string]bool {
	calls, called := map[string][]string{}, map[string]bool{}
	for _, e := range c.from.Edges {
		if graph.IsCall(e.Type) {
			calls[e.From] = append(calls[e.From], e.To)
			called[e.To] = true
		}
	}
	of := map[string]string{} // model by node
	group := map[string]string{}
	var entries []string
	for _, g := range c.from.Groups {
		for _, u := range g.Units {
			of[u.Node], group[u.Node] = u.Model, g.Name
			if len(calls[u.Node]) > 0 && !called[u.Node] {
				entries = append(entries, u.Node)
			}
		}
	}
	out := map[string]bool{}
	for _, entry := range entries {
		seen, serves := map[string]bool{}, model == ""
		for todo := []string{entry}; len(todo) > 0; todo = todo[1:] {
			n := todo[0]
			if seen[n] || of[n] != "" && of[n] != model {
				continue
			}
			seen[n] = true
			serves = serves || of[n] == model
			todo = append(todo, calls[n]...)
			for _, e := range c.from.Edges {
				switch { // data that a request waits for
				case !graph.IsCall(e.Type) && !graph.IsStream(e.Type) && e.To == n:
					todo = append(todo, e.From)
				case e.Type == "tier" && e.From == n:
					todo = append(todo, e.To)
				}
			}
		}
		if !serves {
			continue
		}
		for n := range seen {
			out[group[n]] = out[group[n]] || n == entry
		}
	}
	return out
}

// effect says what a group's change does to the requests that pass it.
func (c *comparer) effect(g Group, way map[string]bool) (Effect, string) {
	what := ""
	switch {
	case g.Action == Remove:
		what = "is removed"
	case g.Action == Replace, g.Action == Rewire:
		what = "starts again"
	case g.Replicas.To < g.Replicas.From:
		what = fmt.Sprintf("loses %d of %d replicas", g.Replicas.From-g.Replicas.To, g.Replicas.From)
	default:
		return None, ""
	}
	if way[g.Name] {
		return Cut, fmt.Sprintf("%s %s: clients are connected to it, so their streams end with its drain", g.Name, what)
	}
	if by := c.migrator(g.Name, way); by != "" {
		return Migrate, fmt.Sprintf("%s %s: %s continues its streams elsewhere", g.Name, what, by)
	}
	return Cut, fmt.Sprintf("%s %s: nothing continues its streams elsewhere", g.Name, what)
}

// migrator returns a node on the way, in another group, that continues requests.
func (c *comparer) migrator(group string, way map[string]bool) string {
	var found []string
	for _, g := range c.from.Groups {
		if _, on := way[g.Name]; !on || g.Name == group {
			continue
		}
		for _, u := range g.Units {
			if c.o.Migrates(u.Kind) {
				found = append(found, u.Node)
			}
		}
	}
	slices.Sort(found)
	return strings.Join(found, " or ")
}
