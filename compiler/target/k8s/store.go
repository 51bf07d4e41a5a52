package k8s

import (
	"fmt"
	"strconv"
	"strings"
)

// storeHosts are the names of the store's pods: of one where there is one.
func (m *maker) storeHosts() []string {
	name := m.name(m.store)
	if m.p.Store.Replicas <= 1 {
		return []string{name}
	}
	var out []string
	for i := range m.p.Store.Replicas {
		out = append(out, fmt.Sprintf("%s-%d.%s", name, i, name))
	}
	return out
}

// storeDocs makes the store by which the processes find each other. One replica needs no disk: what it knows, the live instances tell it
// anew. Three agree among each other, and none may forget what it agreed to.
func (m *maker) storeDocs() []obj {
	const data = "/var/lib/dynamo"
	name, several := m.name(m.store), m.p.Store.Replicas > 1
	args := []any{"store", "--listen", "0.0.0.0:" + strconv.Itoa(storePort), "--data-dir", data + "/store", "--status", "0.0.0.0:" + strconv.Itoa(statusPort)}
	container := obj{
		"name":           "store",
		"command":        []any{"dynamo"},
		"startupProbe":   probe("/livez", "status", 5, 60),
		"livenessProbe":  alive("/livez"),
		"readinessProbe": probe("/readyz", "status", 5, 2),
		"resources":      obj{"requests": obj{"memory": "128Mi"}},
	}
	ports := []any{containerPort("store", storePort), containerPort("status", statusPort)}
	mounts := []any{obj{"name": "data", "mountPath": data}, obj{"name": "tmp", "mountPath": "/tmp"}}
	volumes := []any{obj{"name": "tmp", "emptyDir": obj{}}}
	services := []obj{port("store", storePort)}
	var claims []any
	if several {
		var members []string
		for i, host := range m.storeHosts() {
			members = append(members, fmt.Sprintf("%s-%d=%s:%d", name, i, host, peerPort))
		}
		args = append(args, "--member", "$(POD_NAME)", "--members", strings.Join(members, ","))
		container["env"] = []any{obj{"name": "POD_NAME", "valueFrom": obj{"fieldRef": obj{"fieldPath": "metadata.name"}}}}
		ports = append(ports, containerPort("peer", peerPort))
		services = append(services, port("peer", peerPort))
		claims = []any{m.claim("data", "1Gi")}
	} else {
		volumes = append(volumes, obj{"name": "data", "emptyDir": obj{}})
	}
	m.tls(m.store, &args, &mounts, &volumes)
	container["args"], container["ports"], container["volumeMounts"] = args, ports, mounts
	pod := m.pod(m.store, graceBeyondDrain, container, volumes)
	return []obj{
		m.account(m.store), m.storePolicy(), m.budget(m.store), m.headless(m.store, services...),
		m.statefulSet(m.store, max(1, m.p.Store.Replicas), pod, claims, true),
	}
}
