package dgd

import (
	"encoding/json"
	"fmt"
	"net"
	"path"
	"slices"
	"strings"

	"github.com/dynamograph/dynamo/graph"
	"github.com/dynamograph/dynamo/graph/diag"
	"github.com/dynamograph/dynamo/graph/kind"
)

// graph makes the graph of the components that were read.
func (im *importer) graph() *graph.Graph {
	g := &graph.Graph{Name: im.name, Pos: im.pos, Models: map[string]*graph.Model{}, Nodes: map[string]*graph.Node{}, Fields: map[string]diag.Pos{}}
	b := &builder{importer: im, g: g, models: map[string]*served{}}
	for _, c := range im.parts {
		b.role(c)
	}
	b.halves()
	for _, c := range im.parts {
		c.node = b.free(label(c.name))
		switch c.role {
		case "frontend":
			b.fronts = append(b.fronts, c)
		case "worker", "prefill", "decode", "encode":
			b.worker(c)
		case "planner":
			b.planners = append(b.planners, c)
		default:
			im.lost(c.at, c.path, "", "component %q of type %q: a graph has no such node", c.name, c.typ)
		}
	}
	for _, c := range b.fronts {
		b.frontend(c)
	}
	for _, c := range b.planners {
		b.planner(c)
	}
	im.restShared()
	for _, c := range im.parts {
		im.restEnv(c)
	}
	b.lengths()
	b.onlyModel()
	return g
}

// onlyModel gives the one model of a graph the name that its short form stands for; nodes need not say it.
func (b *builder) onlyModel() {
	if len(b.g.Models) != 1 {
		return
	}
	for key, m := range b.g.Models {
		delete(b.g.Models, key)
		m.Name = "default"
		b.g.Models[m.Name] = m
		for _, f := range []string{"tools", "reasoning"} {
			if at, ok := b.g.Fields["models."+key+"."+f]; ok {
				delete(b.g.Fields, "models."+key+"."+f)
				b.g.Fields["models.default."+f] = at
			}
		}
		break
	}
	for _, n := range b.g.Nodes {
		n.Model = "" // there is no other
	}
}

type builder struct {
	*importer
	g        *graph.Graph
	fronts   []*component
	planners []*component
	models   map[string]*served // by key of g.Models
	order    []string           // keys of models, as they come
}

// served is a model and who serves it.
type served struct {
	prefill, decode, worker, encode []*component
	lengths                         map[string][]*component // by the longest sequence that they say
}

// role tells what a component is: its command line counts most, then its type.
func (b *builder) role(c *component) {
	if c.engine != "" {
		b.engineFile(c)
	}
	mode := ""
	if f, ok := c.take("disaggregation-mode"); ok {
		mode = f.value()
	}
	if _, ok := c.take("is-prefill-worker"); ok {
		mode = "prefill"
	}
	if _, ok := c.take("is-decode-worker"); ok {
		mode = "decode"
	}
	if mode == "" {
		mode = c.sub
	}
	switch {
	case c.module == "dynamo.frontend" || c.module == "" && c.typ == "frontend":
		c.role = "frontend"
	case c.module == "dynamo.planner" || c.typ == "planner":
		c.role = "planner"
	case c.engine == "":
	case mode == "encode":
		c.role = "encode"
	case mode == "prefill" || mode == "decode":
		c.role = mode
	case c.typ == "prefill" || c.typ == "decode":
		c.role = c.typ
	default:
		c.role = "worker"
	}
}

// modelFlags name the model of an engine.
var modelFlags = []string{"model", "model-path"}

// halves makes a worker that says no role the decode half where another component computes prompts for its model: older engines of Dynamo
// need no option for that.
func (b *builder) halves() {
	prompts := map[string]bool{}
	modelOf := func(c *component) string {
		for _, f := range c.flags {
			if slices.Contains(modelFlags, f.name) {
				return f.value()
			}
		}
		return c.model
	}
	for _, c := range b.parts {
		if c.role == "prefill" {
			prompts[modelOf(c)] = true
		}
	}
	for _, c := range b.parts {
		if c.role == "worker" && prompts[modelOf(c)] {
			c.role = "decode"
		}
	}
}

// free returns a node's name that is not taken.
func (b *builder) free(name string) string {
	if name == "" {
		name = "node"
	}
	taken := func(n string) bool {
		return b.g.Nodes[n] != nil || slices.ContainsFunc(b.parts, func(c *component) bool { return c.node == n })
	}
	for i, n := 2, name; ; i++ {
		if !taken(n) {
			return n
		}
		n = fmt.Sprintf("%s-%d", name, i)
	}
}

