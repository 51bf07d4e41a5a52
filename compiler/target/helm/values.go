package helm

import (
	"fmt"
	"strings"

	"github.com/dynamograph/dynamo/graph/plan"
)

// group returns the plan's group of a part; nil for the store.
func (c *chart) group(part string) *plan.Group {
	for _, g := range c.p.Groups {
		if g.Name == part {
			return g
		}
	}
	return nil
}

func (c *chart) parts() {
	c.values["imagePullSecrets"] = []any{}
	c.props["imagePullSecrets"] = list("Secrets by which the image is fetched.", closed(obj{"name": text("its name")}, "name"))
	c.values["parts"] = obj{}
	c.props["parts"] = closed(obj{})
}

// value makes a value of a part, which may be "map.key", with its schema, and returns the expression that reads it.
func (c *chart) value(part, name string, def any, schema obj) string {
	path := strings.Split(name, ".")
	last := len(path) - 1
	at(c.values, append([]string{"parts", part}, path[:last]...)...)[path[last]] = def
	props := c.props
	for _, p := range append([]string{"parts", part}, path[:last]...) {
		if props[p] == nil {
			props[p] = closed(obj{})
		}
		props = at(props, p, "properties")
	}
	props[path[last]] = schema
	return fmt.Sprintf("(index .Values.parts %q).%s", part, name)
}

// global makes a value of the chart.
func (c *chart) global(name string, def any, schema obj) string {
	c.values[name], c.props[name] = def, schema
	return ".Values." + name
}

// open puts holes where values go.
func (c *chart) open(o obj) {
	part, _ := at(o, "metadata", "labels")["app.kubernetes.io/component"].(string)
	switch o["kind"] {
	case "StatefulSet":
		c.openSet(part, at(o, "spec"))
	case "Service":
		if spec := at(o, "spec"); spec["clusterIP"] == nil {
			c.openService(part, o)
		}
	case "PersistentVolumeClaim":
		c.openClaim(at(o, "spec"), true)
	case "ConfigMap":
		if d, ok := at(o, "metadata", "annotations")["dynamo.graph/plan"].(string); ok {
			c.digest = d
		}
	}
}

func (c *chart) openSet(part string, spec obj) {
	if g := c.group(part); g != nil && g.Replicas.Max > g.Replicas.Min {
		spec["replicas"] = c.scalar(c.value(part, "replicas", g.Replicas.Want, obj{"type": "integer", "minimum": g.Replicas.Min, "maximum": g.Replicas.Max,
			"description": "How many pods run, within the bounds of the plan."}))
	}
	pod := at(spec, "template", "spec")
	container := pod["containers"].([]any)[0].(obj)
	container["image"] = c.scalar(c.global("image", container["image"], text("of all containers: a name with a tag or digest")) + " | quote")
	container["imagePullPolicy"] = c.word(c.global("imagePullPolicy", "", obj{"enum": []any{"", "Always", "IfNotPresent", "Never"},
		"description": "When machines fetch the image; empty for the default of Kubernetes."}))
	resources, ok := container["resources"]
	if !ok {
		resources = obj{}
	}
	quantities := obj{"type": "object", "additionalProperties": obj{"type": []any{"string", "number"}}}
	container["resources"] = c.field(c.value(part, "resources", resources, closedAs("What one pod reserves and may use.", obj{"requests": quantities, "limits": quantities})))
	pod["imagePullSecrets"] = c.field(".Values.imagePullSecrets")
	pod["nodeSelector"] = c.field(c.value(part, "nodeSelector", obj{}, words("Labels of the machines that pods may run on.")))
	pod["tolerations"] = c.field(c.value(part, "tolerations", []any{}, list("Taints of machines that do not keep the pods away.", closed(obj{
		"key": text("of the taint"), "operator": obj{"enum": []any{"Exists", "Equal", "Lt", "Gt"}}, "value": obj{"type": "string"},
		"effect": obj{"enum": []any{"", "NoSchedule", "PreferNoSchedule", "NoExecute"}}, "tolerationSeconds": obj{"type": "integer"}}))))
	pod["affinity"] = c.field(c.value(part, "affinity", obj{}, closedAs("Kubernetes' affinity.", obj{
		"nodeAffinity": obj{"type": "object"}, "podAffinity": obj{"type": "object"}, "podAntiAffinity": obj{"type": "object"}})))
	pod["topologySpreadConstraints"] = c.field(c.value(part, "topologySpreadConstraints", []any{}, list("Kubernetes' topologySpreadConstraints.", obj{"type": "object"})))
	pod["priorityClassName"] = c.word(c.value(part, "priorityClassName", "", obj{"type": "string", "description": "Which pods go first where there is no room for all."}))
	pod["runtimeClassName"] = c.word(c.value(part, "runtimeClassName", "", obj{"type": "string", "description": "The container runtime's class."}))
	more := c.value(part, "podAnnotations", obj{}, words("Annotations of the pods, beside the chart's."))
	meta := at(spec, "template", "metadata")
	if a, ok := meta["annotations"].(obj); ok {
		a["zz"] = c.more(more)
	} else {
		meta["annotations"] = c.field(more)
	}
	claims, _ := spec["volumeClaimTemplates"].([]any)
	for _, cl := range claims {
		c.openClaim(at(cl.(obj), "spec"), at(cl.(obj), "metadata")["name"] == "cache")
	}
}

func (c *chart) openClaim(spec obj, models bool) {
	class, _ := spec["storageClassName"].(string)
	spec["storageClassName"] = c.word(c.global("storageClass", class, obj{"type": "string",
		"description": "Of the volumes that are made; empty for the cluster's default. It cannot be changed once they are."}))
	if models {
		size := at(spec, "resources", "requests")
		size["storage"] = c.scalar(c.global("modelStorage", size["storage"], obj{"type": "string", "pattern": `^[0-9]+(\.[0-9]+)?[KMGTP]i?$`,
			"description": "Size of each volume for models."}) + " | quote")
	}
}

func (c *chart) openService(part string, o obj) {
	spec := at(o, "spec")
	spec["type"] = c.scalar(c.value(part, "service.type", spec["type"], obj{"enum": []any{"ClusterIP", "NodePort", "LoadBalancer"}}))
	spec["loadBalancerClass"] = c.word(c.value(part, "service.loadBalancerClass", "", obj{"type": "string", "description": "Who balances, with type LoadBalancer."}))
	spec["externalTrafficPolicy"] = c.word(c.value(part, "service.externalTrafficPolicy", "", obj{"enum": []any{"", "Cluster", "Local"}}))
	at(o, "metadata")["annotations"] = c.field(c.value(part, "service.annotations", obj{}, words("Of the Service, for who balances.")))
}

// schema of the values.
func (c *chart) schema() obj {
	s := closed(c.props)
	s["$schema"] = "http://json-schema.org/draft-07/schema#"
	at(s, "properties")["global"] = obj{"type": "object", "description": "Helm's own, of charts that contain this one."}
	return s
}

func closed(props obj, required ...string) obj {
	o := obj{"type": "object", "additionalProperties": false, "properties": props}
	if len(required) > 0 {
		o["required"] = required
	}
	return o
}

func closedAs(description string, props obj) obj {
	o := closed(props)
	o["description"] = description
	return o
}

func text(description string) obj {
	return obj{"type": "string", "minLength": 1, "description": description}
}

func words(description string) obj {
	return obj{"type": "object", "additionalProperties": obj{"type": "string"}, "description": description}
}

func list(description string, of obj) obj {
	return obj{"type": "array", "items": of, "description": description}
}
