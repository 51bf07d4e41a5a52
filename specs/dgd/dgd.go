// Package dgd reads DynamoGraphDeployment, the Kubernetes resource by which NVIDIA's Dynamo describes a graph (API versions
// nvidia.com/v1alpha1 and v1beta1), and makes a graph.Graph of it. What a graph has no word for is told, each at its place. It does no I/O.
//
// What is read are the components with their roles and replicas, the command lines of frontends and engines, the environment variables that
// say the same, and for TensorRT-LLM the engine's options in a ConfigMap of the same file. What concerns pods, as images, probes and volumes,
// is not of a graph.
package dgd

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/dynamograph/dynamo/graph"
	"github.com/dynamograph/dynamo/graph/diag"
	"github.com/dynamograph/dynamo/graph/kind"
)

const (
	group      = "nvidia.com"
	deployment = "DynamoGraphDeployment"
)

// Options says how a deployment is read. The zero Options makes nodes of the kinds of kind.Default.
type Options struct {
	Registry *kind.Registry // nil: kind.Default
	// Parser reports whether an engine has a parser of a name; field is "tools" or "reasoning". Others of Dynamo's own are told as lost. Nil: all
	// are taken.
	Parser func(field, name string) bool
}

// maxBytes bounds the file, as specs are bounded.
const maxBytes = 1 << 20

// Import reads the deployment in data, the content of the file called name. The graph is nil where the list has an error. Places in the
// graph and in the list are of that file. It is safe for concurrent use.
func Import(name string, data []byte, o Options) (*graph.Graph, diag.List) {
	if o.Registry == nil {
		o.Registry = kind.Default
	}
	im := &importer{o: o, file: name, lines: strings.Split(string(data), "\n"), configs: map[string]*yaml.Node{}}
	if len(data) > maxBytes {
		return nil, diag.List{{Code: "too-large", Pos: diag.Pos{File: name}, Msg: fmt.Sprintf("%d bytes: a deployment is at most 1 MiB", len(data))}}
	}
	root := im.documents(data)
	if root == nil || im.list.Failed() {
		im.list.Sort()
		return nil, im.list
	}
	im.deployment(root)
	var g *graph.Graph
	if !im.list.Failed() {
		g = im.graph()
	}
	im.list.Sort()
	if im.list.Failed() {
		return nil, im.list
	}
	return g, im.list
}

// importer is the state of one import.
type importer struct {
	o       Options
	file    string
	lines   []string
	list    diag.List
	configs map[string]*yaml.Node // documents in ConfigMaps, by key

	name    string
	pos     diag.Pos
	backend string // spec.backendFramework
	env     map[string]word
	parts   []*component
}

// documents parses the file, keeps what ConfigMaps hold, and returns the one deployment.
func (im *importer) documents(data []byte) *yaml.Node {
	d := yaml.NewDecoder(bytes.NewReader(data))
	var found []*yaml.Node
	var other *diag.Diagnostic // of a resource that cannot be imported
	for {
		var doc yaml.Node
		err := d.Decode(&doc)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			im.list.Add(diag.Diagnostic{Code: "syntax", Pos: im.yamlLine(err), Msg: "YAML: " + strings.TrimPrefix(err.Error(), "yaml: ")})
			return nil
		}
		if len(doc.Content) == 0 || len(pairs(doc.Content[0])) == 0 {
			continue
		}
		root := doc.Content[0]
		switch version, what := text(get(root, "apiVersion")), text(get(root, "kind")); {
		case what == deployment:
			if v, ok := strings.CutPrefix(version, group+"/"); !ok || v != "v1alpha1" && v != "v1beta1" {
				im.add("wrong-kind", get(root, "apiVersion"), "apiVersion", "write nvidia.com/v1alpha1 or nvidia.com/v1beta1", "%q is not known", version)
				return nil
			}
			found = append(found, root)
		case what == "ConfigMap":
			for _, p := range pairs(get(root, "data")) {
				im.configs[p.key.Value] = p.value
			}
		case other == nil || strings.HasPrefix(version, group+"/"):
			d := im.diagnostic("wrong-kind", get(root, "kind"), "kind", "", "%q cannot be imported: want %s", what, deployment)
			if what == deployment+"Request" {
				d.Hint = "import the " + deployment + " that is made of it: kubectl get dynamographdeployment NAME -o yaml"
			}
			other = &d
		}
	}
	switch {
	case len(found) == 1:
		return found[0]
	case len(found) > 1:
		d := im.diagnostic("wrong-kind", get(found[1], "kind"), "kind", "split the file", "the file has %d deployments: one makes a graph", len(found))
		d.Related = []diag.Related{{Pos: im.at(get(found[0], "kind")), Msg: "the first"}}
		im.list.Add(d)
	case other != nil:
		im.list.Add(*other)
	default:
		im.list.Add(diag.Diagnostic{Code: "wrong-kind", Pos: diag.Pos{File: im.file, Line: 1, Col: 1}, Msg: "no " + deployment + " in this file"})
	}
	return nil
}

