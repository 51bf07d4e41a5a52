package compiler

import (
	"encoding/json"
	"fmt"
	"maps"
	"net"
	"net/url"
	"slices"

	"github.com/dynamograph/dynamo/graph"
	"github.com/dynamograph/dynamo/graph/diag"
)

// callsItself finds nodes that call a server by URL which is the one that their requests come from.
func callsItself(s *state) diag.List {
	var list diag.List
	for _, entry := range s.entries() {
		on := s.kinds[entry].Listen(s.g.Nodes[entry].Config)
		below := s.g.Reach(func(e *graph.Edge) bool { return graph.IsCall(e.Type) }, entry)
		for _, name := range slices.Sorted(maps.Keys(below)) {
			k, n := s.kinds[name], s.g.Nodes[name]
			if k == nil {
				continue
			}
			for _, u := range k.Calls(n.Config) {
				for _, field := range slices.Sorted(maps.Keys(on)) {
					if !meets(u, on[field]) {
						continue
					}
					d := diag.Diagnostic{Code: "cycle", Pos: n.Pos, Len: len(name), Path: "nodes." + name}
					if f := fieldOf(n.Config, u); f != "" {
						d.Path += "." + f
						d.Pos, d.Len = s.g.Place(d.Path), len(f)
					}
					d.Msg = fmt.Sprintf("%s: a request would never end: %q is where %s listens, which leads here", d.Path, u, entry)
					d.Hint = "name the server that has the model, or give one of them another port"
					d.Related = []diag.Related{{Pos: s.g.Place("nodes." + entry + "." + field), Msg: fmt.Sprintf("%s listens on %s", entry, on[field])}}
					list.Add(d)
				}
			}
		}
	}
	return list
}

// meets reports whether a URL certainly leads to a listener: to its port of the very address, or of this machine's own where it listens there.
func meets(to, listen string) bool {
	u, err := url.Parse(to)
	if err != nil {
		return false
	}
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	host, at, err := net.SplitHostPort(listen)
	if err != nil || at != port || at == "0" {
		return false
	}
	a, b := u.Hostname(), host
	here, own := net.ParseIP(a), net.ParseIP(b)
	all := b == "" || own != nil && own.IsUnspecified()
	loop := b == "localhost" || own != nil && own.IsLoopback()
	switch {
	case a == b:
		return true
	case a == "localhost":
		return all || loop
	case here != nil && here.IsLoopback():
		return all || b == "localhost" || here.Equal(own)
	}
	return here != nil && here.Equal(own)
}

// fieldOf is the field at the top of a config that holds a text; "" where none does.
func fieldOf(config json.RawMessage, text string) string {
	var fields map[string]any
	if json.Unmarshal(config, &fields) != nil {
		return ""
	}
	for _, f := range slices.Sorted(maps.Keys(fields)) {
		if fields[f] == text {
			return f
		}
	}
	return ""
}
