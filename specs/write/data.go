package write

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"
)

// MarshalJSON keeps the order of the fields.
func (f fields) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, x := range f {
		if i > 0 {
			b.WriteByte(',')
		}
		if err := plain(&b, x.name); err != nil {
			return nil, err
		}
		b.WriteByte(':')
		if err := plain(&b, x.value); err != nil {
			return nil, err
		}
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// plain is json.Marshal that leaves < and > as they are.
func plain(b *bytes.Buffer, v any) error {
	e := json.NewEncoder(b)
	e.SetEscapeHTML(false)
	return e.Encode(v)
}

func jsonFile(t fields) ([]byte, error) {
	var compact, b bytes.Buffer
	if err := plain(&compact, t); err != nil {
		return nil, err
	}
	if err := json.Indent(&b, bytes.TrimSpace(compact.Bytes()), "", "  "); err != nil {
		return nil, err
	}
	b.WriteByte('\n')
	return b.Bytes(), nil
}

func yamlFile(t fields, o Options) ([]byte, error) {
	n, err := yamlNode(t)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	for line := range strings.Lines(o.Comment) {
		b.WriteString(strings.TrimRight("# "+strings.TrimRight(line, "\n"), " ") + "\n")
	}
	e := yaml.NewEncoder(&b)
	e.SetIndent(2)
	if err := e.Encode(n); err != nil {
		return nil, err
	}
	return b.Bytes(), e.Close()
}

// yamlNode makes a YAML value; strings that YAML would read as something else are quoted.
func yamlNode(v any) (*yaml.Node, error) {
	switch x := v.(type) {
	case fields:
		n := &yaml.Node{Kind: yaml.MappingNode}
		if len(x) == 0 {
			n.Style = yaml.FlowStyle
		}
		for _, f := range x {
			k, err := yamlNode(f.name)
			if err != nil {
				return nil, err
			}
			y, err := yamlNode(f.value)
			if err != nil {
				return nil, err
			}
			n.Content = append(n.Content, k, y)
		}
		return n, nil
	case []any:
		n := &yaml.Node{Kind: yaml.SequenceNode, Style: yaml.FlowStyle}
		for _, e := range x {
			y, err := yamlNode(e)
			if err != nil {
				return nil, err
			}
			if y.Kind != yaml.ScalarNode {
				n.Style = 0
			}
			n.Content = append(n.Content, y)
		}
		return n, nil
	case json.Number:
		tag := "!!int"
		if strings.ContainsAny(x.String(), ".eE") {
			tag = "!!float"
		}
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: tag, Value: x.String()}, nil
	case string, bool, int, nil:
		n := &yaml.Node{}
		return n, n.Encode(x)
	}
	return nil, fmt.Errorf("a value of type %T", v)
}
