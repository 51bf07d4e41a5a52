package k8s_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
	appsv1 "k8s.io/api/apps/v1"
	networkingv1 "k8s.io/api/networking/v1"

	"github.com/dynamograph/dynamo/compiler"
	"github.com/dynamograph/dynamo/compiler/compilertest"
	"github.com/dynamograph/dynamo/graph/kind"
	"github.com/dynamograph/dynamo/graph/plan"
)

// policyOf returns the one policy that selects a set's pods.
func (s *set) policyOf(t *testing.T, st *appsv1.StatefulSet) *networkingv1.NetworkPolicy {
	t.Helper()
	var out *networkingv1.NetworkPolicy
	for _, p := range s.policies {
		if matches(p.Spec.PodSelector.MatchLabels, st.Spec.Template.Labels) {
			if out != nil {
				t.Errorf("%s: policies %s and %s select it", st.Name, out.Name, p.Name)
			}
			out = p
		}
	}
	if out == nil {
		t.Errorf("%s: no network policy selects it", st.Name)
		return nil
	}
	if !slices.Equal(out.Spec.PolicyTypes, []networkingv1.PolicyType{"Ingress", "Egress"}) {
		t.Errorf("%s: its policy is of types %v", st.Name, out.Spec.PolicyTypes)
	}
	return out
}

func fits(peers []networkingv1.NetworkPolicyPeer, labels map[string]string) bool {
	return len(peers) == 0 || slices.ContainsFunc(peers, func(p networkingv1.NetworkPolicyPeer) bool {
		return p.PodSelector != nil && p.NamespaceSelector == nil && p.IPBlock == nil && matches(p.PodSelector.MatchLabels, labels)
	})
}

func has(ports []networkingv1.NetworkPolicyPort, port int) bool {
	return len(ports) == 0 || slices.ContainsFunc(ports, func(p networkingv1.NetworkPolicyPort) bool {
		return string(*p.Protocol) == "TCP" && p.Port.IntValue() == port && p.EndPort == nil
	})
}

// reaches says whether the policies, as a cluster reads them, let a pod of one set connect to a port of another's: both must allow it.
func (s *set) reaches(t *testing.T, from, to *appsv1.StatefulSet, port int) bool {
	t.Helper()
	out, in := s.policyOf(t, from), s.policyOf(t, to)
	if out == nil || in == nil {
		return false
	}
	return slices.ContainsFunc(out.Spec.Egress, func(r networkingv1.NetworkPolicyEgressRule) bool {
		return fits(r.To, to.Spec.Template.Labels) && has(r.Ports, port)
	}) && slices.ContainsFunc(in.Spec.Ingress, func(r networkingv1.NetworkPolicyIngressRule) bool {
		return fits(r.From, from.Spec.Template.Labels) && has(r.Ports, port)
	})
}

// checkNetwork holds the policies against the plan: every connection that an edge needs is allowed, and no other.
func (s *set) checkNetwork(t *testing.T, p *plan.Plan, o options, listens map[string][]string) {
	t.Helper()
	part := func(st *appsv1.StatefulSet) string { return st.Labels["app.kubernetes.io/component"] }
	want := map[string]bool{}
	for _, e := range p.Edges {
		a, b := p.GroupOf(e.From), p.GroupOf(e.To)
		if (e.Type == "kv" || e.Type == "events" || e.Type == "load") == (kind.Port{Type: e.Type, Dir: kind.In}).Serves() {
			t.Fatalf("edge type %s: who answers?", e.Type)
		}
		if e.Type == "kv" || e.Type == "events" || e.Type == "load" { // asked for by the edge's end
			a, b = b, a
		}
		if a != b {
			want[fmt.Sprintf("%s->%s:9090", a.Name, b.Name)] = true
		}
	}
	groups := map[string]*plan.Group{}
	for _, g := range p.Groups {
		groups[g.Name] = g
		if p.Store.Kind == "embedded" {
			want[g.Name+"->"+storePart(s)+":2379"] = true
		}
	}
	if o.Target.Store == "3" {
		want[storePart(s)+"->"+storePart(s)+":2380"] = true
	}
	for _, from := range s.stateful {
		for _, to := range s.stateful {
			for _, port := range []int{9090, 9091, 2379, 2380, 22} {
				k := fmt.Sprintf("%s->%s:%d", part(from), part(to), port)
				if got := s.reaches(t, from, to, port); got != want[k] {
					t.Errorf("%s: allowed is %v, needed is %v", k, got, want[k])
				}
			}
		}
		metrics := slices.ContainsFunc(s.policyOf(t, from).Spec.Ingress, func(r networkingv1.NetworkPolicyIngressRule) bool {
			return len(r.From) > 0 && r.From[0].NamespaceSelector != nil && has(r.Ports, 9091)
		})
		if metrics != (len(o.Target.MetricsFrom) > 0) {
			t.Errorf("%s: metrics from elsewhere: %v", from.Name, metrics)
		}
		// Whoever may reach a listener for clients: all, or those of the namespace where it is written for its own machine.
		var clients []string
		for _, r := range s.policyOf(t, from).Spec.Ingress {
			switch {
			case len(r.From) == 0:
				clients = append(clients, "all")
			case r.From[0].PodSelector != nil && len(r.From[0].PodSelector.MatchLabels) == 0:
				clients = append(clients, "namespace")
			}
		}
		var may []string
		if groups[part(from)] != nil {
			for _, l := range listens[part(from)] {
				if strings.HasPrefix(l, "127.") {
					may = append(may, "namespace")
				} else {
					may = append(may, "all")
				}
			}
		}
		if !slices.Equal(clients, may) {
			t.Errorf("%s: clients from %q, want %q", from.Name, clients, may)
		}
	}
}

// storePart is the part that is no group.
func storePart(s *set) string {
	for _, st := range s.stateful {
		if strings.Contains(strings.Join(st.Spec.Template.Spec.Containers[0].Args, " "), "--data-dir") {
			return st.Labels["app.kubernetes.io/component"]
		}
	}
	return ""
}

// listens are the addresses for clients as the spec of an archive has them, by group.
func listens(t *testing.T, a *txtar.Archive) map[string][]string {
	t.Helper()
	g, err := compilertest.Parse("spec", string(a.Files[0].Data))
	if err != nil {
		t.Fatal(err)
	}
	p, list := compiler.Compile(g, compiler.Options{Registry: compilertest.Registry()})
	if list.Failed() {
		t.Fatal(list)
	}
	out := map[string][]string{}
	for _, g := range p.Groups {
		for _, u := range g.Units {
			for _, l := range u.Listen {
				out[g.Name] = append(out[g.Name], l)
			}
		}
	}
	return out
}
