package k8s

import (
	"encoding/json"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"

	"github.com/dynamograph/dynamo/graph/diag"
	"github.com/dynamograph/dynamo/graph/model"
	"github.com/dynamograph/dynamo/graph/plan"
)

// listener is where clients reach a group.
type listener struct {
	port int
	near bool // written for the same machine only: in a cluster that is the same namespace
}

// adapt copies the plan and changes what differs in a cluster: KV moves over TCP, and what clients reach listens on all interfaces of its
// pod. It returns the listener for clients of each group that has one.
func (t Target) adapt(p *plan.Plan) (*plan.Plan, map[string]listener, diag.List) {
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
	if q.Store.Kind == "embedded" {
		switch n, err := strconv.Atoi(t.Store); {
		case t.Store == "":
		case err == nil:
			q.Store.Replicas = n
		default:
			q.Store = plan.Store{Kind: "etcd", Endpoints: strings.Split(t.Store, ",")}
		}
	}
	if n := q.Store.Replicas; n != 0 && n != 1 && n != 3 {
		list.Add(diag.Diagnostic{Code: "bad-value",
			Msg:  fmt.Sprintf("store: %d replicas: a store has 1, or 3 of which one may fail", n),
			Hint: "say 1 or 3, or name the endpoints of an etcd of your own"})
	}
	for _, e := range q.Store.Endpoints {
		if host, port, err := net.SplitHostPort(e); err != nil || host == "" || port == "" {
			list.Add(diag.Diagnostic{Code: "bad-value", Msg: fmt.Sprintf("store: %q is no address", e), Hint: "write HOST:PORT"})
		}
	}
	list = append(list, t.sources(q)...)
	list = append(list, strayFiles(q)...)
	listeners := map[string]listener{}
	for _, g := range q.Groups {
		for _, u := range g.Units {
			for _, field := range sortedKeys(u.Listen) {
				path := "nodes." + u.Node + "." + field
				host, port, err := net.SplitHostPort(u.Listen[field])
				n, nerr := strconv.Atoi(port)
				if err != nil || nerr != nil || n < 1024 || n > 65535 || n == meshPort || n == statusPort {
					list.Add(diag.Diagnostic{Code: "bad-value", Path: path,
						Msg:  fmt.Sprintf("%s: %q: a pod without rights needs a fixed port from 1024 to 65535 other than %d and %d", path, u.Listen[field], meshPort, statusPort),
						Hint: `write a number: ":8000"`})
					continue
				}
				if _, ok := listeners[g.Name]; !ok {
					ip := net.ParseIP(host)
					listeners[g.Name] = listener{n, host == "localhost" || ip != nil && ip.IsLoopback()}
				}
				u.Listen[field] = ":" + port
				if u.Config, err = setField(u.Config, field, ":"+port); err != nil {
					list.Add(diag.Diagnostic{Code: "internal", Path: path, Msg: err.Error()})
				}
			}
		}
	}
	return q, listeners, list
}

// sources refuses models that pods could not obtain.
func (t Target) sources(p *plan.Plan) diag.List {
	var list diag.List
	if kind, name, _ := strings.Cut(t.Models, ":"); kind != "" && t.Models != sharedModels && (kind != "claim" || name == "") {
		list.Add(diag.Diagnostic{Code: "bad-value", Msg: fmt.Sprintf("models %q: want %q or %q", t.Models, sharedModels, claimPrefix+"NAME"),
			Hint: "leave it out for a volume for each replica"})
	}
	for _, key := range sortedKeys(p.Models) {
		path := "models." + key
		m := p.Models[key]
		if t.claimed() {
			if !slices.ContainsFunc(m.Sources, mounted) {
				list.Add(diag.Diagnostic{Code: "local-source", Path: path,
					Msg:  fmt.Sprintf("%s: none of its sources is in the volume that pods mount at %s: %s", path, modelsPath, strings.Join(m.Sources, ", ")),
					Hint: fmt.Sprintf("add a source such as file:%s/%s.gguf, or leave out %s", modelsPath, key, t.Models)})
			}
			continue
		}
		if !slices.ContainsFunc(m.Sources, remote) {
			list.Add(diag.Diagnostic{Code: "local-source", Path: path,
				Msg:  fmt.Sprintf("%s: a pod cannot read the files of this machine: %s", path, strings.Join(m.Sources, ", ")),
				Hint: fmt.Sprintf("add a source that pods reach, such as https: or hf:, or mount a volume that has file:%s/…: --models claim:NAME", modelsPath)})
		}
		for _, text := range m.Sources {
			if s, err := model.ParseSource(text); err == nil && strings.HasPrefix(s.Token, "file:") {
				list.Add(diag.Diagnostic{Code: "local-source", Path: path,
					Msg:  fmt.Sprintf("%s: a pod cannot read a token from %s", path, s.Token),
					Hint: "write #token=env:NAME: pods get NAME from a Secret"})
			}
		}
	}
	return list
}

// The bounds of what the API server takes.
const (
	maxConfigMap = 1 << 20 // bytes
	// maxSet is the longest name of a StatefulSet: its pods carry it in a label together with a hash.
	maxSet   = 63 - len("-0123456789")
	maxLabel = 63
)

// refuse finds what an API server would refuse, or what it would take and the controllers would fail at.
func refuse(docs []Document, planJSON []byte) diag.List {
	var list diag.List
	if len(planJSON) > maxConfigMap-4096 {
		list.Add(diag.Diagnostic{Code: "too-large", Msg: fmt.Sprintf("the plan has %d KiB: a ConfigMap takes 1024", len(planJSON)>>10),
			Hint: "split the graph into several"})
	}
	for _, d := range docs {
		kind := d.Object["kind"].(string)
		name := d.Object["metadata"].(obj)["name"].(string)
		limit := maxLabel
		if kind == "StatefulSet" {
			limit = maxSet
		}
		if len(name) > limit {
			list.Add(diag.Diagnostic{Code: "long-name", Msg: fmt.Sprintf("%s %q has %d letters: Kubernetes takes %d", kind, name, len(name), limit),
				Hint: "shorten the name of the graph or of the node"})
		}
	}
	return list
}

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
