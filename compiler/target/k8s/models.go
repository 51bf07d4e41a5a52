package k8s

import "strings"

const (
	sharedModels = "shared"
	claimPrefix  = "claim:"
	modelsPath   = "/models"
	cachePath    = "/var/cache/dynamo"
)

// claimed reports whether models are in a volume that exists.
func (t Target) claimed() bool { return strings.HasPrefix(t.Models, claimPrefix) }

// mounted reports whether a source is in the volume that pods mount.
func mounted(source string) bool { return strings.HasPrefix(source, "file:"+modelsPath+"/") }

// downloads reports whether pods fetch models.
func (m *maker) downloads() bool { return len(m.p.Models) > 0 && !m.claimed() }

// modelStore gives a pod its folder for models and what else can be made again. Every process obtains all models of its plan.
func (m *maker) modelStore() (mounts, volumes, claims []any) {
	mounts = []any{obj{"name": "cache", "mountPath": cachePath}}
	empty := obj{"name": "cache", "emptyDir": obj{}}
	switch {
	case len(m.p.Models) == 0:
		return mounts, []any{empty}, nil
	case m.claimed():
		mounts = append(mounts, obj{"name": "models", "mountPath": modelsPath, "readOnly": true})
		claim := obj{"claimName": strings.TrimPrefix(m.Models, claimPrefix), "readOnly": true}
		return mounts, []any{empty, obj{"name": "models", "persistentVolumeClaim": claim}}, nil
	case m.Models == sharedModels:
		return mounts, []any{obj{"name": "cache", "persistentVolumeClaim": obj{"claimName": m.name("models")}}}, nil
	}
	return mounts, nil, []any{m.claim("cache", m.ModelStorage)}
}

// sharedClaim is the volume that all pods write; they take turns by locks on it.
func (m *maker) sharedClaim() obj {
	c := m.claim(m.name("models"), m.ModelStorage)
	spec := c["spec"].(obj)
	spec["accessModes"] = []any{"ReadWriteMany"}
	return m.doc("v1", "PersistentVolumeClaim", m.name("models"), "", obj{"spec": spec})
}

// claim is a volume that each replica gets for itself.
func (m *maker) claim(name, size string) obj {
	spec := obj{"accessModes": []any{"ReadWriteOnce"}, "resources": obj{"requests": obj{"storage": size}}}
	if m.StorageClass != "" {
		spec["storageClassName"] = m.StorageClass
	}
	return obj{"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": obj{"name": name}, "spec": spec}
}
