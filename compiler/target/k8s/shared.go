package k8s

// name prefixes the graph's name, so that several graphs fit in a namespace.
func (m *maker) name(s string) string { return m.p.Graph + "-" + s }

// labels of everything of the graph; part is a group or the store, "" for what is shared.
func (m *maker) labels(part string) obj {
	l := m.selector(part)
	l["app.kubernetes.io/managed-by"] = "dynamo"
	l["app.kubernetes.io/part-of"] = m.p.Graph
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

// sharedDocs are the plan and, where all pods share one, the volume for models.
func (m *maker) sharedDocs() []obj {
	d := m.doc("v1", "ConfigMap", m.name("plan"), "", obj{"data": obj{"plan.json": string(m.json)}})
	d["metadata"].(obj)["annotations"] = obj{planAnnotation: m.digest}
	docs := []obj{d}
	if m.Models == sharedModels && len(m.p.Models) > 0 {
		docs = append(docs, m.sharedClaim())
	}
	return docs
}

// planAnnotation names the plan that a pod runs; a change of it replaces the pods, but not the store's.
const planAnnotation = "dynamo.graph/plan"

// account has no token and no right: the processes of a graph do not speak to the API server.
func (m *maker) account(part string) obj {
	return m.doc("v1", "ServiceAccount", m.name(part), part, obj{"automountServiceAccountToken": false})
}

// headless gives each pod of a StatefulSet a name in DNS, before it is ready too: peers wait for each other by name.
func (m *maker) headless(part string, ports ...obj) obj {
	list := make([]any, len(ports))
	for i, p := range ports {
		list[i] = p
	}
	return m.doc("v1", "Service", m.name(part), part, obj{"spec": obj{
		"clusterIP":                "None",
		"publishNotReadyAddresses": true,
		"selector":                 m.selector(part),
		"ports":                    list,
	}})
}

// budget lets a drain of a machine take one pod at a time; a bound from below would block it where there is one replica.
func (m *maker) budget(part string) obj {
	return m.doc("policy/v1", "PodDisruptionBudget", m.name(part), part, obj{"spec": obj{
		"maxUnavailable": 1,
		"selector":       obj{"matchLabels": m.selector(part)},
	}})
}

// tls mounts a part's certificate where pods show each other theirs.
func (m *maker) tls(part string, args, mounts, volumes *[]any) {
	const path = "/etc/dynamo-tls"
	if !m.MTLS {
		return
	}
	*args = append(*args, "--tls", path)
	*mounts = append(*mounts, obj{"name": "tls", "mountPath": path, "readOnly": true})
	*volumes = append(*volumes, obj{"name": "tls", "secret": obj{"secretName": TLSSecretName(m.p.Graph, part), "defaultMode": 0o440}})
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
	return obj{"metadata": obj{"labels": m.labels(part)}, "spec": obj{
		"serviceAccountName":            m.name(part),
		"automountServiceAccountToken":  false,
		"enableServiceLinks":            false,
		"terminationGracePeriodSeconds": grace,
		"securityContext": obj{
			"runAsNonRoot": true, "runAsUser": user, "runAsGroup": user, "fsGroup": user,
			"fsGroupChangePolicy": "OnRootMismatch",
			"seccompProfile":      obj{"type": "RuntimeDefault"},
		},
		"containers": []any{container},
		"volumes":    volumes,
	}}
}

// statefulSet starts all replicas at once. Their volumes go with them unless keep: what lies there can be made again.
func (m *maker) statefulSet(part string, replicas int, pod obj, claims []any, keep bool) obj {
	spec := obj{
		"serviceName":         m.name(part),
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
	return m.doc("apps/v1", "StatefulSet", m.name(part), part, obj{"spec": spec})
}
