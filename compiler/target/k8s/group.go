package k8s

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/dynamograph/dynamo/graph/plan"
)

// groupDocs makes a group's StatefulSet and its services.
func (m *maker) groupDocs(g *plan.Group) []obj {
	name := m.name(g.Name)
	docs := []obj{m.groupSet(g), m.headless(name, g.Name, "mesh", meshPort), m.budget(name, g.Name)}
	if port := m.ports[g.Name]; port != 0 {
		docs = append(docs, m.doc("v1", "Service", m.name(free(m.p, g.Name+"-http")), g.Name, obj{"spec": obj{
			"type":     "ClusterIP",
			"selector": m.selector(g.Name),
			"ports":    []any{obj{"name": "http", "port": port, "targetPort": port, "protocol": "TCP"}},
		}}))
	}
	return docs
}

func (m *maker) groupSet(g *plan.Group) obj {
	name := m.name(g.Name)
	args := []any{"node", "--plan", "/etc/dynamo/plan.json", "--replica", "$(REPLICA)",
		"--run-dir", "/run/dynamo", "--cache-dir", "/var/cache/dynamo", "--drain", fmt.Sprintf("%ds", m.DrainSeconds),
		"--status", ":" + strconv.Itoa(statusPort)}
	if s := m.storeAddress(); s != "" {
		args = append(args, "--store", s, "--listen", "0.0.0.0:"+strconv.Itoa(meshPort), "--advertise", "$(POD_IP):"+strconv.Itoa(meshPort))
	}
	ports := []any{obj{"name": "status", "containerPort": statusPort, "protocol": "TCP"}}
	if m.storeAddress() != "" {
		ports = append(ports, obj{"name": "mesh", "containerPort": meshPort, "protocol": "TCP"})
	}
	if p := m.ports[g.Name]; p != 0 {
		ports = append(ports, obj{"name": "http", "containerPort": p, "protocol": "TCP"})
	}
	container := obj{
		"name":    "node",
		"command": []any{"dynamo"},
		"args":    append(args, g.Name),
		"env": []any{
			obj{"name": "REPLICA", "valueFrom": obj{"fieldRef": obj{"fieldPath": "metadata.labels['apps.kubernetes.io/pod-index']"}}},
			obj{"name": "POD_IP", "valueFrom": obj{"fieldRef": obj{"fieldPath": "status.podIP"}}},
		},
		"ports": ports,
		"volumeMounts": []any{
			obj{"name": "plan", "mountPath": "/etc/dynamo", "readOnly": true},
			obj{"name": "run", "mountPath": "/run/dynamo"},
			obj{"name": "cache", "mountPath": "/var/cache/dynamo"},
			obj{"name": "tmp", "mountPath": "/tmp"},
		},
	}
	for k, v := range m.probes(g) {
		container[k] = v
	}
	if r := requests(g.Needs); len(r) > 0 {
		container["resources"] = obj{"requests": r}
	}
	volumes := []any{
		obj{"name": "plan", "configMap": obj{"name": m.name("plan")}},
		obj{"name": "run", "emptyDir": obj{"medium": "Memory"}}, // memory that processes share: KV
		obj{"name": "tmp", "emptyDir": obj{}},
	}
	var claims []any
	if slices.ContainsFunc(g.Units, func(u *plan.Unit) bool { return u.Model != "" }) {
		claims = append(claims, m.claim("cache", m.ModelStorage))
	} else {
		volumes = append(volumes, obj{"name": "cache", "emptyDir": obj{}})
	}
	pod := m.pod(g.Name, m.DrainSeconds+graceBeyondDrain, container, volumes)
	pod["metadata"].(obj)["annotations"] = obj{
		planAnnotation: m.digest,
		// What scrapers of pods look for by convention.
		"prometheus.io/scrape": "true", "prometheus.io/port": strconv.Itoa(statusPort), "prometheus.io/path": "/metrics",
	}
	return m.statefulSet(name, g.Name, g.Replicas.Want, pod, claims, false)
}

// graceBeyondDrain is what a process gets after its drain to close, in seconds.
const graceBeyondDrain = 15

// probes ask what clients see where there is something that they see, else the process itself. A listener made for clients answers /live and
// /ready: that is part of what kind.Kind.Listen promises.
func (m *maker) probes(g *plan.Group) obj {
	port := "status"
	if m.ports[g.Name] != 0 {
		port = "http"
	}
	live, ready := obj{"httpGet": obj{"path": "/live", "port": port}}, obj{"httpGet": obj{"path": "/ready", "port": port}}
	every := func(p obj, period, failures int) obj {
		out := obj{"periodSeconds": period, "timeoutSeconds": 3, "failureThreshold": failures}
		for k, v := range p {
			out[k] = v
		}
		return out
	}
	return obj{
		"startupProbe":   every(live, 5, m.StartupMinute*60/5),
		"livenessProbe":  every(live, 10, 6),
		"readinessProbe": every(ready, 5, 2),
	}
}

// requests reserves what the plan knows. There is no limit: it would kill a pod for an estimate.
func requests(n plan.Needs) obj {
	r := obj{}
	if b := n.MemoryBytes + n.SharedBytes; b > 0 {
		r["memory"] = strconv.FormatInt((b+1<<20-1)>>20, 10) + "Mi"
	}
	if n.Threads > 0 {
		r["cpu"] = strconv.Itoa(n.Threads)
	}
	return r
}

// storeAddress is what nodes pass as --store; "" where one process needs none.
func (m *maker) storeAddress() string {
	if m.store != "" {
		return fmt.Sprintf("%s:%d", m.store, storePort)
	}
	return strings.Join(m.p.Store.Endpoints, ",")
}

// storeDocs makes the store by which the processes find each other.
func (m *maker) storeDocs() []obj {
	part := strings.TrimPrefix(m.store, m.p.Graph+"-")
	probe := func(failures int) obj {
		return obj{"tcpSocket": obj{"port": "store"}, "periodSeconds": 5, "timeoutSeconds": 3, "failureThreshold": failures}
	}
	container := obj{
		"name":           "store",
		"command":        []any{"dynamo"},
		"args":           []any{"store", "--listen", "0.0.0.0:" + strconv.Itoa(storePort), "--data-dir", "/var/lib/dynamo/store"},
		"ports":          []any{obj{"name": "store", "containerPort": storePort, "protocol": "TCP"}},
		"startupProbe":   probe(60),
		"livenessProbe":  probe(6),
		"readinessProbe": probe(2),
		"resources":      obj{"requests": obj{"memory": "128Mi"}},
		"volumeMounts": []any{
			obj{"name": "data", "mountPath": "/var/lib/dynamo"},
			obj{"name": "tmp", "mountPath": "/tmp"},
		},
	}
	pod := m.pod(part, graceBeyondDrain, container, []any{obj{"name": "tmp", "emptyDir": obj{}}})
	return []obj{
		m.statefulSet(m.store, part, max(1, m.p.Store.Replicas), pod, []any{m.claim("data", "1Gi")}, true),
		m.headless(m.store, part, "store", storePort),
	}
}
