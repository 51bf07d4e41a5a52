// Package helm is the target of Helm: a chart around the manifests of package k8s. Its values are what needs no new compilation, because
// neither the graph nor its checks depend on it; values.schema.json refuses all others. With the values as they are, the chart gives exactly
// the manifests of package k8s.
package helm

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/dynamograph/dynamo/compiler/target"
	"github.com/dynamograph/dynamo/compiler/target/k8s"
	"github.com/dynamograph/dynamo/graph/diag"
	"github.com/dynamograph/dynamo/graph/plan"
)

// Target makes the chart; its fields are the values' defaults, or what the chart is compiled for. The zero Target is ready to use.
type Target struct{ k8s.Target }

var _ target.Target = Target{}

// Name returns "helm".
func (Target) Name() string { return "helm" }

// version of a chart: what changes between two of one graph is named by the plan's digest, which is the appVersion.
const version = "0.1.0"

// Lower returns the chart: its folder is the output folder.
func (t Target) Lower(ctx context.Context, p *plan.Plan) ([]target.File, diag.List) {
	docs, list := t.Documents(ctx, p)
	if list.Failed() {
		return nil, list
	}
	internal := func(err error) ([]target.File, diag.List) {
		return nil, diag.List{{Code: "internal", Msg: err.Error()}}
	}
	c := &chart{p: p, values: obj{}, props: obj{}}
	c.parts()
	templates := map[string][]string{}
	var order []string
	for _, d := range docs {
		text, err := c.template(d.Object)
		if err != nil {
			return internal(err)
		}
		if templates[d.File] == nil {
			order = append(order, d.File)
		}
		templates[d.File] = append(templates[d.File], text)
	}
	meta, err := yaml.Marshal(obj{
		"apiVersion": "v2", "name": p.Graph, "version": version, "appVersion": c.digest, "type": "application", "kubeVersion": ">=1.30.0-0",
		"description": fmt.Sprintf("The graph %q, compiled by dynamo. To change the graph itself, compile it again.", p.Graph),
	})
	if err != nil {
		return internal(err)
	}
	values, err := yaml.Marshal(c.values)
	if err != nil {
		return internal(err)
	}
	schema, err := json.MarshalIndent(c.schema(), "", "  ")
	if err != nil {
		return internal(err)
	}
	files := []target.File{{Path: "Chart.yaml", Data: meta}}
	for _, f := range order {
		files = append(files, target.File{Path: "templates/" + f, Data: []byte(strings.Join(templates[f], "---\n"))})
	}
	files = append(files,
		target.File{Path: "templates/NOTES.txt", Data: []byte(escape(notes(p, list)))},
		target.File{Path: "values.schema.json", Data: append(schema, '\n')},
		target.File{Path: "values.yaml", Data: append([]byte(valuesHead), values...)})
	return files, list
}

const valuesHead = "# What may be set without compiling the graph again; values.schema.json says what each is.\n"

// notes is what helm prints after an installation.
func notes(p *plan.Plan, list diag.List) string {
	var b strings.Builder
	fmt.Fprintf(&b, "Graph %s. Its pods: kubectl get pods -l app.kubernetes.io/instance=%s\n", p.Graph, p.Graph)
	for _, d := range list {
		fmt.Fprintf(&b, "%s: %s\n  %s\n", d.Severity, d.Msg, d.Hint)
	}
	return b.String()
}
