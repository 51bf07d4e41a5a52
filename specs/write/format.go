package write

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"reflect"
	"strings"

	"cuelang.org/go/cue/format"
	"go.yaml.in/yaml/v3"
)

// ErrLossy is returned by Format for a file that it cannot write without losing something that its author wrote.
var ErrLossy = errors.New("formatting would lose comments")

// Format returns a spec's file in canonical form: CUE as `cue fmt` writes it, JSON and YAML with two spaces and in the order of the author.
// The name tells the language. What the file says stays the same, comments too; blank lines between the fields of YAML do not. The error is
// an unknown language, a file that cannot be parsed, or ErrLossy.
func Format(name string, data []byte) ([]byte, error) {
	switch ext := filepath.Ext(name); ext {
	case ".cue":
		return format.Source(data)
	case ".json":
		var b bytes.Buffer
		if err := json.Indent(&b, bytes.TrimSpace(data), "", "  "); err != nil {
			return nil, err
		}
		b.WriteByte('\n')
		return b.Bytes(), nil
	case ".yaml", ".yml":
		return formatYAML(data)
	default:
		return nil, fmt.Errorf("%q: want .cue, .yaml, .yml or .json", ext)
	}
}

func formatYAML(data []byte) ([]byte, error) {
	var b bytes.Buffer
	e := yaml.NewEncoder(&b)
	e.SetIndent(2)
	var before []any
	d := yaml.NewDecoder(bytes.NewReader(data))
	for {
		var n yaml.Node
		err := d.Decode(&n)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		var v any
		if err := n.Decode(&v); err != nil {
			return nil, err
		}
		before = append(before, v)
		if err := e.Encode(&n); err != nil {
			return nil, err
		}
	}
	if len(before) == 0 {
		return data, nil // nothing, or comments alone
	}
	if err := e.Close(); err != nil {
		return nil, err
	}
	var after []any
	for d := yaml.NewDecoder(bytes.NewReader(b.Bytes())); ; {
		var v any
		if err := d.Decode(&v); err != nil {
			if !errors.Is(err, io.EOF) {
				return nil, err
			}
			break
		}
		after = append(after, v)
	}
	// A value keeps its number signs, so any that is missing was a comment's.
	if !reflect.DeepEqual(before, after) || strings.Count(b.String(), "#") != strings.Count(string(data), "#") {
		return nil, ErrLossy
	}
	return b.Bytes(), nil
}
