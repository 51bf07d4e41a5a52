package compilertest

import (
	"encoding/json"
	"fmt"
	"maps"
	"strconv"
	"strings"
	"time"

	"github.com/dynamograph/dynamo/graph"
	"github.com/dynamograph/dynamo/graph/diag"
)

// Parse reads a graph in a notation for tests; places are those in src. One line a thing, configuration as JSON at its end:
//
//	graph llama
//	status compiled
//	timeouts client=1m drain=45s grace=1m
//	slo ttft=500ms itl=25ms
//	machine memory=64Gi disk=1Ti
//	device h100 memory=80Gi count=8
//	model default file:tiny.gguf context=2048 {"layers": 80}
//	node decode decode replicas=2 {"kv": {"tokens": 4096}}
//	edge "prefill.kv -> decode.kv" transport=tcp
//
// Lines that begin with # and empty ones are skipped.
func Parse(file, src string) (*graph.Graph, error) {
	g := &graph.Graph{Models: map[string]*graph.Model{}, Nodes: map[string]*graph.Node{}}
	for i, line := range strings.Split(src, "\n") {
		if line == "" || line[0] == '#' {
			continue
		}
		if err := parseLine(g, line, diag.Pos{File: file, Line: i + 1, Col: 1}); err != nil {
			return nil, fmt.Errorf("%s:%d: %w", file, i+1, err)
		}
	}
	return g, nil
}

func parseLine(g *graph.Graph, line string, pos diag.Pos) error {
	word, rest, _ := strings.Cut(line, " ")
	pos.Col = len(word) + 2
	if word == "edge" {
		return parseEdge(g, rest, pos)
	}
	head, config, _ := strings.Cut(rest, "{")
	f := strings.Fields(head)
	if len(f) == 0 {
		return fmt.Errorf("%q: want a name", line)
	}
	at := func(s string) diag.Pos {
		return diag.Pos{File: pos.File, Line: pos.Line, Col: strings.Index(line, s) + 1}
	}
	switch word {
	case "graph":
		g.Name, g.Pos = f[0], pos
	case "model":
		m := &graph.Model{Name: f[0], Pos: pos}
		for _, s := range f[1:] {
			switch k, v, _ := strings.Cut(s, "="); k {
			case "context":
				m.Context, _ = strconv.Atoi(v)
			case "names":
				m.Names = strings.Split(v, ",")
			case "sha256":
				m.SHA256 = v
			case "revision":
				m.Revision = v
			case "tools":
				m.Tools = v
			case "features":
				m.Features = strings.Split(v, ",")
			case "adapter":
				m.Adapters = map[string]*graph.Adapter{v: {Name: v, Pos: at(s), Sources: []string{"file:" + v}}}
			default:
				m.Sources = append(m.Sources, s)
				continue
			}
			k, _, _ := strings.Cut(s, "=")
			if k == "adapter" {
				k = "adapters." + s[len("adapter="):]
			}
			set(g, map[string]diag.Pos{"models." + m.Name + "." + k: at(s)})
		}
		if config != "" { // what the author states
			if err := json.Unmarshal([]byte("{"+config), &m.Stated); err != nil {
				return err
			}
			var v map[string]any
			if err := json.Unmarshal([]byte("{"+config), &v); err != nil {
				return err
			}
			places := map[string]diag.Pos{}
			fields(places, "models."+m.Name+".facts.", v, at)
			set(g, places)
		}
		g.Models[m.Name] = m
	case "status":
		g.Status = f[0]
	case "timeouts", "slo":
		return parseTimes(g, word, f, at)
	case "machine", "device":
		return parseMachine(g, word, f, at)
	case "node":
		if len(f) < 2 {
			return fmt.Errorf("%q: want node NAME KIND", line)
		}
		n := &graph.Node{Name: f[0], Kind: f[1], Pos: pos, Fields: map[string]diag.Pos{}}
		for _, s := range f[2:] {
			k, v, _ := strings.Cut(s, "=")
			n.Fields[k] = at(s)
			switch k {
			case "model":
				n.Model = v
			case "replicas":
				r, err := strconv.Atoi(v)
				if err != nil {
					return err
				}
				n.Replicas = &r
			}
		}
		if config != "" {
			n.Config = json.RawMessage("{" + config)
			var v map[string]any
			if err := json.Unmarshal(n.Config, &v); err != nil {
				return err
			}
			fields(n.Fields, "", v, at)
		}
		g.Nodes[n.Name] = n
	default:
		return fmt.Errorf("unknown word %q", word)
	}
	return nil
}