// add makes a node. Fields have their places in the deployment's file.
func (b *builder) add(c *component, name, kindName, model string, cfg config) *graph.Node {
	raw, err := json.Marshal(cfg)
	if err != nil {
		panic(err) // of texts, numbers and maps of them
	}
	n := &graph.Node{Name: name, Kind: kindName, Model: model, Config: raw, Pos: b.at(c.at)}
	if name == c.node {
		n.Fields = c.places
	}
	if k := b.o.Registry.Lookup(kindName); k == nil {
		b.lost(c.at, c.path, "", "component %q: this build has no kind %q", c.name, kindName)
		return nil
	}
	b.g.Nodes[name] = n
	return n
}

// join makes an edge that follows from a component.
func (b *builder) join(c *component, from, to graph.End) {
	b.g.Edges = append(b.g.Edges, &graph.Edge{From: from, To: to, Pos: b.at(c.at)})
}

// worker makes the node of a component that computes.
func (b *builder) worker(c *component) {
	key := b.model(c)
	s := b.models[key]
	cfg := config{}
	connector := ""
	if c.engine == "vllm" {
		connector = b.connector(c)
	}
	if f, ok := c.take(lengthOf[c.engine]); ok && lengthOf[c.engine] != "" {
		s.lengths[f.value()] = append(s.lengths[f.value()], c)
		c.flags = append(c.flags, f)
	}
	for k, v := range b.engineConfig(c) {
		cfg[k] = v
	}
	if connector != "" && c.role != "encode" {
		cfg.set("kv.connector", connector)
	}
	modelKey := key
	if c.engine == "mock" {
		modelKey = ""
	}
	n := b.add(c, c.node, c.role, modelKey, cfg)
	if n == nil {
		return
	}
	if c.replicas != nil {
		n.Replicas = c.replicas
		if *c.replicas == 0 {
			one := 1
			n.Replicas = &one
			b.lost(c.replicasAt, c.path+".replicas", "", "0: a node has 1 replica or more")
		}
	}
	switch c.role {
	case "prefill":
		s.prefill = append(s.prefill, c)
	case "decode":
		s.decode = append(s.decode, c)
	case "encode":
		s.encode = append(s.encode, c)
		return
	default:
		s.worker = append(s.worker, c)
	}
	b.devices(c, cfg)
}

// devices compares the accelerators of the pods with those that the engine's options take.
func (b *builder) devices(c *component, cfg config) {
	if c.gpus == 0 || c.engine == "mock" {
		return
	}
	takes := 1
	for _, f := range []string{"tp", "pp", "dp"} {
		if n, ok := cfg[f].(int); ok && !(f == "dp" && cfg["flags"] != nil && cfg["flags"].(config)["enable-dp-attention"] != nil) {
			takes *= n
		}
	}
	if have := c.gpus * c.machines; have != takes {
		b.lost(c.gpusAt, c.path, "tp, pp and dp say how many accelerators an engine takes",
			"%d accelerators for each replica: the engine's options take %d", have, takes)
	}
}

// model returns the key of the model that a component serves.
func (b *builder) model(c *component) string {
	var from string
	at := word{at: c.at, text: c.name}
	if f, ok := c.take(modelFlags...); ok {
		from, at = f.value(), f.word
	}
	if from == "" {
		from = c.model
	}
	var names []string
	if f, ok := c.take("served-model-name", "model-name"); ok {
		names = f.values
		if len(names) == 1 && strings.Contains(names[0], ",") {
			names = strings.Split(names[0], ",")
		}
	}
	if len(names) == 0 && from != "" {
		names = []string{from}
	}
	revision := c.revision
	if f, ok := c.take("revision"); ok {
		revision = f.value()
	}
	for key, m := range b.g.Models {
		if slices.Equal(m.Names, names) {
			b.parsers(c, m)
			return key
		}
	}
	if c.engine == "mock" {
		if from != "" {
			b.lostWord(at, c.path, "", "model %q: the mock engine has none", from)
		}
		if b.models[""] == nil {
			b.models[""] = &served{lengths: map[string][]*component{}}
			b.order = append(b.order, "")
		}
		return ""
	}
	key := label(path.Base(strings.Join(names, "-")))
	if key == "" || b.g.Models[key] != nil {
		key = fmt.Sprintf("model-%d", len(b.g.Models)+1)
	}
	m := &graph.Model{Name: key, Pos: b.at(at.at), Names: names}
	m.Sources = []string{b.source(c, from, revision, at)}
	b.g.Models[key] = m
	b.models[key] = &served{lengths: map[string][]*component{}}
	b.order = append(b.order, key)
	b.parsers(c, m)
	return key
}

