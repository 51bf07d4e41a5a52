package kube

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

// specs are all that the project has.
func specs(t *testing.T) []string {
	t.Helper()
	out, err := filepath.Glob("../../specs/*.cue")
	if err != nil || len(out) < 4 {
		t.Fatalf("%d specs: %v", len(out), err)
	}
	return out
}

// documents reads all manifests of a folder.
func documents(t *testing.T, dir string) []object {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.yaml"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no manifests in %s: %v", dir, err)
	}
	var out []object
	for _, f := range files {
		b, err := os.ReadFile(f)
		must(t, err)
		out = append(out, parse(t, b)...)
	}
	return out
}

func parse(t *testing.T, b []byte) []object {
	t.Helper()
	var out []object
	for _, doc := range bytes.Split(append([]byte("\n"), b...), []byte("\n---\n")) {
		var o object
		must(t, yaml.Unmarshal(doc, &o))
		if len(o) > 0 {
			out = append(out, o)
		}
	}
	return out
}

func key(o object) string { return str(o, "kind") + "/" + str(o, "metadata", "name") }

// covers reports where live lacks something that want has, or has another value; "" where it has all.
func covers(want, live any, path string) string {
	switch w := want.(type) {
	case object:
		l, ok := live.(object)
		if !ok {
			return fmt.Sprintf("%s: is %v", path, live)
		}
		for k, v := range w {
			if d := covers(v, l[k], path+"."+k); d != "" {
				return d
			}
		}
	case []any:
		l, ok := live.([]any)
		if !ok || len(l) != len(w) {
			return fmt.Sprintf("%s: is %v", path, live)
		}
		for i, v := range w {
			if d := covers(v, l[i], fmt.Sprintf("%s[%d]", path, i)); d != "" {
				return d
			}
		}
	default:
		if fmt.Sprint(want) != fmt.Sprint(live) {
			return fmt.Sprintf("%s: want %v, is %v", path, want, live)
		}
	}
	return ""
}

// apply sends a folder's manifests as users are told to, and returns what the server has then, by key.
func (c *cluster) apply(dir, namespace string) (map[string]object, error) {
	out, err := c.run(nil, c.bin+"/kubectl", "apply", "--server-side", "--validate=strict", "--warnings-as-errors", "-n", namespace, "-f", dir, "-o", "json", "--show-managed-fields")
	if err != nil {
		return nil, err
	}
	live := map[string]object{}
	for _, o := range items(c.t, out) {
		live[key(o)] = o
	}
	return live, nil
}

// podsOf makes of each StatefulSet the pod that its controller would make.
func podsOf(t *testing.T, docs []object) []object {
	t.Helper()
	var out []object
	for _, d := range docs {
		if str(d, "kind") != "StatefulSet" {
			continue
		}
		b, err := json.Marshal(at(d, "spec", "template"))
		must(t, err)
		var pod object
		must(t, json.Unmarshal(b, &pod))
		pod["apiVersion"], pod["kind"] = "v1", "Pod"
		pod["metadata"].(object)["name"] = str(d, "metadata", "name") + "-0"
		claims, _ := at(d, "spec", "volumeClaimTemplates").([]any)
		spec := pod["spec"].(object)
		for _, cl := range claims {
			name := str(cl, "metadata", "name")
			volumes, _ := spec["volumes"].([]any)
			spec["volumes"] = append(volumes, object{"name": name, "persistentVolumeClaim": object{"claimName": name}})
		}
		out = append(out, pod)
	}
	return out
}

// TestServer applies the manifests of every spec to a real API server whose namespaces enforce Pod Security "restricted".
func TestServer(t *testing.T) {
	c := startServer(t, "127.0.0.1", 0, "--endpoint-reconciler-type=none")
	for _, spec := range specs(t) {
		name := strings.TrimSuffix(filepath.Base(spec), ".cue")
		t.Run(name, func(t *testing.T) {
			c.testApply(t, name, compile(t, spec, "k8s", "--cache-dir", t.TempDir()))
		})
	}
	t.Run("options", func(t *testing.T) {
		c.testApply(t, "options", compile(t, "testdata/three.cue", "k8s", "--image", "registry.example/dynamo:1", "--models", "claim:weights",
			"--storage-class", "fast", "--metrics-from", "monitoring", "--mtls", "--store", "3", "--cache-dir", t.TempDir()))
	})
	t.Run("shared models", func(t *testing.T) {
		c.testApply(t, "shared-models", compile(t, "../../specs/llama-agg.cue", "k8s", "--models", "shared", "--cache-dir", t.TempDir()))
	})
	t.Run("refusals", func(t *testing.T) { c.testRefusals(t) })
	t.Run("helm", func(t *testing.T) { c.testHelm(t) })
}

