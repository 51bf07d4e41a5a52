// Package k8s is the target of a Kubernetes namespace: plain manifests for `kubectl apply --server-side -f FOLDER`, without a CRD, an
// operator or a right of any ServiceAccount. It names no namespace: that is the choice of who applies them.
//
// Every group is a StatefulSet, because kind.Host promises instances that are unique and keep their name over a restart. KV moves over TCP,
// even between pods of one machine. Addresses of pods are IPv4.
package k8s

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/dynamograph/dynamo/compiler/target"
	"github.com/dynamograph/dynamo/graph/diag"
	"github.com/dynamograph/dynamo/graph/plan"
)

// Target makes the manifests. The zero Target is ready to use.
type Target struct {
	Image string // of the containers, with `dynamo` in its path; "" is "dynamo:latest"
	// Models says where pods have their models: "" is a volume for each replica, which fetches for itself; "shared" is one volume that all
	// write (ReadWriteMany); "claim:NAME" is a claim that exists, mounted read-only at /models, for sources such as file:/models/m.gguf.
	Models       string
	ModelStorage string   // of each volume that is made for models: a quantity; "" is "20Gi"
	StorageClass string   // of the volumes that are made; "" is the cluster's default
	MetricsFrom  []string // namespaces whose pods may read metrics
	// Store is what the graph's store is, where the plan does not say: "" or "1" is one replica, "3" three of which one may fail, else the
	// endpoints ("HOST:PORT,…") of an etcd that exists.
	Store string
	MTLS  bool // pods show each other the certificates of `graph certs`, from Secrets
}

var _ target.Target = Target{}

// Name returns "k8s".
func (Target) Name() string { return "k8s" }

// Document is a manifest, and the file that it goes to.
type Document struct {
	File   string
	Object map[string]any // of strings, ints, bools, maps and []any
}

// obj is a piece of a manifest; YAML gets its keys sorted, so that the bytes are the same each time.
type obj = map[string]any

// maker holds what the parts of one Lower share.
type maker struct {
	Target
	p      *plan.Plan
	json   []byte
	digest string
	store  string // the store's part; "" where there is none
	drain  int    // seconds
	grace  int    // seconds
	ports  map[string]listener
}

// The ports on which a process answers the others of its graph, and kubelet and Prometheus; and the store's.
const (
	meshPort   = 9090
	statusPort = 9091
	storePort  = 2379
	peerPort   = 2380
)

// Lower returns one file a group, and one each for what they share.
func (t Target) Lower(ctx context.Context, p *plan.Plan) ([]target.File, diag.List) {
	docs, list := t.Documents(ctx, p)
	if list.Failed() {
		return nil, list
	}
	var files []target.File
	for _, d := range docs {
		y, err := yaml.Marshal(d.Object)
		if err != nil {
			list.Add(diag.Diagnostic{Code: "internal", Msg: fmt.Sprintf("%s: %v", d.File, err)})
			return nil, list
		}
		if n := len(files); n > 0 && files[n-1].Path == d.File {
			files[n-1].Data = append(append(files[n-1].Data, "---\n"...), y...)
		} else {
			files = append(files, target.File{Path: d.File, Data: y})
		}
	}
	return files, list
}

// Documents returns the manifests in the order of their files, which is the order in which they are to be applied. With an error in the
// list there are none.
func (t Target) Documents(_ context.Context, p *plan.Plan) ([]Document, diag.List) {
	t.Image = cmp.Or(t.Image, "dynamo:latest")
	t.ModelStorage = cmp.Or(t.ModelStorage, "20Gi")
	q, ports, list := t.adapt(p)
	if list.Failed() {
		list.Sort()
		return nil, list
	}
	internal := func(err error) ([]Document, diag.List) {
		return nil, diag.List{{Code: "internal", Msg: err.Error()}}
	}
	b, err := plan.Encode(q)
	if err != nil {
		return internal(err)
	}
	digest, err := plan.Digest(q)
	if err != nil {
		return internal(err)
	}
	m := &maker{Target: t, p: q, json: b, digest: digest, ports: ports}
	m.drain = cmp.Or(q.DrainSeconds, 30)
	m.grace = cmp.Or(q.GraceSeconds, m.drain+graceBeyondDrain)
	if q.Store.Kind == "embedded" {
		m.store = StoreName(q)
	}
	var docs []Document
	add := func(file string, objects ...obj) {
		for _, o := range objects {
			docs = append(docs, Document{file, o})
		}
	}
	add("10-shared.yaml", m.sharedDocs()...)
	if m.store != "" {
		add("20-store.yaml", m.storeDocs()...)
	}
	for _, g := range q.Groups {
		add("30-"+g.Name+".yaml", m.groupDocs(g)...)
	}
	list = append(append(list, refuse(docs, b)...), m.needed()...)
	list.Sort()
	if list.Failed() {
		return nil, list
	}
	return docs, list
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

func sortedKeys[V any](m map[string]V) []string {
	out := make([]string, 0, len(m))
	for k := range m {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}

// remote reports whether a pod fetches from a source over the network.
func remote(source string) bool { return !strings.HasPrefix(source, "file:") }