// source makes a model's source: what an engine loads by name is at the hub, and its config.json says what the compiler wants to know.
func (b *builder) source(c *component, from, revision string, at word) string {
	if revision != "" {
		revision = "@" + revision
	}
	file := "/config.json"
	if strings.HasSuffix(from, ".gguf") {
		file = ""
	}
	switch org, repo, ok := strings.Cut(from, "/"); {
	case from == "":
		b.lost(c.at, c.path, "set the model's source", "component %q names no model", c.name)
		return "file:unknown/config.json"
	case strings.HasPrefix(from, "hf://"):
		return "hf:" + strings.TrimPrefix(from, "hf://") + revision + file
	case ok && org != "" && org != "." && org != ".." && !strings.HasPrefix(org, "$") && !strings.Contains(repo, "/") && !strings.Contains(org, ":"):
		return "hf:" + from + revision + file
	}
	if !strings.HasPrefix(from, "/") {
		b.lostWord(at, c.path, "correct the model's source", "model %q: it is not ORG/REPO, so it is taken for a path", from)
	}
	return "file:" + strings.ReplaceAll(from, " ", "-") + file
}

// parsers reads what Dynamo parses of the answers. Its own parsers have names of their own; those of the engines stay flags.
func (b *builder) parsers(c *component, m *graph.Model) {
	for _, p := range []struct {
		into        *string
		field, flag string
	}{{&m.Tools, "tools", "dyn-tool-call-parser"}, {&m.Reasoning, "reasoning", "dyn-reasoning-parser"}} {
		f, ok := c.take(p.flag)
		switch {
		case !ok:
		case b.o.Parser != nil && !b.o.Parser(p.field, f.value()):
			b.lostWord(f.word, c.path, "", "option --%s %s: no engine has a parser of that name", f.name, f.value())
		case *p.into != "" && *p.into != f.value():
			b.lostWord(f.word, c.path, "", "option --%s %s: another component says %q", f.name, f.value(), *p.into)
		default:
			*p.into = f.value()
			b.g.Fields["models."+m.Name+"."+p.field], _ = b.wordAt(f.word)
		}
	}
}

// lengths moves the longest sequence to the model, where all who serve it say the same.
func (b *builder) lengths() {
	for key, s := range b.models {
		m := b.g.Models[key]
		if m == nil || len(s.lengths) != 1 {
			continue
		}
		for text, who := range s.lengths {
			n, ok := typed(text).(json.Number)
			v, err := n.Int64()
			if !ok || err != nil || v <= 0 || len(who) != len(s.prefill)+len(s.decode)+len(s.worker)+len(s.encode) {
				continue
			}
			m.Context = int(v)
			for _, c := range who {
				b.dropFlag(b.g.Nodes[c.node], lengthOf[c.engine])
			}
		}
	}
}

// dropFlag removes a flag of a node that is made already.
func (b *builder) dropFlag(n *graph.Node, name string) {
	var cfg map[string]json.RawMessage
	var flags map[string]json.RawMessage
	if n == nil || json.Unmarshal(n.Config, &cfg) != nil || json.Unmarshal(cfg["flags"], &flags) != nil {
		return
	}
	delete(flags, name)
	if delete(cfg, "flags"); len(flags) > 0 {
		cfg["flags"], _ = json.Marshal(flags) // of JSON
	}
	n.Config, _ = json.Marshal(cfg)
}

