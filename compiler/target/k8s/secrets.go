package k8s

import (
	"encoding/json"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/dynamograph/dynamo/graph/diag"
	"github.com/dynamograph/dynamo/graph/model"
	"github.com/dynamograph/dynamo/graph/plan"
)

// SecretsPath is where pods have the files of their graph's Secret: what a spec refers to as file:/etc/dynamo-secrets/KEY is its key KEY.
const SecretsPath = "/etc/dynamo-secrets"

// SecretsName returns the name of the Secret that holds what the spec of a graph refers to.
func SecretsName(graph string) string { return graph + "-secrets" }

var reference = regexp.MustCompile(`^env:([A-Za-z_][A-Za-z0-9_]*)$`)

// references are what one group's configs, and the sources of the models, refer to: names of environment variables and of files below
// SecretsPath, sorted.
type references struct{ env, files []string }

func (r *references) empty() bool { return len(r.env)+len(r.files) == 0 }

func (m *maker) references(g *plan.Group) references {
	var r references
	for _, u := range g.Units {
		walkStrings(u.Config, func(s string) {
			if e := reference.FindStringSubmatch(s); e != nil {
				r.env = append(r.env, e[1])
			}
			if f := strings.TrimPrefix(s, "file:"); path.Dir(f) == SecretsPath {
				r.files = append(r.files, path.Base(f))
			}
		})
	}
	if m.downloads() {
		r.env = append(r.env, tokens(m.p)...)
	}
	slices.Sort(r.env)
	slices.Sort(r.files)
	r.env, r.files = slices.Compact(r.env), slices.Compact(r.files)
	return r
}

// strayFiles refuses references to files that pods do not have.
func strayFiles(p *plan.Plan) diag.List {
	var list diag.List
	for _, g := range p.Groups {
		for _, u := range g.Units {
			walkStrings(u.Config, func(s string) {
				if f, ok := strings.CutPrefix(s, "file:"); ok && path.Dir(f) != SecretsPath {
					list.Add(diag.Diagnostic{Code: "local-source", Path: "nodes." + u.Node,
						Msg:  fmt.Sprintf("nodes.%s: %q: a pod does not have that file", u.Node, s),
						Hint: fmt.Sprintf("write file:%s/%s and give the Secret %s that key", SecretsPath, path.Base(f), SecretsName(p.Graph))})
				}
			})
		}
	}
	return list
}

// secrets gives a container what its group refers to, and nothing else of the Secret. The Secret is made by whoever knows what is in it.
func (m *maker) secrets(g *plan.Group, env, mounts, volumes *[]any) {
	r := m.references(g)
	for _, n := range r.env {
		*env = append(*env, obj{"name": n, "valueFrom": obj{"secretKeyRef": obj{"name": SecretsName(m.p.Graph), "key": n}}})
	}
	if len(r.files) == 0 {
		return
	}
	var items []any
	for _, f := range r.files {
		items = append(items, obj{"key": f, "path": f})
	}
	*mounts = append(*mounts, obj{"name": "secrets", "mountPath": SecretsPath, "readOnly": true})
	*volumes = append(*volumes, obj{"name": "secrets", "secret": obj{"secretName": SecretsName(m.p.Graph), "defaultMode": 0o440, "items": items}})
}

// needed tells which Secrets there must be.
func (m *maker) needed() diag.List {
	var list diag.List
	var all references
	for _, g := range m.p.Groups {
		r := m.references(g)
		all.env, all.files = append(all.env, r.env...), append(all.files, r.files...)
	}
	if !all.empty() {
		keys := append(all.env, all.files...)
		slices.Sort(keys)
		list.Add(diag.Diagnostic{Code: "needs-secret", Severity: diag.Note,
			Msg:  fmt.Sprintf("pods need the Secret %s with the keys %s", SecretsName(m.p.Graph), strings.Join(slices.Compact(keys), ", ")),
			Hint: fmt.Sprintf("kubectl create secret generic %s --from-file=…", SecretsName(m.p.Graph))})
	}
	if m.MTLS {
		list.Add(diag.Diagnostic{Code: "needs-secret", Severity: diag.Note,
			Msg:  "pods need the Secrets with their certificates",
			Hint: "dynamo graph certs SPEC -o FOLDER && kubectl apply --server-side -f FOLDER/secrets.yaml"})
	}
	return list
}

// tokens names the environment variables that the sources of models take tokens from.
func tokens(p *plan.Plan) []string {
	var out []string
	for _, m := range p.Models {
		for _, text := range m.Sources {
			if s, err := model.ParseSource(text); err == nil {
				if name, ok := strings.CutPrefix(s.Token, "env:"); ok {
					out = append(out, name)
				}
			}
		}
	}
	return out
}

// walkStrings calls f with each string in raw; keys are none.
func walkStrings(raw json.RawMessage, f func(string)) {
	var v any
	if json.Unmarshal(raw, &v) != nil {
		return
	}
	var walk func(any)
	walk = func(v any) {
		switch v := v.(type) {
		case string:
			f(v)
		case []any:
			for _, x := range v {
				walk(x)
			}
		case map[string]any:
			for _, k := range sortedKeys(v) {
				walk(v[k])
			}
		}
	}
	walk(v)
}
