package node

import (
	"testing"

	"github.com/dynamograph/dynamo/graph/kind"
	"github.com/dynamograph/dynamo/graph/plan"
)

func TestUnmet(t *testing.T) {
	api, route := &plan.Unit{Node: "api"}, &plan.Unit{Node: "route"}
	p := &process{group: &plan.Group{Units: []*plan.Unit{api, route}}, states: map[string]state{}}
	h := &host{p: p, unit: api}
	for _, c := range []struct {
		state  kind.State
		reason string
		want   string
	}{
		{"", "", "node route is starting"},
		{kind.Starting, `waits for an instance of node "decode"`, `node route is starting: waits for an instance of node "decode"`},
		{kind.Ready, "", ""},
		{kind.Degraded, "no prefill", ""},
		{kind.Draining, "", "node route is draining"},
		{kind.Failed, "odd", "node route is failed: odd"},
		{kind.Draining, "", "node route is failed: odd"}, // it stays so
	} {
		if c.state != "" {
			p.report("route", c.state, c.reason)
		}
		p.report("api", kind.Starting, "itself does not count")
		if got := h.Unmet(); got != c.want {
			t.Errorf("%s: %q, want %q", c.state, got, c.want)
		}
	}
}
