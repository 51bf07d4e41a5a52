package graphtest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"

	"sigs.k8s.io/yaml"

	"github.com/dynamograph/dynamo/graph/plan"
	"github.com/dynamograph/dynamo/specs/write"
)

// part holds what is wanted of the graph or the plan against what came out. Only what the test names counts. fixed is the section as it
// would pass; nil where nothing came out.
func part(section string, text []byte, o *outcome, why string) (fixed []byte, out []Failure) {
	var want any
	if err := yaml.Unmarshal(text, &want); err != nil {
		return nil, []Failure{{Section: section, Msg: "this is no YAML: " + err.Error()}}
	}
	var got any
	var err error
	switch {
	case section == Graph && o.graph != nil:
		got, err = graphDoc(o)
	case section == Plan && o.plan != nil:
		got, err = planDoc(o.plan)
	default:
		return nil, []Failure{{Section: section, Msg: "there is none, because of: " + why}}
	}
	if err != nil {
		return nil, []Failure{{Section: section, Msg: err.Error()}}
	}
	if len(bytes.TrimSpace(text)) == 0 {
		out = []Failure{{Section: section, Msg: "the section is empty; --update fills it"}}
		want = got
	} else {
		out = missing(section, "", want, got)
	}
	if b, err := yaml.Marshal(project(want, got)); err == nil {
		fixed = b
	}
	return fixed, out
}

// graphDoc is the graph as `graph export --output json` writes it.
func graphDoc(o *outcome) (v any, err error) {
	b, err := write.Spec(o.graph, "json", write.Options{})
	if err != nil {
		return nil, err
	}
	return v, json.Unmarshal(b, &v)
}

// planDoc is the plan's JSON with its lists keyed: groups by name, units by node, edges as a spec writes them.
func planDoc(p *plan.Plan) (any, error) {
	b, err := plan.Encode(p)
	if err != nil {
		return nil, err
	}
	var v map[string]any
	if err := json.Unmarshal(b, &v); err != nil {
		return nil, err
	}
	groups := keyed(v["groups"], func(g map[string]any) string { return fmt.Sprint(g["name"]) })
	for _, g := range groups {
		g := g.(map[string]any)
		g["units"] = keyed(g["units"], func(u map[string]any) string { return fmt.Sprint(u["node"]) })
	}
	v["groups"] = groups
	v["edges"] = keyed(v["edges"], func(e map[string]any) string {
		return fmt.Sprintf("%v.%v -> %v.%v", e["from"], e["fromPort"], e["to"], e["toPort"])
	})
	return v, nil
}

func keyed(list any, key func(map[string]any) string) map[string]any {
	out := map[string]any{}
	items, _ := list.([]any)
	for _, i := range items {
		if m, ok := i.(map[string]any); ok {
			out[key(m)] = m
		}
	}
	return out
}

// missing lists where got does not have what want says. null wants a field to be absent.
func missing(section, path string, want, got any) (out []Failure) {
	w, ok := want.(map[string]any)
	if !ok {
		if !reflect.DeepEqual(want, got) {
			out = append(out, Failure{Section: section, Path: path, Want: want, Got: got,
				Msg: fmt.Sprintf("%s: want %s, got %s", path, compact(want), compact(got))})
		}
		return out
	}
	g, ok := got.(map[string]any)
	if !ok {
		return []Failure{{Section: section, Path: path, Want: want, Got: got, Msg: fmt.Sprintf("%s: want %s, got %s", path, compact(want), compact(got))}}
	}
	for _, k := range slices.Sorted(maps.Keys(w)) {
		p := k
		if path != "" {
			p = path + "." + k
		}
		v, there := g[k]
		switch {
		case w[k] == nil && !there:
		case !there:
			out = append(out, Failure{Section: section, Path: p, Want: w[k],
				Msg: fmt.Sprintf("%s: want %s, but it is not there; there are: %s", p, compact(w[k]), names(g))})
		case w[k] == nil:
			out = append(out, Failure{Section: section, Path: p, Got: v, Msg: fmt.Sprintf("%s: want nothing, got %s", p, compact(v))})
		default:
			out = append(out, missing(section, p, w[k], v)...)
		}
	}
	return out
}

// project cuts got down to what want names.
func project(want, got any) any {
	w, ok := want.(map[string]any)
	g, ok2 := got.(map[string]any)
	if !ok || !ok2 {
		return got
	}
	out := map[string]any{}
	for k, v := range w {
		if gv, there := g[k]; there {
			out[k] = project(v, gv)
		} else if v == nil {
			out[k] = nil
		}
	}
	return out
}

func compact(v any) string {
	if v == nil {
		return "nothing"
	}
	b, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	if len(b) > 200 {
		return string(b[:200]) + "…"
	}
	return string(b)
}

func names(m map[string]any) string {
	out := slices.Sorted(maps.Keys(m))
	if len(out) > 12 {
		out = append(out[:12], "…")
	}
	s := ""
	for i, n := range out {
		if i > 0 {
			s += ", "
		}
		s += n
	}
	return s
}
