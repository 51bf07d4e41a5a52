package plan

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
)

// Encode returns p as indented JSON with a final newline. Equal plans give equal bytes.
func Encode(p *Plan) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(p); err != nil {
		return nil, fmt.Errorf("plan of graph %q: %w", p.Graph, err)
	}
	return b.Bytes(), nil
}

// Decode reads what Encode wrote. Another version, an unknown field, a null entry or trailing data is an error: a plan that is half understood must not
// run.
func Decode(b []byte) (*Plan, error) {
	var v struct {
		Version int `json:"version"`
	}
	if err := json.Unmarshal(b, &v); err != nil {
		return nil, fmt.Errorf("plan: %w", err)
	}
	if v.Version != Version {
		return nil, fmt.Errorf("plan: version %d: this program reads version %d", v.Version, Version)
	}
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	p := &Plan{}
	if err := d.Decode(p); err != nil {
		return nil, fmt.Errorf("plan: %w", err)
	}
	for _, g := range p.Groups {
		if g == nil || slices.Contains(g.Units, nil) {
			return nil, errors.New("plan: a group or unit is null")
		}
	}
	if slices.Contains(p.Edges, nil) {
		return nil, errors.New("plan: an edge is null")
	}
	for name, m := range p.Models {
		if m == nil {
			return nil, fmt.Errorf("plan: model %q is null", name)
		}
		for a := range m.Adapters {
			if m.Adapters[a] == nil {
				return nil, fmt.Errorf("plan: adapter %q of model %q is null", a, name)
			}
		}
	}
	return p, nil
}

// Digest names a plan's content: "sha256:" and the hash of its compact JSON. It does not change with indentation.
func Digest(p *Plan) (string, error) {
	b, err := json.Marshal(p)
	if err != nil {
		return "", fmt.Errorf("plan of graph %q: %w", p.Graph, err)
	}
	sum := sha256.Sum256(b)
	return "sha256:" + hex.EncodeToString(sum[:]), nil
}
