package k8s

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/dynamograph/dynamo/graph/plan"
)

// groupDocs makes a group's StatefulSet and what belongs to it.
func (m *maker) groupDocs(g *plan.Group) []obj {
	docs := []obj{m.account(g.Name), m.groupPolicy(g), m.budget(g.Name), m.headless(g.Name, port("mesh", meshPort)), m.groupSet(g)}
	if n := m.ports[g.Name].port; n != 0 {
		docs = append(docs, m.doc("v1", "Service", m.name(free(m.p, g.Name+"-http")), g.Name, obj{"spec": obj{
			"type":     "ClusterIP",
			"selector": m.selector(g.Name),
			"ports":    []any{port("http", n)},
		}}))
	}
	return docs
}

func port(name string, n int) obj {
	return obj{"name": name, "port": n, "targetPort": n, "protocol": "TCP"}
}

func containerPort(name string, n int) obj {
	return obj{"name": name, "containerPort": n, "protocol": "TCP"}
}

const (
	// graceBeyondDrain is what a process gets after its drain to close, in seconds.
	graceBeyondDrain = 15
	// lameDuck is how long a pod that clients reach goes on before it drains, in seconds: the machines of the cluster take some to learn
	// that it is to be asked no more.
	lameDuck = 5
	// startup is what a first start may take, the download of models included, in seconds.
	startup = 3600
)

func (m *maker) groupSet(g *plan.Group) obj {
	args := []any{"node", "--plan", "/etc/dynamo/plan.json", "--replica", "$(REPLICA)",
		"--run-dir", "/run/dynamo", "--cache-dir", cachePath, "--drain", fmt.Sprintf("%ds", m.drain),
		"--status", ":" + strconv.Itoa(statusPort)}
	ports := []any{containerPort("status", statusPort)}
	if s := m.storeAddress(); s != "" {
		args = append(args, "--store", s, "--listen", "0.0.0.0:"+strconv.Itoa(meshPort), "--advertise", "$(POD_IP):"+strconv.Itoa(meshPort))
		ports = append(ports, containerPort("mesh", meshPort))
	}
	clients := m.ports[g.Name].port
	if clients != 0 {
		ports = append(ports, containerPort("http", clients))
	}
	env := []any{
		obj{"name": "REPLICA", "valueFrom": obj{"fieldRef": obj{"fieldPath": "metadata.labels['apps.kubernetes.io/pod-index']"}}},
		obj{"name": "POD_IP", "valueFrom": obj{"fieldRef": obj{"fieldPath": "status.podIP"}}},
	}
	mounts, volumes, claims := m.modelStore()
	mounts = append([]any{
		obj{"name": "plan", "mountPath": "/etc/dynamo", "readOnly": true},
		obj{"name": "run", "mountPath": "/run/dynamo"},
		obj{"name": "tmp", "mountPath": "/tmp"},
	}, mounts...)
	volumes = append([]any{
		obj{"name": "plan", "configMap": obj{"name": m.name("plan")}},
		obj{"name": "run", "emptyDir": obj{"medium": "Memory"}}, // memory that processes share: KV
		obj{"name": "tmp", "emptyDir": obj{}},
	}, volumes...)
	m.secrets(g, &env, &mounts, &volumes)
	container := obj{"name": "node", "command": []any{"dynamo"}, "env": env, "ports": ports}
	m.tls(g.Name, &args, &mounts, &volumes)
	container["args"], container["volumeMounts"] = append(args, g.Name), mounts
	grace := m.grace
	if clients != 0 {
		container["lifecycle"] = obj{"preStop": obj{"sleep": obj{"seconds": lameDuck}}}
		grace += lameDuck
	}
	container["startupProbe"] = probe("/live", "status", 5, startup/5)
	container["livenessProbe"] = alive("/live")
	container["readinessProbe"] = probe("/ready", "status", 5, 2)
	if r := resources(g.Needs); len(r) > 0 {
		container["resources"] = r
	}
	pod := m.pod(g.Name, grace, container, volumes)
	pod["metadata"].(obj)["annotations"] = obj{planAnnotation: m.digest}
	if len(m.MetricsFrom) > 0 { // what scrapers of pods look for by convention
		pod["metadata"].(obj)["annotations"] = obj{planAnnotation: m.digest,
			"prometheus.io/scrape": "true", "prometheus.io/port": strconv.Itoa(statusPort), "prometheus.io/path": "/metrics"}
	}
	return m.statefulSet(g.Name, g.Replicas.Want, pod, claims, false)
}

// probe asks for path; three seconds are plenty for an answer from memory.
func probe(path, port string, period, failures int) obj {
	return obj{"httpGet": obj{"path": path, "port": port}, "periodSeconds": period, "timeoutSeconds": 3, "failureThreshold": failures}
}

// alive ends a process that hangs, and does not wait for its drain.
func alive(path string) obj {
	p := probe(path, "status", 10, 3)
	p["terminationGracePeriodSeconds"] = 5
	return p
}

// deviceResource is what most clusters call an accelerator.
const deviceResource = "nvidia.com/gpu"

// resources reserves what the plan knows. There is no limit of memory: it would kill a pod for an estimate.
func resources(n plan.Needs) obj {
	r := obj{}
	if b := n.MemoryBytes + n.SharedBytes; b > 0 {
		r["memory"] = strconv.FormatInt((b+1<<20-1)>>20, 10) + "Mi"
	}
	if n.Threads > 0 {
		r["cpu"] = strconv.Itoa(n.Threads)
	}
	out := obj{}
	if len(r) > 0 {
		out["requests"] = r
	}
	if n.Devices > 0 {
		out["limits"] = obj{deviceResource: strconv.Itoa(n.Devices)}
	}
	return out
}

// storeAddress is what nodes pass as --store; "" where one process needs none.
func (m *maker) storeAddress() string {
	if m.store == "" {
		return strings.Join(m.p.Store.Endpoints, ",")
	}
	var out []string
	for _, host := range m.storeHosts() {
		out = append(out, fmt.Sprintf("%s:%d", host, storePort))
	}
	return strings.Join(out, ",")
}