var yamlLine = regexp.MustCompile(`line (\d+)`)

func (im *importer) yamlLine(err error) diag.Pos {
	p := diag.Pos{File: im.file, Line: 1, Col: 1}
	if m := yamlLine.FindStringSubmatch(err.Error()); m != nil {
		p.Line, _ = strconv.Atoi(m[1])
	}
	return p
}

// deployment reads the resource.
func (im *importer) deployment(root *yaml.Node) {
	meta := get(root, "metadata")
	im.name, im.pos = label(text(get(meta, "name"))), im.at(get(root, "kind"))
	if n := get(meta, "name"); n != nil {
		im.pos = im.at(n)
	}
	if im.name == "" {
		im.name = label(strings.TrimSuffix(filepath.Base(im.file), filepath.Ext(im.file)))
	}
	if im.name == "" {
		im.name = "imported"
	}
	spec := get(root, "spec")
	if spec == nil {
		im.add("missing-field", get(root, "kind"), "spec", "", "missing field")
		return
	}
	im.backend, im.env = text(get(spec, "backendFramework")), map[string]word{}
	var podOnly []pair
	for _, p := range pairs(spec) {
		switch p.key.Value {
		case "backendFramework":
		case "services":
			for _, s := range pairs(p.value) {
				im.component(s.key.Value, s.key, s.value, "spec.services."+s.key.Value)
			}
		case "components":
			for i, c := range items(p.value) {
				n := get(c, "name")
				path := fmt.Sprintf("spec.components[%d]", i)
				if n == nil {
					im.add("missing-field", c, path+".name", "", "missing field")
					continue
				}
				im.component(n.Value, n, c, path)
			}
		case "envs", "env":
			im.readEnv(p.value, im.env)
		default:
			podOnly = append(podOnly, p)
		}
	}
	im.grouped(podOnly, "spec", "a graph has no word for it")
	if len(im.parts) == 0 && !im.list.Failed() {
		im.add("missing-field", spec, "spec", "", "no component")
	}
}

// pair is a field of a YAML map.
type pair struct{ key, value *yaml.Node }

// pairs lists a map's fields in order, those of merged maps after its own. Anything else has none.
func pairs(n *yaml.Node) []pair { return pairsTo(n, 8) }

func pairsTo(n *yaml.Node, depth int) []pair {
	n = deref(n)
	if n == nil || n.Kind != yaml.MappingNode || depth == 0 {
		return nil
	}
	var out, merged []pair
	for i := 0; i+1 < len(n.Content); i += 2 {
		k, v := deref(n.Content[i]), deref(n.Content[i+1])
		if k == nil || v == nil {
			continue
		}
		if k.Tag == "!!merge" {
			for _, m := range append(items(v), v) {
				merged = append(merged, pairsTo(m, depth-1)...)
			}
			continue
		}
		out = append(out, pair{k, v})
	}
	for _, m := range merged {
		if !slices.ContainsFunc(out, func(p pair) bool { return p.key.Value == m.key.Value }) {
			out = append(out, m)
		}
	}
	return out
}