func (c *cluster) testApply(t *testing.T, namespace, dir string) {
	c = c.with(t)
	c.namespace(namespace)
	docs := documents(t, dir)
	live, err := c.apply(dir, namespace)
	must(t, err)
	for _, d := range docs {
		if diff := covers(d, live[key(d)], key(d)); diff != "" {
			t.Errorf("read back: %s", diff)
		}
	}
	for k, o := range live { // and nobody else has a say in them
		for _, m := range at(o, "metadata", "managedFields").([]any) {
			if str(m, "manager") != "kubectl" || str(m, "operation") != "Apply" {
				t.Errorf("%s: managed by %s (%s) too", k, str(m, "manager"), str(m, "operation"))
			}
		}
	}
	again, err := c.apply(dir, namespace)
	must(t, err)
	third := again
	for k, o := range again {
		if str(o, "kind") == "PersistentVolumeClaim" && str(live[k], "metadata", "resourceVersion") != str(o, "metadata", "resourceVersion") {
			// This API server stores a claim once more, without a change: it must be the same then, and stay so.
			at(live[k], "metadata").(object)["resourceVersion"] = str(o, "metadata", "resourceVersion")
			if d := cmp.Diff(live[k], o); d != "" {
				t.Errorf("%s: a second apply changes it: %s", k, d)
			}
			third, err = c.apply(dir, namespace)
			must(t, err)
		}
	}
	for k, o := range third {
		if a, b := str(live[k], "metadata", "resourceVersion"), str(o, "metadata", "resourceVersion"); a != b || a == "" {
			t.Errorf("%s: applied again it changes: %s", k, cmp.Diff(live[k], o))
		}
	}
	if len(again) != len(docs) {
		t.Errorf("%d manifests, %d objects", len(docs), len(again))
	}
	pods := podsOf(t, docs)
	if len(pods) < 2 {
		t.Fatalf("%d pods", len(pods))
	}
	for _, p := range pods { // workloads are only warned of: it is their pods that are refused
		if err := c.create(p, namespace, true); err != nil {
			t.Errorf("%s: its pod is refused: %v", str(p, "metadata", "name"), err)
		}
	}
	nobody := c.rights(namespace, "nobody") // what Kubernetes gives to every account
	c.probeToken(namespace, str(docs[slices.IndexFunc(docs, func(o object) bool { return str(o, "kind") == "ServiceAccount" })], "metadata", "name"))
	accounts := 0
	for _, d := range docs {
		if str(d, "kind") == "ServiceAccount" {
			accounts++
			if got := c.rights(namespace, str(d, "metadata", "name")); !slices.Equal(got, nobody) {
				t.Errorf("%s has rights: %q; any account has %q", key(d), got, nobody)
			}
		}
	}
	if accounts != len(pods) {
		t.Errorf("%d accounts for %d sets of pods", accounts, len(pods))
	}
}

// with reports to another test.
func (c *cluster) with(t *testing.T) *cluster {
	d := *c
	d.t = t
	return &d
}

func (c *cluster) create(o object, namespace string, dry bool) error {
	b, err := json.Marshal(o)
	must(c.t, err)
	args := []string{"create", "--validate=strict", "-n", namespace, "-f", "-", "-o", "name"}
	if dry {
		args = append(args, "--dry-run=server")
	}
	_, err = c.run(b, c.bin+"/kubectl", args...)
	return err
}

// rights asks the API server what an account may do, sorted.
func (c *cluster) rights(namespace, account string) []string {
	c.t.Helper()
	review := fmt.Sprintf(`{"apiVersion":"authorization.k8s.io/v1","kind":"SelfSubjectRulesReview","spec":{"namespace":%q}}`, namespace)
	out, err := c.run([]byte(review), c.bin+"/kubectl", "create", "--validate=false", "-f", "-", "-o", "json", "--as=system:serviceaccount:"+namespace+":"+account,
		"--as-group=system:serviceaccounts", "--as-group=system:serviceaccounts:"+namespace, "--as-group=system:authenticated")
	must(c.t, err)
	var r struct {
		Status struct {
			ResourceRules []struct {
				Verbs, APIGroups, Resources []string
			}
			NonResourceRules []struct{ Verbs, NonResourceURLs []string }
			Incomplete       bool
		}
	}
	must(c.t, json.Unmarshal(out, &r))
	if len(r.Status.ResourceRules) == 0 {
		c.t.Fatalf("the server knows no rules of %s: %s", account, out)
	}
	var rights []string
	for _, rule := range r.Status.ResourceRules {
		for _, res := range rule.Resources {
			rights = append(rights, fmt.Sprintf("%v %v/%s", rule.Verbs, rule.APIGroups, res))
		}
	}
	for _, rule := range r.Status.NonResourceRules {
		rights = append(rights, fmt.Sprintf("%v %v", rule.Verbs, rule.NonResourceURLs))
	}
	slices.Sort(rights)
	return rights
}

