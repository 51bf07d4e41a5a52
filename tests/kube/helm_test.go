package kube

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dynamograph/dynamo/compiler/target/helm"
	"github.com/dynamograph/dynamo/graph/plan"
)

// helm fails the test where helm does.
func (c *cluster) helm(args ...string) []byte {
	c.t.Helper()
	out, err := c.run(nil, c.bin+"/helm", args...)
	must(c.t, err)
	return out
}

// byKey maps objects by kind and name.
func byKey(t *testing.T, docs []object) map[string]object {
	t.Helper()
	out := map[string]object{}
	for _, d := range docs {
		if out[key(d)] != nil {
			t.Errorf("%s is there twice", key(d))
		}
		out[key(d)] = d
	}
	return out
}

// testHelm shows that charts are what the target k8s makes, that helm itself finds nothing wrong with them, and that they take no value that
// needs a compilation.
func (c *cluster) testHelm(t *testing.T) {
	options := []string{"--cache-dir", t.TempDir()}
	many := []string{"--image", "registry.example/dynamo:1", "--models", "claim:weights", "--storage-class", "fast", "--metrics-from", "monitoring", "--mtls", "--store", "3"}
	compiled := map[string][2]string{"three": {compile(t, "testdata/three.cue", "helm", many...), compile(t, "testdata/three.cue", "k8s", many...)}}
	for _, s := range specs(t) {
		compiled[strings.TrimSuffix(filepath.Base(s), ".cue")] = [2]string{compile(t, s, "helm", options...), compile(t, s, "k8s", options...)}
	}
	for name, dirs := range compiled {
		t.Run("template "+name, func(t *testing.T) {
			c := c.with(t)
			if out := string(c.helm("lint", "--strict", dirs[0])); !strings.Contains(out, "0 chart(s) failed") || strings.Contains(out, "WARNING") || strings.Contains(out, "ERROR") {
				t.Errorf("lint:\n%s", out)
			}
			got := parse(t, c.helm("template", "release", dirs[0]))
			if d := cmp.Diff(byKey(t, documents(t, dirs[1])), byKey(t, got)); d != "" {
				t.Errorf("want the manifests -, is +:\n%s", d)
			}
		})
	}
	t.Run("values", func(t *testing.T) { c.with(t).testValues(compiled["llama-disagg"][0]) })
	t.Run("bounds", func(t *testing.T) { c.with(t).testBounds() })
	t.Run("install", func(t *testing.T) {
		c.with(t).testInstall(compiled["llama-disagg"][0], documents(t, compiled["llama-disagg"][1]))
	})
}

// testValues sets each value, and some that are none.
func (c *cluster) testValues(chart string) {
	t := c.t
	values := filepath.Join(c.dir, "values.yaml")
	must(t, os.WriteFile(values, []byte(`
image: mirror.example/dynamo@sha256:0123
imagePullPolicy: Always
imagePullSecrets: [{name: pull}]
storageClass: slow
modelStorage: 5Gi
parts:
  decode:
    resources: {requests: {cpu: 2, memory: 3Gi}, limits: {nvidia.com/gpu: "1"}}
    nodeSelector: {pool: gpu}
    tolerations: [{key: gpu, operator: Exists, effect: NoSchedule}]
    affinity: {podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: kubernetes.io/hostname, labelSelector: {}}]}}
    topologySpreadConstraints: [{maxSkew: 1, topologyKey: zone, whenUnsatisfiable: DoNotSchedule}]
    priorityClassName: high
    runtimeClassName: gvisor
    podAnnotations: {team: a}
  api:
    service: {type: LoadBalancer, annotations: {lb: internal}, loadBalancerClass: example.com/lb, externalTrafficPolicy: Local}
  store:
    podAnnotations: {team: b}
`), 0o600))
	got := byKey(t, parse(t, c.helm("template", "release", chart, "-f", values)))
	want := object{
		"metadata": object{"annotations": object{"team": "a"}},
		"spec": object{
			"nodeSelector": object{"pool": "gpu"}, "priorityClassName": "high", "runtimeClassName": "gvisor", "imagePullSecrets": []any{object{"name": "pull"}},
			"tolerations":               []any{object{"key": "gpu", "operator": "Exists", "effect": "NoSchedule"}},
			"topologySpreadConstraints": []any{object{"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}},
			"affinity":                  object{"podAntiAffinity": object{"requiredDuringSchedulingIgnoredDuringExecution": []any{object{"topologyKey": "kubernetes.io/hostname"}}}},
		},
	}
	template, _ := at(got["StatefulSet/llama-disagg-decode"], "spec", "template").(object)
	if d := covers(want, template, "decode"); d != "" {
		t.Error(d)
	}
	if str(template, "metadata", "annotations", "dynamo.graph/plan") == "" {
		t.Error("an annotation of one's own replaces the chart's")
	}
	if d := covers(object{"team": "b"}, at(got["StatefulSet/llama-disagg-store"], "spec", "template", "metadata", "annotations"), "store"); d != "" {
		t.Error(d)
	}
	container := at(template, "spec").(object)["containers"].([]any)[0]
	if d := covers(object{"image": "mirror.example/dynamo@sha256:0123", "imagePullPolicy": "Always", "resources": object{
		"requests": object{"cpu": 2, "memory": "3Gi"}, "limits": object{"nvidia.com/gpu": "1"}}}, container, "container"); d != "" {
		t.Error(d)
	}
	claim := at(got["StatefulSet/llama-disagg-decode"], "spec").(object)["volumeClaimTemplates"].([]any)[0]
	if d := covers(object{"storageClassName": "slow", "resources": object{"requests": object{"storage": "5Gi"}}}, at(claim, "spec"), "claim"); d != "" {
		t.Error(d)
	}
	service := got["Service/llama-disagg-api-http"]
	if d := covers(object{"metadata": object{"annotations": object{"lb": "internal"}},
		"spec": object{"type": "LoadBalancer", "loadBalancerClass": "example.com/lb", "externalTrafficPolicy": "Local"}}, service, "service"); d != "" {
		t.Error(d)
	}
	for _, tt := range []struct{ set, want string }{
		{"imgae=x", "imgae"},
		{"image=", "image"},
		{"parts.decode.replicas=3", "replicas"}, // the plan has no bounds for it
		{"parts.decod.resources.limits.cpu=1", "decod"},
		{"parts.decode.args[0]=x", "args"},
		{"parts.decode.service.type=NodePort", "service"}, // clients do not reach it
		{"parts.api.service.type=ExternalName", "type"},
		{"parts.api.tolerations[0].keey=x", "keey"},
		{"modelStorage=lots", "modelStorage"},
		{"plan.graph=x", "plan"},
	} {
		if out, err := c.run(nil, c.bin+"/helm", "template", "release", chart, "--set", tt.set); err == nil {
			t.Errorf("--set %s was taken", tt.set)
		} else if !strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), "values") {
			t.Errorf("--set %s: %v; want %q\n%s", tt.set, err, tt.want, out)
		}
	}
}