// items lists a list's items.
func items(n *yaml.Node) []*yaml.Node {
	n = deref(n)
	if n == nil || n.Kind != yaml.SequenceNode {
		return nil
	}
	var out []*yaml.Node
	for _, x := range n.Content {
		if x = deref(x); x != nil {
			out = append(out, x)
		}
	}
	return out
}

// deref follows aliases, but not in a circle.
func deref(n *yaml.Node) *yaml.Node {
	for range 8 {
		if n == nil || n.Kind != yaml.AliasNode {
			return n
		}
		n = n.Alias
	}
	return nil
}

// get returns the value below a path of keys, or nil.
func get(n *yaml.Node, path ...string) *yaml.Node {
	for _, k := range path {
		ps := pairs(n)
		i := slices.IndexFunc(ps, func(p pair) bool { return p.key.Value == k })
		if i < 0 {
			return nil
		}
		n = ps[i].value
	}
	return deref(n)
}

// text returns a scalar's text, "" for anything else and for null.
func text(n *yaml.Node) string {
	if n == nil || n.Kind != yaml.ScalarNode || n.Tag == "!!null" {
		return ""
	}
	return n.Value
}

// at is the place of a node.
func (im *importer) at(n *yaml.Node) diag.Pos {
	if n == nil {
		return diag.Pos{File: im.file, Line: 1, Col: 1}
	}
	return diag.Pos{File: im.file, Line: n.Line, Col: n.Column}
}

// diagnostic makes an error at a node.
func (im *importer) diagnostic(code string, n *yaml.Node, path, hint, format string, args ...any) diag.Diagnostic {
	d := diag.Diagnostic{Code: code, Pos: im.at(n), Path: path, Msg: path + ": " + fmt.Sprintf(format, args...), Hint: hint}
	if n != nil && n.Kind == yaml.ScalarNode && !strings.Contains(n.Value, "\n") {
		d.Len = len(n.Value)
		if n.Style&(yaml.SingleQuotedStyle|yaml.DoubleQuotedStyle) != 0 {
			d.Len += 2
		}
	}
	return d
}

func (im *importer) add(code string, n *yaml.Node, path, hint, format string, args ...any) {
	im.list.Add(im.diagnostic(code, n, path, hint, format, args...))
}

// lost says that something is not in the graph.
func (im *importer) lost(n *yaml.Node, path, hint, format string, args ...any) {
	d := im.diagnostic("not-mapped", n, path, hint, format, args...)
	d.Severity = diag.Warning
	im.list.Add(d)
}

// grouped says it of several fields of one map at once.
func (im *importer) grouped(ps []pair, path, why string) {
	if len(ps) == 0 {
		return
	}
	var names []string
	for _, p := range ps {
		names = append(names, p.key.Value)
	}
	im.lost(ps[0].key, path, "", "%s: %s", strings.Join(names, ", "), why)
}

// label makes a DNS label: "VllmDecodeWorker" is "vllm-decode-worker". It is "" where nothing is left.
func label(name string) string {
	var b strings.Builder
	rs := []rune(name)
	for i, r := range rs {
		is := func(j int, from, to rune) bool { return j >= 0 && j < len(rs) && rs[j] >= from && rs[j] <= to }
		switch {
		case r >= 'A' && r <= 'Z':
			if is(i-1, 'a', 'z') || is(i-1, '0', '9') || is(i-1, 'A', 'Z') && is(i+1, 'a', 'z') {
				b.WriteByte('-')
			}
			b.WriteRune(r - 'A' + 'a')
		case r >= 'a' && r <= 'z' || r >= '0' && r <= '9':
			b.WriteRune(r)
		default:
			b.WriteByte('-')
		}
	}
	s := strings.TrimLeft(b.String(), "-0123456789")
	for strings.Contains(s, "--") {
		s = strings.ReplaceAll(s, "--", "-")
	}
	if len(s) > 40 {
		s = s[:40]
	}
	return strings.Trim(s, "-")
}
