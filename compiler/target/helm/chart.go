package helm

import (
	"fmt"
	"regexp"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/dynamograph/dynamo/graph/plan"
)

type obj = map[string]any

// chart collects values and their schema while templates are made.
type chart struct {
	p      *plan.Plan
	digest string
	values obj // defaults
	props  obj // schema of the values
	holes  []string
}

// A hole is a place in a manifest that a value fills. The manifest gets a mark there, and the mark's line gets its template when the manifest
// is YAML.
const mark = "dynamo-hole-"

// scalar fills a field with an expression.
func (c *chart) scalar(expr string) string { return c.hole("{{ " + expr + " }}") }

// field stands for a field that is there if the value is: KEY is its name.
func (c *chart) field(value string) string {
	return c.hole("{{- with " + value + " }}\nKEY:\n  {{- toYaml . | nindent INDENT }}\n{{- end }}")
}

// word is field for a value that is one word.
func (c *chart) word(value string) string {
	return c.hole("{{- with " + value + " }}\nKEY: {{ . | quote }}\n{{- end }}")
}

// more stands for entries of a map, beside those that are there.
func (c *chart) more(value string) string {
	return c.hole("{{- with " + value + " }}\n{{- toYaml . | nindent OUTDENT }}\n{{- end }}")
}

func (c *chart) hole(template string) string {
	c.holes = append(c.holes, template)
	return fmt.Sprintf("%s%d-end", mark, len(c.holes)-1)
}

var marked = regexp.MustCompile(`^( *)((?:- )?)([^ :]+): ` + mark + `(\d+)-end$`)

// template turns a manifest with holes into a template.
func (c *chart) template(o obj) (string, error) {
	o = clone(o).(obj)
	c.open(o)
	y, err := yaml.Marshal(o)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	for line := range strings.Lines(escape(string(y))) {
		m := marked.FindStringSubmatch(strings.TrimSuffix(line, "\n"))
		if m == nil {
			b.WriteString(line)
			continue
		}
		var i int
		if _, err := fmt.Sscan(m[4], &i); err != nil {
			return "", err
		}
		indent := len(m[1]) + len(m[2])
		t := c.holes[i]
		if strings.HasPrefix(t, "{{ ") {
			fmt.Fprintf(&b, "%s%s%s: %s\n", m[1], m[2], m[3], t)
			continue
		}
		if m[2] != "" {
			return "", fmt.Errorf("a value that may be empty cannot begin a list entry: %s", line)
		}
		t = strings.NewReplacer("KEY", m[3], "INDENT", fmt.Sprint(indent+2), "OUTDENT", fmt.Sprint(indent)).Replace(t)
		for s := range strings.Lines(t + "\n") {
			b.WriteString(m[1] + s)
		}
	}
	if strings.Contains(b.String(), mark) {
		return "", fmt.Errorf("a value has found no place in %v", o["kind"])
	}
	return b.String(), nil
}

// escape makes text that a template engine gives back as it is.
func escape(s string) string { return strings.ReplaceAll(s, "{{", `{{ "{{" }}`) }

func clone(v any) any {
	switch v := v.(type) {
	case obj:
		out := obj{}
		for k, x := range v {
			out[k] = clone(x)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, x := range v {
			out[i] = clone(x)
		}
		return out
	}
	return v
}

// at returns the map at a path, making what is missing.
func at(o obj, path ...string) obj {
	for _, p := range path {
		next, ok := o[p].(obj)
		if !ok {
			next = obj{}
			o[p] = next
		}
		o = next
	}
	return o
}