// testBounds makes a chart of a plan with bounds for replicas, and with text in it that looks like a template.
func (c *cluster) testBounds() {
	t := c.t
	const text = "{{ messages }} and {{- more }}"
	p := &plan.Plan{
		Version: plan.Version, Graph: "bounds", Store: plan.Store{Kind: "embedded"},
		Groups: []*plan.Group{{Name: "work-er", Replicas: plan.Replicas{Min: 1, Want: 2, Max: 8},
			Units: []*plan.Unit{{Node: "work-er", Kind: "k", Config: json.RawMessage(`{"template":"` + text + `"}`)}}}},
	}
	files, list := helm.Target{}.Lower(t.Context(), p)
	if list.Failed() {
		t.Fatal(list)
	}
	chart := t.TempDir()
	for _, f := range files {
		path := filepath.Join(chart, f.Path)
		must(t, os.MkdirAll(filepath.Dir(path), 0o755))
		must(t, os.WriteFile(path, f.Data, 0o644))
	}
	c.helm("lint", "--strict", chart)
	got := byKey(t, parse(t, c.helm("template", "release", chart, "--set", "parts.work-er.replicas=5")))
	if n := at(got["StatefulSet/bounds-work-er"], "spec", "replicas"); fmt.Sprint(n) != "5" {
		t.Errorf("%v replicas, want 5", n)
	}
	if s := str(got["ConfigMap/bounds-plan"], "data", "plan.json"); !strings.Contains(s, text) {
		t.Errorf("the plan is not what was compiled: %s", s)
	}
	for _, n := range []string{"0", "9", "many"} {
		if _, err := c.run(nil, c.bin+"/helm", "template", "release", chart, "--set", "parts.work-er.replicas="+n); err == nil || !strings.Contains(err.Error(), "replicas") {
			t.Errorf("%s replicas: %v", n, err)
		}
	}
}

// testInstall installs, upgrades and removes a chart.
func (c *cluster) testInstall(chart string, manifests []object) {
	t := c.t
	c.namespace("helm")
	c.helm("install", "graph", chart, "-n", "helm")
	kinds := []string{}
	for _, m := range manifests {
		if k := strings.ToLower(str(m, "kind")); !slices.Contains(kinds, k) {
			kinds = append(kinds, k)
		}
	}
	installed := func() map[string]object {
		return byKey(t, items(t, c.kubectl("get", strings.Join(kinds, ","), "-n", "helm", "-l", "app.kubernetes.io/instance=llama-disagg", "-o", "json")))
	}
	live := installed()
	if len(live) != len(manifests) {
		t.Errorf("%d objects of %d manifests", len(live), len(manifests))
	}
	for _, m := range manifests {
		at(m, "metadata", "labels").(object)["app.kubernetes.io/managed-by"] = "Helm" // its right, and its habit
		if d := covers(m, live[key(m)], key(m)); d != "" {
			t.Errorf("installed: %s", d)
		}
	}
	c.helm("upgrade", "graph", chart, "-n", "helm", "--set", "image=other.example/dynamo:2")
	for k, o := range installed() {
		if str(o, "kind") == "StatefulSet" {
			if image := str(at(o, "spec", "template", "spec").(object)["containers"].([]any)[0], "image"); image != "other.example/dynamo:2" {
				t.Errorf("%s: image %q after the upgrade", k, image)
			}
		}
	}
	if _, err := c.run(nil, c.bin+"/helm", "upgrade", "graph", chart, "-n", "helm", "--set", "parts.decode.replicas=3"); err == nil || !strings.Contains(err.Error(), "replicas") {
		t.Errorf("a value that needs a compilation: %v", err)
	}
	c.helm("uninstall", "graph", "-n", "helm")
	for k, o := range installed() {
		if at(o, "metadata", "deletionTimestamp") == nil {
			t.Errorf("%s is left", k)
		}
	}
}
