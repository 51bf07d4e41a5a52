package kind

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/dynamograph/dynamo/graph/diag"
	"github.com/dynamograph/dynamo/graph/model"
	"github.com/dynamograph/dynamo/graph/plan"
)

// Entry is a Kind without its type parameter: configurations are JSON.
type Entry struct {
	Name, Summary, Schema string
	Colocate, NeedsModel  bool
	Converts              [2]string
	Wraps                 string

	// Config returns raw with every default applied, as canonical JSON. Unknown fields are an error.
	Config func(raw json.RawMessage) (json.RawMessage, error)
	Ports  func(raw json.RawMessage) ([]Port, error)
	Check  func(raw json.RawMessage, s Site) diag.List
	Size   func(raw json.RawMessage, f model.Facts) plan.Needs
	New    func(raw json.RawMessage, h Host) (Component, error) // nil: the build can check the kind, but not run it

	Contract func(raw json.RawMessage, port string) []Term
	Calls    func(raw json.RawMessage) []string
	Names    func(raw json.RawMessage) map[string]string
	Scales   func(raw json.RawMessage) map[string]plan.Replicas
	Listen   func(raw json.RawMessage) map[string]string
	Lacks    func(raw json.RawMessage) []Lack
	Limits   func(raw json.RawMessage) []Limit
	Features func(raw json.RawMessage) (have []string, known bool) // nil: neither adds nor takes features
	Parses   func(what, format string) bool                        // nil: reads none
	Guard    func(raw json.RawMessage) string
	Tenants  func(raw json.RawMessage) (does, field string)
}

// Registry is a set of kinds. It is not safe for concurrent change.
type Registry struct{ kinds map[string]*Entry }

// Default holds the kinds that registered themselves from init.
var Default = &Registry{}

// Register adds k to Default. It panics on a half-made or repeated kind: that is a programmer's mistake.
func Register[C any](k Kind[C]) { Add(Default, k) }

// Add adds k to r; see Register.
func Add[C any](r *Registry, k Kind[C]) {
	if k.Name == "" || k.Schema == "" || k.Default == nil || k.Ports == nil {
		panic(fmt.Sprintf("kind %q: Name, Schema, Default and Ports must be set", k.Name))
	}
	if _, ok := r.kinds[k.Name]; ok {
		panic(fmt.Sprintf("kind %q: registered twice", k.Name))
	}
	if r.kinds == nil {
		r.kinds = map[string]*Entry{}
	}
	decode := func(raw json.RawMessage) (C, error) {
		c := k.Default()
		if len(raw) == 0 {
			return c, nil
		}
		d := json.NewDecoder(bytes.NewReader(raw))
		d.DisallowUnknownFields()
		if err := d.Decode(&c); err != nil {
			return c, fmt.Errorf("config of kind %q: %w", k.Name, err)
		}
		return c, nil
	}
	r.kinds[k.Name] = &Entry{
		Name: k.Name, Summary: k.Summary, Schema: k.Schema, Colocate: k.Colocate, NeedsModel: k.NeedsModel,
		Converts: k.Converts, Wraps: k.Wraps, Parses: k.Parses,
		Config: func(raw json.RawMessage) (json.RawMessage, error) {
			c, err := decode(raw)
			if err != nil {
				return nil, err
			}
			return json.Marshal(c)
		},
		Ports: func(raw json.RawMessage) ([]Port, error) {
			c, err := decode(raw)
			if err != nil {
				return nil, err
			}
			return k.Ports(c), nil
		},
		Check: func(raw json.RawMessage, s Site) diag.List {
			if k.Check == nil {
				return nil
			}
			c, err := decode(raw)
			if err != nil {
				return diag.List{{Code: "bad-value", Pos: s.Node.Pos, Path: "nodes." + s.Node.Name, Msg: err.Error()}}
			}
			return k.Check(c, s)
		},
		Size: func(raw json.RawMessage, f model.Facts) (n plan.Needs) {
			if c, err := decode(raw); err == nil && k.Size != nil {
				n = k.Size(c, f)
			}
			return n
		},
		Contract: func(raw json.RawMessage, port string) (t []Term) {
			if c, err := decode(raw); err == nil && k.Contract != nil {
				t = k.Contract(c, port)
			}
			return t
		},
		Calls:  lift(decode, k.Calls),
		Names:  lift(decode, k.Names),
		Scales: lift(decode, k.Scales),
		Listen: lift(decode, k.Listen),
		Lacks:  lift(decode, k.Lacks),
		Limits: lift(decode, k.Limits),
		Guard:  lift(decode, k.Guard),
		Tenants: func(raw json.RawMessage) (does, field string) {
			if c, err := decode(raw); err == nil && k.Tenants != nil {
				does, field = k.Tenants(c)
			}
			return does, field
		},
	}
	e := r.kinds[k.Name]
	if k.Features != nil {
		e.Features = func(raw json.RawMessage) ([]string, bool) {
			c, err := decode(raw)
			if err != nil {
				return nil, false
			}
			return k.Features(c)
		}
	}
	if k.New != nil {
		e.New = func(raw json.RawMessage, h Host) (Component, error) {
			c, err := decode(raw)
			if err != nil {
				return nil, err
			}
			return k.New(c, h)
		}
	}
}

// lift makes a function of raw JSON from one of the config. A nil f, and a config that does not decode, give the zero value: Config reports
// the latter.
func lift[C, T any](decode func(json.RawMessage) (C, error), f func(C) T) func(json.RawMessage) T {
	return func(raw json.RawMessage) (out T) {
		if f == nil {
			return out
		}
		if c, err := decode(raw); err == nil {
			out = f(c)
		}
		return out
	}
}

// Lookup returns the kind called name, or nil.
func (r *Registry) Lookup(name string) *Entry { return r.kinds[name] }

// All returns every kind, sorted by name.
func (r *Registry) All() []*Entry {
	out := make([]*Entry, 0, len(r.kinds))
	for _, e := range r.kinds {
		out = append(out, e)
	}
	slices.SortFunc(out, func(a, b *Entry) int { return strings.Compare(a.Name, b.Name) })
	return out
}