// parseMachine reads what machines have.
func parseMachine(g *graph.Graph, word string, f []string, at func(string) diag.Pos) error {
	var memory, disk int64
	count, path := 1, "machine."
	if word == "device" {
		path = "devices." + f[0] + "."
	}
	for _, s := range f {
		k, v, ok := strings.Cut(s, "=")
		if !ok {
			continue
		}
		var err error
		switch k {
		case "memory":
			memory, err = graph.ParseSize(v)
		case "disk":
			disk, err = graph.ParseSize(v)
		case "count":
			count, err = strconv.Atoi(v)
		case "cores":
			g.Machine.Cores, err = strconv.Atoi(v)
		}
		if err != nil {
			return err
		}
		set(g, map[string]diag.Pos{path + k: at(s)})
	}
	if word == "machine" {
		g.Machine.MemoryBytes, g.Machine.DiskBytes = memory, disk
		return nil
	}
	if g.Devices == nil {
		g.Devices = map[string]*graph.Device{}
	}
	g.Devices[f[0]] = &graph.Device{Name: f[0], Pos: at(f[0]), MemoryBytes: memory, Count: count}
	return nil
}

func parseTimes(g *graph.Graph, word string, f []string, at func(string) diag.Pos) error {
	for _, s := range f {
		k, v, _ := strings.Cut(s, "=")
		to := map[string]*graph.Duration{"client": &g.Timeouts.Client, "drain": &g.Timeouts.Drain, "grace": &g.Timeouts.Grace,
			"ttft": &g.SLO.TTFT, "itl": &g.SLO.ITL}[k]
		d, err := time.ParseDuration(v)
		if to == nil || err != nil {
			return fmt.Errorf("%q: want client=, drain=, grace=, ttft= or itl= and a duration", s)
		}
		*to = graph.Duration(d)
		set(g, map[string]diag.Pos{word + "." + k: at(s)})
	}
	return nil
}

func set(g *graph.Graph, places map[string]diag.Pos) {
	if g.Fields == nil {
		g.Fields = map[string]diag.Pos{}
	}
	maps.Copy(g.Fields, places)
}

// fields notes where keys stand; the first of equal keys counts.
func fields(to map[string]diag.Pos, prefix string, v map[string]any, at func(string) diag.Pos) {
	for k, x := range v {
		to[prefix+k] = at(`"` + k + `"`)
		if m, ok := x.(map[string]any); ok {
			fields(to, prefix+k+".", m, at)
		}
	}
}

func parseEdge(g *graph.Graph, rest string, pos diag.Pos) error {
	label, settings, ok := strings.Cut(strings.TrimPrefix(rest, `"`), `"`)
	if !ok || rest[0] != '"' {
		return fmt.Errorf(`%s: want edge "a -> b"`, rest)
	}
	from, to, ok := strings.Cut(label, " -> ")
	if !ok {
		return fmt.Errorf(`%q: want "a -> b"`, label)
	}
	e := &graph.Edge{From: end(from), To: end(to), Pos: pos, Len: len(label) + 2, Fields: map[string]diag.Pos{}}
	if k, v, ok := strings.Cut(strings.TrimSpace(settings), "="); ok && k == "transport" {
		e.Transport = v
		e.Fields[k] = diag.Pos{File: pos.File, Line: pos.Line, Col: pos.Col + strings.Index(rest, "transport=")}
	}
	g.Edges = append(g.Edges, e)
	return nil
}

func end(s string) graph.End {
	n, p, _ := strings.Cut(s, ".")
	return graph.End{Node: n, Port: p}
}

// Agg and Disagg are the two graphs of most tests.
const (
	Agg = `graph agg
model default file:tiny.gguf
node api frontend
node route router
node work worker replicas=2
edge "api -> route"
edge "route.worker -> work"
`
	Disagg = `graph disagg
model default file:tiny.gguf context=2048
node api frontend
node route router
node prefill prefill
node decode decode replicas=2
edge "api -> route"
edge "route.prefill -> prefill"
edge "route.decode -> decode"
edge "prefill.kv -> decode.kv"
`
)