// frontend makes the frontend, and the router that Dynamo's frontend has inside, one for each model.
func (b *builder) frontend(c *component) {
	cfg := config{}
	port := c.env["DYN_HTTP_PORT"].text
	if f, ok := c.take("http-port"); ok {
		port = f.value()
	}
	if port != "" && port != "8000" {
		cfg["listen"] = net.JoinHostPort("127.0.0.1", port)
	}
	if w, ok := c.env["DYN_HTTP_BODY_LIMIT_MB"]; ok {
		if mb, isNumber := typed(w.text).(json.Number); isNumber {
			if n, err := mb.Int64(); err == nil && n > 0 && n < 1<<20 {
				cfg["body"] = n << 20
				c.used = append(c.used, "DYN_HTTP_BODY_LIMIT_MB")
			}
		}
	}
	c.take("http-host") // where it runs decides it
	mode := word{text: c.env["DYN_ROUTER_MODE"].text, at: c.env["DYN_ROUTER_MODE"].at}
	if f, ok := c.take("router-mode"); ok {
		mode = word{text: f.value(), at: f.at, line: f.line}
	}
	tune := config{}
	for _, t := range []struct{ name, field string }{{"kv-overlap-score-weight", "overlap"}, {"router-temperature", "temperature"}} {
		if f, ok := c.take(t.name); ok {
			if n, isNumber := typed(f.value()).(json.Number); isNumber && mode.text == "kv" {
				tune[t.field] = n
			} else {
				b.lostWord(f.word, c.path, "", "option --%s %s: it has no effect without --router-mode kv", f.name, f.value())
			}
		}
	}
	for _, f := range c.flags {
		b.lostWord(f.word, c.path, ofRuntime[f.name], "option --%s: a graph has no field for it", f.name)
	}
	if c.replicas != nil && *c.replicas > 1 {
		b.lost(c.replicasAt, c.path+".replicas", "", "%d: a graph has one of each frontend", *c.replicas)
	}
	n := b.add(c, c.node, "frontend", "", cfg)
	if n == nil {
		return
	}
	for _, key := range b.order {
		s := b.models[key]
		name := "route"
		if len(b.order) > 1 && key != "" {
			name = "route-" + key
		}
		b.router(c, b.free(name), s, mode, tune)
	}
}

// policies are the modes of Dynamo's router that ours has.
var policies = map[string]string{
	"": "round-robin", "round-robin": "round-robin", "random": "random", "power-of-two": "power-of-two", "least-loaded": "least-loaded",
}

// router makes one with what its options say of policy "kv" in tune.
func (b *builder) router(c *component, name string, s *served, mode word, tune config) {
	all := slices.Concat(s.worker, s.prefill, s.decode)
	if len(all) == 0 {
		return
	}
	policy, ok := policies[strings.ReplaceAll(mode.text, "_", "-")]
	events := ""
	if mode.text == "kv" {
		if events = b.eventsPort(all); events != "" {
			policy, ok = "kv", true
		}
	}
	if !ok {
		policy = "least-loaded"
		b.lostWord(mode, c.path, "", "router mode %q: %q is used", mode.text, policy)
	}
	cfg := config{"policy": policy}
	if policy == "kv" && len(tune) > 0 {
		cfg["kv"] = tune
	}
	if b.add(c, name, "router", "", cfg) == nil {
		return
	}
	b.join(c, graph.End{Node: c.node}, graph.End{Node: name})
	port := func(p string, cs []*component) {
		for _, w := range cs {
			b.join(w, graph.End{Node: name, Port: p}, graph.End{Node: w.node})
		}
	}
	port("worker", s.worker)
	port("prefill", s.prefill)
	port("decode", s.decode)
	for _, p := range s.prefill {
		for _, d := range s.decode {
			b.join(p, graph.End{Node: p.node, Port: "kv"}, graph.End{Node: d.node, Port: "kv"})
		}
	}
	for _, e := range s.encode {
		for _, w := range slices.Concat(s.worker, s.prefill) {
			b.join(e, graph.End{Node: e.node}, graph.End{Node: w.node, Port: "media"})
			b.g.Edges[len(b.g.Edges)-1].Transport = "tcp" // pods may be on any machine
		}
	}
	if events == "" {
		return
	}
	for _, w := range slices.Concat(s.worker, s.prefill) {
		b.join(w, graph.End{Node: w.node, Port: "events"}, graph.End{Node: name, Port: events})
	}
}

// eventsPort returns the router's port for events of KV caches; "" where it has none, or a node tells none.
func (b *builder) eventsPort(nodes []*component) string {
	if slices.ContainsFunc(nodes, func(c *component) bool { return c.engine == "mock" || c.engine == "llamacpp" }) {
		return ""
	}
	k := b.o.Registry.Lookup("router")
	if k == nil {
		return ""
	}
	ps, err := k.Ports(json.RawMessage(`{}`))
	if err != nil {
		return ""
	}
	for _, p := range ps {
		if p.Dir == kind.In && p.Type == "events" {
			return p.Name
		}
	}
	return ""
}