// probeToken takes a real token of an account, as no pod of the graph has one, and tries what it might be good for.
func (c *cluster) probeToken(namespace, account string) {
	c.t.Helper()
	token := strings.TrimSpace(string(c.kubectl("create", "token", account, "-n", namespace)))
	for path, want := range map[string]int{
		"/api/v1/namespaces/" + namespace + "/secrets":           http.StatusForbidden,
		"/api/v1/namespaces/" + namespace + "/configmaps":        http.StatusForbidden,
		"/api/v1/namespaces/" + namespace + "/pods":              http.StatusForbidden,
		"/apis/apps/v1/namespaces/" + namespace + "/deployments": http.StatusForbidden,
		"/version": http.StatusOK, // it is a good token
	} {
		r, err := http.NewRequestWithContext(c.t.Context(), http.MethodGet, c.url+path, nil)
		must(c.t, err)
		r.Header.Set("Authorization", "Bearer "+token)
		resp, err := c.anonymous().Do(r)
		must(c.t, err)
		_ = resp.Body.Close()
		if resp.StatusCode != want {
			c.t.Errorf("%s gets %s from %s, want %d", account, resp.Status, path, want)
		}
	}
}

// testRefusals shows that each of the checks above can fail.
func (c *cluster) testRefusals(t *testing.T) {
	c = c.with(t)
	c.namespace("refusals")
	dir := compile(t, "../../specs/mock-agg.cue", "k8s")
	_, err := c.apply(dir, "refusals")
	must(t, err)
	set := func(docs []object) object {
		i := slices.IndexFunc(docs, func(o object) bool { return str(o, "kind") == "StatefulSet" })
		return docs[i]
	}
	container := func(o object) object {
		return at(o, "spec", "template", "spec").(object)["containers"].([]any)[0].(object)
	}
	for _, tt := range []struct {
		name   string
		change func(object)
		want   string
	}{
		{"unknown field", func(o object) { container(o)["readynessProbe"] = object{} }, ".readynessProbe: field not declared in schema"},
		{"privileged", func(o object) { container(o)["securityContext"] = object{"privileged": true} }, "privileged"},
		{"as root", func(o object) {
			at(o, "spec", "template", "spec", "securityContext").(object)["runAsNonRoot"] = false
		}, "runAsNonRoot"},
		{"host path", func(o object) {
			at(o, "spec", "template", "spec").(object)["volumes"] = []any{object{"name": "plan", "hostPath": object{"path": "/"}}}
			container(o)["volumeMounts"] = []any{object{"name": "plan", "mountPath": "/etc/dynamo"}}
		}, "hostPath"},
		{"another selector", func(o object) { at(o, "spec", "selector", "matchLabels").(object)["app.kubernetes.io/name"] = "x" }, "selector"},
	} {
		docs := documents(t, dir)
		s := set(docs)
		tt.change(s)
		b, err := json.Marshal(s)
		must(t, err)
		bad := t.TempDir()
		must(t, os.WriteFile(filepath.Join(bad, "bad.yaml"), b, 0o600))
		if _, err := c.apply(bad, "refusals"); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: applied: %v", tt.name, err)
		}
		if tt.want == "privileged" || tt.want == "hostPath" || tt.want == "runAsNonRoot" {
			if err := c.create(podsOf(t, []object{s})[0], "refusals", false); err == nil || !strings.Contains(err.Error(), "violates PodSecurity") {
				t.Errorf("%s: its pod was made: %v", tt.name, err)
			}
		}
	}
	account := str(set(documents(t, dir)), "spec", "template", "spec", "serviceAccountName")
	c.kubectl("create", "role", "reader", "-n", "refusals", "--verb=get,list", "--resource=secrets")
	c.kubectl("create", "rolebinding", "reader", "-n", "refusals", "--role=reader", "--serviceaccount=refusals:"+account)
	if got, nobody := c.rights("refusals", account), c.rights("refusals", "nobody"); len(got) != len(nobody)+1 {
		t.Errorf("a right that was given goes unseen: %q", got)
	}
	docs := documents(t, dir)
	at(set(docs), "spec").(object)["replicas"] = 7
	if covers(set(docs), set(documents(t, dir)), "") == "" {
		t.Error("another number of replicas goes unseen")
	}
}
