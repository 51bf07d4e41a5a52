package dgd

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/dynamograph/dynamo/graph"
)

// What Dynamo's planner does where its config says nothing.
const (
	defaultTTFT   = 500 // milliseconds
	defaultITL    = 50  // milliseconds
	defaultBudget = 8   // accelerators
)

// planned is what a planner's options say, under the names that both of its forms have: a JSON config, or one option each.
type planned struct {
	*component
	values map[string]word
}

// number returns a value that is set, above 0, and removes it.
func (p *planned) number(names ...string) (float64, word, bool) {
	for _, n := range names {
		w, ok := p.values[n]
		if !ok {
			continue
		}
		delete(p.values, n)
		if v, err := strconv.ParseFloat(w.text, 64); err == nil && v > 0 && v < 1e9 {
			return v, w, true
		}
	}
	return 0, word{}, false
}

// options reads the planner's config.
func (b *builder) plannerOptions(c *component) *planned {
	p := &planned{component: c, values: map[string]word{}}
	for _, f := range c.flags {
		if f.name != "config" {
			p.values[strings.ReplaceAll(f.name, "-", "_")] = word{text: f.value(), at: f.at, line: f.line}
			continue
		}
		var m map[string]any
		if err := json.Unmarshal([]byte(f.value()), &m); err != nil {
			b.lostWord(f.word, c.path, "", "option --config %s: it is not JSON", f.value())
			continue
		}
		for k, v := range m {
			p.values[k] = word{text: fmt.Sprint(v), at: f.at, line: f.line}
		}
	}
	return p
}

// planner makes the node that scales the others.
func (b *builder) planner(c *component) {
	p := b.plannerOptions(c)
	cfg := config{}
	if s, _, ok := p.number("throughput_adjustment_interval_seconds", "throughput_adjustment_interval", "adjustment_interval", "load_adjustment_interval_seconds"); ok {
		cfg["every"] = graph.Duration(s * float64(time.Second))
	}
	for _, t := range []struct {
		name string
		into *graph.Duration
		ms   float64
	}{{"ttft", &b.g.SLO.TTFT, defaultTTFT}, {"itl", &b.g.SLO.ITL, defaultITL}} {
		ms, _, ok := p.number(t.name+"_ms", t.name)
		if !ok {
			ms = t.ms
			b.lost(c.at, c.path, fmt.Sprintf("set slo.%s", t.name), "component %q says no %s: slo.%s is Dynamo's own, %v ms", c.name, t.name, t.name, ms)
		}
		*t.into = graph.Duration(ms * float64(time.Millisecond))
	}
	budget, _, bounded := p.number("max_gpu_budget")
	if !bounded {
		budget = defaultBudget
		b.lost(c.at, c.path, fmt.Sprintf("set nodes.%s.scale.NODE.max", c.node), "component %q says no max_gpu_budget: it is Dynamo's own, %d", c.name, defaultBudget)
	}
	least, _, hasLeast := p.number("min_endpoint")
	scale := config{}
	var nodes []*component
	for _, w := range b.parts {
		n := b.g.Nodes[w.node]
		if n == nil || w.role != "worker" && w.role != "prefill" && w.role != "decode" {
			continue
		}
		nodes = append(nodes, w)
		have := 1
		if n.Replicas != nil {
			have = *n.Replicas
		}
		s := config{"max": max(have, int(budget)/max(1, w.gpus*w.machines))}
		if hasLeast && int(least) >= 1 && int(least) <= have {
			s["min"] = int(least)
		}
		scale[w.node] = s
	}
	if len(nodes) == 0 {
		b.lost(c.at, c.path, "", "component %q: there is nothing that it could scale", c.name)
		return
	}
	cfg["scale"] = scale
	if b.add(c, c.node, "planner", "", cfg) == nil {
		return
	}
	for _, w := range nodes {
		b.join(c, graph.End{Node: c.node}, graph.End{Node: w.node, Port: "scale"})
		b.join(c, graph.End{Node: w.node, Port: "load"}, graph.End{Node: c.node})
	}
	for _, f := range b.fronts {
		b.join(c, graph.End{Node: f.node, Port: "load"}, graph.End{Node: c.node})
	}
	for _, k := range []string{"environment", "backend"} {
		delete(p.values, k)
	}
	if rest := slices.Sorted(maps.Keys(p.values)); len(rest) > 0 {
		b.lostWord(p.values[rest[0]], c.path, "up and down say when a planner scales", "%s: a planner node has no field for it", strings.Join(rest, ", "))
	}
}
