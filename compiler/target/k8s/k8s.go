// Package k8s is the target of a Kubernetes namespace: plain manifests for `kubectl apply -f FOLDER`, without a CRD, an operator or a
// right of any ServiceAccount. It names no namespace: that is the choice of who applies them.
//
// This is a first cut. Every group is a StatefulSet, because kind.Host promises instances that are unique and keep their name over a
// restart. KV moves over TCP, even between pods of one machine. The processes of a graph trust each other without TLS; the NetworkPolicy keeps
// others out, where the cluster's network enforces it. Each replica downloads its models to a volume of its own. The store has one
// replica. Addresses of pods are IPv4.
package k8s

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/dynamograph/dynamo/compiler/target"
	"github.com/dynamograph/dynamo/graph/diag"
	"github.com/dynamograph/dynamo/graph/plan"
)

// Target makes the manifests. The zero Target is ready to use.
type Target struct {
	Image         string // of the containers, with `dynamo` in its path; "" is "dynamo:latest"
	ModelStorage  string // of each replica's volume for models: a quantity; "" is "20Gi"
	StorageClass  string // of the volumes; "" is the cluster's default
	DrainSeconds  int    // that streams in flight may take when a pod ends; 0 is 30
	StartupMinute int    // minutes that a first start may take, downloads included; 0 is 60
}

var _ target.Target = Target{}

// Name returns "k8s".
func (Target) Name() string { return "k8s" }

// obj is a piece of a manifest; YAML gets its keys sorted, so that the bytes are the same each time.
type obj = map[string]any

// maker holds what the parts of one Lower share.
type maker struct {
	Target
	p      *plan.Plan
	json   []byte
	digest string
	store  string // name of the store's objects; "" where there is none
	ports  map[string]int
}

// The ports on which a process answers the others of its graph, and kubelet and Prometheus; and the store's.
const (
	meshPort   = 9090
	statusPort = 9091
	storePort  = 2379
)

// Lower returns one file a group, and one each for what they share.
func (t Target) Lower(_ context.Context, p *plan.Plan) ([]target.File, diag.List) {
	t.Image = cmp.Or(t.Image, "dynamo:latest")
	t.ModelStorage = cmp.Or(t.ModelStorage, "20Gi")
	t.DrainSeconds = cmp.Or(t.DrainSeconds, 30)
	t.StartupMinute = cmp.Or(t.StartupMinute, 60)
	q, ports, list := adapt(p)
	if list.Failed() {
		list.Sort()
		return nil, list
	}
	b, err := plan.Encode(q)
	if err != nil {
		return nil, diag.List{{Code: "internal", Msg: err.Error()}}
	}
	digest, err := plan.Digest(q)
	if err != nil {
		return nil, diag.List{{Code: "internal", Msg: err.Error()}}
	}
	m := &maker{Target: t, p: q, json: b, digest: digest, ports: ports}
	if q.Store.Kind == "embedded" {
		m.store = m.name(free(q, "store"))
	}
	var files []target.File
	add := func(path string, docs ...obj) {
		data, err := encode(docs)
		if err != nil {
			list.Add(diag.Diagnostic{Code: "internal", Msg: fmt.Sprintf("%s: %v", path, err)})
		}
		files = append(files, target.File{Path: path, Data: data})
	}
	add("10-shared.yaml", m.serviceAccount(), m.planMap(), m.networkPolicy())
	if m.store != "" {
		add("20-store.yaml", m.storeDocs()...)
	}
	for _, g := range q.Groups {
		add("30-"+g.Name+".yaml", m.groupDocs(g)...)
	}
	if list.Failed() {
		return nil, list
	}
	return files, list
}

// adapt copies the plan and changes what differs in a cluster: KV moves over TCP, and what clients reach listens on all interfaces of its
// pod. It returns the port for clients of each group that has one.
func adapt(p *plan.Plan) (*plan.Plan, map[string]int, diag.List) {
	var list diag.List
	b, err := plan.Encode(p)
	if err != nil {
		return nil, nil, diag.List{{Code: "internal", Msg: err.Error()}}
	}
	q, err := plan.Decode(b)
	if err != nil {
		return nil, nil, diag.List{{Code: "internal", Msg: err.Error()}}
	}
	for _, e := range q.Edges {
		if e.Transport == "shm" {
			e.Transport = "tcp"
		}
	}
	if q.Store.Replicas > 1 {
		list.Add(diag.Diagnostic{Code: "bad-value", Path: "store.replicas",
			Msg:  fmt.Sprintf("store.replicas: %d: this target makes a store of one", q.Store.Replicas),
			Hint: "name the endpoints of an etcd of your own"})
	}
	for name, m := range q.Models {
		if !slices.ContainsFunc(m.Sources, remote) {
			list.Add(diag.Diagnostic{Code: "local-source", Path: "models." + name,
				Msg:  fmt.Sprintf("models.%s: a pod cannot read the files of this machine: %s", name, strings.Join(m.Sources, ", ")),
				Hint: "add a source that pods reach, such as https: or hf:"})
		}
	}
	ports := map[string]int{}
	for _, g := range q.Groups {
		for _, u := range g.Units {
			for _, field := range sortedKeys(u.Listen) {
				path := "nodes." + u.Node + "." + field
				_, port, err := net.SplitHostPort(u.Listen[field])
				n, nerr := strconv.Atoi(port)
				if err != nil || nerr != nil || n <= 0 || n == meshPort || n == statusPort {
					list.Add(diag.Diagnostic{Code: "bad-value", Path: path,
						Msg:  fmt.Sprintf("%s: %q: a Service needs a fixed port other than %d and %d", path, u.Listen[field], meshPort, statusPort),
						Hint: `write a number: ":8000"`})
					continue
				}
				if ports[g.Name] == 0 {
					ports[g.Name] = n
				}
				u.Listen[field] = ":" + port
				if u.Config, err = setField(u.Config, field, ":"+port); err != nil {
					list.Add(diag.Diagnostic{Code: "internal", Path: path, Msg: err.Error()})
				}
			}
		}
	}
	return q, ports, list
}

// remote reports whether a pod can read from a source.
func remote(source string) bool { return !strings.HasPrefix(source, "file:") }

// setField sets a string at a dotted path of a JSON object and leaves the rest as it is.
func setField(raw json.RawMessage, path, value string) (json.RawMessage, error) {
	fields := map[string]json.RawMessage{}
	if err := json.Unmarshal(raw, &fields); err != nil {
		return nil, fmt.Errorf("config: %w", err)
	}
	head, rest, more := strings.Cut(path, ".")
	v, err := json.Marshal(value)
	if more {
		v, err = setField(fields[head], rest, value)
	}
	if err != nil {
		return nil, err
	}
	fields[head] = v
	return json.Marshal(fields)
}

// free returns a name that no group has.
func free(p *plan.Plan, name string) string {
	for slices.ContainsFunc(p.Groups, func(g *plan.Group) bool { return g.Name == name }) {
		name = "dynamo-" + name
	}
	return name
}

// encode joins documents.
func encode(docs []obj) ([]byte, error) {
	var b bytes.Buffer
	for i, d := range docs {
		y, err := yaml.Marshal(d)
		if err != nil {
			return nil, err
		}
		if i > 0 {
			b.WriteString("---\n")
		}
		b.Write(y)
	}
	return b.Bytes(), nil
}

func sortedKeys(m map[string]string) []string {
	out := make([]string, 0, len(m))
	for k := range m {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}
