package k8s

import (
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/dynamograph/dynamo/graph/kind"
	"github.com/dynamograph/dynamo/graph/model"
	"github.com/dynamograph/dynamo/graph/plan"
)

// calls returns the groups that g's processes call over the plan's edges, and those that call them. A kind.Port says who answers.
func (m *maker) calls(g *plan.Group) (callees, callers []string) {
	add := func(to *[]string, name string) {
		if !slices.Contains(*to, name) {
			*to = append(*to, name)
		}
	}
	for _, e := range m.p.Edges {
		caller, callee := m.p.GroupOf(e.From), m.p.GroupOf(e.To)
		if caller == nil || callee == nil || caller == callee {
			continue
		}
		if !(kind.Port{Type: e.Type, Dir: kind.In}).Serves() {
			caller, callee = callee, caller
		}
		switch g {
		case caller:
			add(&callees, callee.Name)
		case callee:
			add(&callers, caller.Name)
		}
	}
	slices.Sort(callees)
	slices.Sort(callers)
	return callees, callers
}

// groupPolicy lets a group's pods speak with those that an edge of the plan joins to it, with the store, with DNS and, where models come
// from elsewhere, with their sources; with servers outside that a node calls, by port; and clients with the listeners made for them: those of the
// namespace where the listener is meant for its own machine. Kubelet reaches its pods in any case.
func (m *maker) groupPolicy(g *plan.Group) obj {
	callees, callers := m.calls(g)
	var ingress, egress []any
	if len(callers) > 0 {
		ingress = append(ingress, obj{"from": m.pods(callers...), "ports": []any{tcp(meshPort)}})
	}
	if l := m.ports[g.Name]; l.port != 0 {
		rule := obj{"ports": []any{tcp(l.port)}}
		if l.near {
			rule["from"] = []any{obj{"podSelector": obj{}}}
		}
		ingress = append(ingress, rule)
	}
	if len(callees) > 0 {
		egress = append(egress, obj{"to": m.pods(callees...), "ports": []any{tcp(meshPort)}})
	}
	outside := map[int]bool{}
	if m.store != "" {
		egress = append(egress, obj{"to": m.pods(m.store), "ports": []any{tcp(storePort)}})
	} else {
		for _, e := range m.p.Store.Endpoints {
			outside[endpointPort(e, storePort)] = true
		}
	}
	if m.downloads() {
		for _, md := range m.p.Models {
			for _, text := range md.Sources {
				if s, err := model.ParseSource(text); err == nil && s.Scheme != "file" {
					outside[endpointPort(s.URL, 443)] = true
				}
			}
		}
		outside[443] = true // mirrors and redirects
	}
	for _, u := range g.Units {
		for _, c := range u.Calls {
			outside[endpointPort(c, 443)] = true
		}
	}
	if len(outside) > 0 {
		var ports []any
		for _, p := range slices.Sorted(func(yield func(int) bool) {
			for p := range outside {
				if !yield(p) {
					return
				}
			}
		}) {
			ports = append(ports, tcp(p))
		}
		egress = append(egress, obj{"ports": ports})
	}
	return m.policy(g.Name, ingress, egress)
}

// endpointPort returns the port of an address or a URL; or is that of neither.
func endpointPort(s string, or int) int {
	if u, err := url.Parse(s); err == nil && u.Host != "" {
		if u.Port() == "" && u.Scheme == "http" {
			return 80
		}
		s = u.Host
	}
	if _, p, err := net.SplitHostPort(s); err == nil {
		if n, err := strconv.Atoi(strings.TrimSpace(p)); err == nil {
			return n
		}
	}
	return or
}

// storePolicy lets the graph's processes ask the store, and its replicas each other.
func (m *maker) storePolicy() obj {
	var groups []string
	for _, g := range m.p.Groups {
		groups = append(groups, g.Name)
	}
	ingress := []any{obj{"from": m.pods(groups...), "ports": []any{tcp(storePort)}}}
	var egress []any
	if m.p.Store.Replicas > 1 {
		peers := m.pods(m.store)
		ingress = append(ingress, obj{"from": peers, "ports": []any{tcp(peerPort)}})
		egress = append(egress, obj{"to": peers, "ports": []any{tcp(peerPort)}})
	}
	return m.policy(m.store, ingress, egress)
}

// policy adds what all pods need: DNS and, where somebody is named who collects metrics, the status port for that.
func (m *maker) policy(part string, ingress, egress []any) obj {
	if len(m.MetricsFrom) > 0 {
		var from []any
		for _, ns := range slices.Compact(slices.Sorted(slices.Values(m.MetricsFrom))) {
			from = append(from, obj{"namespaceSelector": obj{"matchLabels": obj{"kubernetes.io/metadata.name": ns}}})
		}
		ingress = append(ingress, obj{"from": from, "ports": []any{tcp(statusPort)}})
	}
	spec := obj{
		"podSelector": obj{"matchLabels": m.selector(part)},
		"policyTypes": []any{"Ingress", "Egress"},
		"egress":      append(egress, obj{"ports": []any{tcp(53), obj{"protocol": "UDP", "port": 53}}}),
	}
	if len(ingress) > 0 {
		spec["ingress"] = ingress
	}
	return m.doc("networking.k8s.io/v1", "NetworkPolicy", m.name(part), part, obj{"spec": spec})
}

// pods selects the pods of parts.
func (m *maker) pods(parts ...string) []any {
	var out []any
	for _, p := range parts {
		out = append(out, obj{"podSelector": obj{"matchLabels": m.selector(p)}})
	}
	return out
}

func tcp(port int) obj { return obj{"protocol": "TCP", "port": port} }
