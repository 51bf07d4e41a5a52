package kube

import (
	"context"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"
)

// endpoint is a pod as a network policy sees it.
type endpoint struct {
	pod
	labels object
}

// allows says whether the policies of a namespace let a pod connect to a port of another: Kubernetes' rules, as far as the manifests use them.
func allows(policies []object, from, to endpoint, port int) bool {
	matches := func(selector any, labels object) bool {
		return selector != nil && covers(at(selector, "matchLabels"), labels, "") == "" || selector != nil && at(selector, "matchLabels") == nil
	}
	rules := func(side, direction, peers string, of, other endpoint) bool {
		selected := false
		for _, p := range policies {
			types, _ := at(p, "spec", "policyTypes").([]any)
			if !matches(at(p, "spec", "podSelector"), of.labels) || !slices.Contains(types, any(direction)) {
				continue
			}
			selected = true
			list, _ := at(p, "spec", side).([]any)
			for _, r := range list {
				ports, _ := at(r, "ports").([]any)
				who, _ := at(r, peers).([]any)
				if (len(ports) == 0 || slices.ContainsFunc(ports, func(p any) bool { return str(p, "protocol") == "TCP" && fmt.Sprint(at(p, "port")) == fmt.Sprint(port) })) &&
					(len(who) == 0 || slices.ContainsFunc(who, func(w any) bool {
						return at(w, "namespaceSelector") == nil && matches(at(w, "podSelector"), other.labels)
					})) {
					return true
				}
			}
		}
		return !selected
	}
	return rules("egress", "Egress", "to", from, to) && rules("ingress", "Ingress", "from", to, from)
}

// enforce does to the traffic between the pods of a namespace what a network that knows policies does: packets of what they do not allow are
// dropped, those of connections that are open already too. It returns the end of it.
func (n *node) enforce(ns string) (end func()) {
	n.t.Helper()
	policies := items(n.t, n.kubectl("get", "networkpolicies", "-n", ns, "-o", "json"))
	var all []endpoint
	var ips []string
	for _, o := range items(n.t, n.kubectl("get", "pods", "-n", ns, "-o", "json")) {
		e := endpoint{pod{name: str(o, "metadata", "name"), ip: str(o, "status", "podIP")}, at(o, "metadata", "labels").(object)}
		all, ips = append(all, e), append(ips, e.ip)
	}
	var b strings.Builder
	pods := "{ " + strings.Join(ips, ", ") + " }"
	b.WriteString("table inet policies {\nchain forward {\ntype filter hook forward priority 0; policy accept;\n")
	for _, from := range all {
		for _, to := range all {
			for _, port := range []int{2379, 2380, 8000, 9090, 9091} {
				if from.name != to.name && allows(policies, from, to, port) {
					fmt.Fprintf(&b, "ip saddr %s ip daddr %s tcp dport %d accept\nip saddr %s ip daddr %s tcp sport %d accept\n", from.ip, to.ip, port, to.ip, from.ip, port)
				}
			}
		}
	}
	fmt.Fprintf(&b, "ip saddr %s ip daddr %s drop\n}\n}\n", pods, pods)
	_, err := n.run([]byte(b.String()), n.root+"/usr/sbin/nft", "-f", "-")
	must(n.t, err)
	return func() {
		_, err := n.run(nil, n.root+"/usr/sbin/nft", "delete", "table", "inet", "policies")
		must(n.t, err)
	}
}

// connects says whether a process in a pod reaches a port of another.
func (n *node) connects(t *testing.T, from, to pod, port int) bool {
	t.Helper()
	id, err := process(from.name)
	must(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	return exec.CommandContext(ctx, "nsenter", fmt.Sprintf("--net=/proc/%d/ns/net", id), "bash", "-c", fmt.Sprintf("exec 3<>/dev/tcp/%s/%d", to.ip, port)).Run() == nil
}

// testPolicies shows that the graph works with what its policies allow, and that they allow no more.
func (n *node) testPolicies(t *testing.T, ns, url string) {
	n = &node{n.with(t)}
	part := func(p string) pod { return n.pods(ns, "app.kubernetes.io/component="+p)[0] }
	api, prefill, decode, store := part("api"), part("prefill"), part("decode"), part("store")
	if !n.connects(t, prefill, decode, 9090) {
		t.Error("prefill cannot reach decode even without policies: the check below would show nothing")
	}
	end := n.enforce(ns)
	defer end()
	before := n.metric(ns, "decode", handOffs)
	if got, err := ask(url, prompts[0]+" Again."); err != nil || got.Tokens < 10 {
		t.Errorf("with policies in force: %+v, %v", got, err)
	}
	if n.metric(ns, "decode", handOffs) == before {
		t.Error("with policies in force decode fetches nothing from prefill")
	}
	for _, c := range []struct {
		from, to pod
		port     int
		want     bool
	}{
		{api, prefill, 9090, true}, {api, decode, 9090, true}, {decode, prefill, 9090, true}, {api, store, 2379, true}, {prefill, store, 2379, true},
		{prefill, api, 8000, false}, // a client of the namespace may, but not a pod of the graph
		{prefill, decode, 9090, false}, {prefill, api, 9090, false}, {decode, store, 2380, false}, {store, api, 9090, false}, {api, decode, 9091, false},
	} {
		if got := n.connects(t, c.from, c.to, c.port); got != c.want {
			t.Errorf("%s -> %s:%d: connects %v, want %v", c.from.name, c.to.name, c.port, got, c.want)
		}
	}
}
