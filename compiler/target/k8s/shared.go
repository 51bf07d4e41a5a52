package k8s

import "slices"

// name prefixes the graph's name, so that several graphs fit in a namespace.
func (m *maker) name(s string) string { return m.p.Graph + "-" + s }

// labels of everything of the graph; part is a group or the store, "" for what is shared.
func (m *maker) labels(part string) obj {
	l := m.selector(part)
	l["app.kubernetes.io/managed-by"] = "dynamo"
	return l
}

// selector returns the labels by which pods are found. They never change: a StatefulSet's selector cannot.
func (m *maker) selector(part string) obj {
	l := obj{"app.kubernetes.io/name": "dynamo", "app.kubernetes.io/instance": m.p.Graph}
	if part != "" {
		l["app.kubernetes.io/component"] = part
	}
	return l
}

// doc begins a manifest.
func (m *maker) doc(api, kind, name, part string, rest obj) obj {
	d := obj{"apiVersion": api, "kind": kind, "metadata": obj{"name": name, "labels": m.labels(part)}}
	for k, v := range rest {
		d[k] = v
	}
	return d
}

// serviceAccount has no token and no right: the processes of a graph do not speak to the API server.
func (m *maker) serviceAccount() obj {
	return m.doc("v1", "ServiceAccount", m.p.Graph, "", obj{"automountServiceAccountToken": false})
}

// planAnnotation names the plan that a pod runs; a change of it replaces the pods, but not the store's.
const planAnnotation = "dynamo.graph/plan"

func (m *maker) planMap() obj {
	d := m.doc("v1", "ConfigMap", m.name("plan"), "", obj{"data": obj{"plan.json": string(m.json)}})
	d["metadata"].(obj)["annotations"] = obj{planAnnotation: m.digest}
	return d
}

// networkPolicy lets the graph's pods speak with each other and with DNS, clients with the listeners made for them, whoever collects metrics
// with the status ports, and, where models
// come from elsewhere, pods with the ports of HTTP and HTTPS.
func (m *maker) networkPolicy() obj {
	graph := []any{obj{"podSelector": obj{"matchLabels": m.selector("")}}}
	mesh := []any{tcp(meshPort)}
	if m.store != "" {
		mesh = append(mesh, tcp(storePort))
	}
	ingress := []any{obj{"from": graph, "ports": mesh}}
	open := []int{statusPort}
	for _, p := range m.ports {
		if !slices.Contains(open, p) {
			open = append(open, p)
		}
	}
	slices.Sort(open)
	for _, p := range open {
		ingress = append(ingress, obj{"ports": []any{tcp(p)}})
	}
	egress := []any{
		obj{"to": graph, "ports": mesh},
		obj{"ports": []any{tcp(53), obj{"protocol": "UDP", "port": 53}}},
	}
	if len(m.p.Models) > 0 {
		egress = append(egress, obj{"ports": []any{tcp(80), tcp(443)}})
	}
	return m.doc("networking.k8s.io/v1", "NetworkPolicy", m.p.Graph, "", obj{"spec": obj{
		"podSelector": obj{"matchLabels": m.selector("")},
		"policyTypes": []any{"Ingress", "Egress"},
		"ingress":     ingress,
		"egress":      egress,
	}})
}

func tcp(port int) obj { return obj{"protocol": "TCP", "port": port} }

// headless gives each pod of a StatefulSet a name in DNS, before it is ready too: peers wait for each other by name.
func (m *maker) headless(name, part, portName string, port int) obj {
	return m.doc("v1", "Service", name, part, obj{"spec": obj{
		"clusterIP":                "None",
		"publishNotReadyAddresses": true,
		"selector":                 m.selector(part),
		"ports":                    []any{obj{"name": portName, "port": port, "targetPort": port, "protocol": "TCP"}},
	}})
}

// budget lets a drain of a machine take one pod at a time; a bound from below would block it where there is one replica.
func (m *maker) budget(name, part string) obj {
	return m.doc("policy/v1", "PodDisruptionBudget", name, part, obj{"spec": obj{
		"maxUnavailable": 1,
		"selector":       obj{"matchLabels": m.selector(part)},
	}})
}

// claim is a volume that each replica gets for itself.
func (m *maker) claim(name, size string) obj {
	spec := obj{"accessModes": []any{"ReadWriteOnce"}, "resources": obj{"requests": obj{"storage": size}}}
	if m.StorageClass != "" {
		spec["storageClassName"] = m.StorageClass
	}
	return obj{"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": obj{"name": name}, "spec": spec}
}

// user is the numeric user and group of all pods; the image needs no entry for it.
const user = 65532

// pod fits Pod Security's "restricted".
func (m *maker) pod(part string, grace int, container obj, volumes []any) obj {
	container["image"] = m.Image
	container["securityContext"] = obj{
		"allowPrivilegeEscalation": false,
		"readOnlyRootFilesystem":   true,
		"capabilities":             obj{"drop": []any{"ALL"}},
	}
	spec := obj{
		"serviceAccountName":            m.p.Graph,
		"automountServiceAccountToken":  false,
		"enableServiceLinks":            false,
		"terminationGracePeriodSeconds": grace,
		"securityContext": obj{
			"runAsNonRoot": true, "runAsUser": user, "runAsGroup": user, "fsGroup": user,
			"fsGroupChangePolicy": "OnRootMismatch",
			"seccompProfile":      obj{"type": "RuntimeDefault"},
		},
		"containers": []any{container},
	}
	if len(volumes) > 0 {
		spec["volumes"] = volumes
	}
	return obj{"metadata": obj{"labels": m.labels(part)}, "spec": spec}
}

// statefulSet starts all replicas at once and gives up their volumes with them: what lies there can be made again.
func (m *maker) statefulSet(name, part string, replicas int, pod obj, claims []any, keep bool) obj {
	spec := obj{
		"serviceName":         name,
		"replicas":            replicas,
		"podManagementPolicy": "Parallel",
		"selector":            obj{"matchLabels": m.selector(part)},
		"template":            pod,
	}
	if len(claims) > 0 {
		spec["volumeClaimTemplates"] = claims
		if !keep {
			spec["persistentVolumeClaimRetentionPolicy"] = obj{"whenDeleted": "Delete", "whenScaled": "Delete"}
		}
	}
	return m.doc("apps/v1", "StatefulSet", name, part, obj{"spec": spec})
}
