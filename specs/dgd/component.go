package dgd

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/dynamograph/dynamo/graph/diag"
)

// component is one component of a deployment, whichever version of the API it is written in.
type component struct {
	name, path string
	at         *yaml.Node
	node       string // what it is called in the graph

	typ, sub   string // "frontend", "worker", "planner", …; "prefill", "decode"
	replicas   *int
	replicasAt *yaml.Node
	model      string // modelRef
	revision   string
	image      string
	argv       []word
	env        map[string]word
	used       []string // names of variables that stand in options
	gpus       int      // of one pod
	gpusAt     *yaml.Node
	machines   int // pods that make one replica
	machinesAt *yaml.Node

	engine string // "vllm", …; "" where it has none
	module string // "dynamo.vllm": what is run
	flags  []flag
	places map[string]diag.Pos // of the fields of its node
	role   string              // "prefill", "decode", "worker", "encode", "frontend", "planner", or ""
}

// word is a text and its place.
type word struct {
	text string
	at   *yaml.Node
	line int // lines below at, in a text of several
}

// ofPods are fields that say how a component's pods are, and nothing of the graph.
var ofPods = "they concern pods, which a graph does not describe"

// component reads a component: s is its map, at where its name stands.
func (im *importer) component(name string, at, s *yaml.Node, path string) {
	c := &component{name: name, path: path, at: at, env: map[string]word{}, machines: 1, places: map[string]diag.Pos{}}
	for k, v := range im.env {
		c.env[k] = v
	}
	var pods []pair
	for _, p := range pairs(s) {
		v := p.value
		switch p.key.Value {
		case "name", "serviceName":
		case "componentType", "type":
			c.typ = strings.ToLower(text(v))
		case "subComponentType":
			c.sub = strings.ToLower(text(v))
		case "replicas":
			c.replicas, c.replicasAt = im.number(v, path+".replicas"), v
			c.places["replicas"] = im.at(v)
		case "modelRef":
			c.model, c.revision = text(get(v, "name")), text(get(v, "revision"))
		case "multinode":
			if n := im.number(get(v, "nodeCount"), path+".multinode.nodeCount"); n != nil && *n > 0 {
				c.machines, c.machinesAt = *n, get(v, "nodeCount")
			}
		case "resources":
			pods = append(pods, im.resources(c, v)...)
		case "envs", "env":
			im.readEnv(v, c.env)
		case "envFromSecret", "envFrom":
			im.lost(p.key, path+"."+p.key.Value, `a model that needs a token names it in its source: "hf:ORG/REPO/FILE#token=env:HF_TOKEN"`, "a graph takes no environment from Secrets")
		case "extraPodSpec":
			im.podSpec(c, v, path+".extraPodSpec", &pods)
		case "podTemplate":
			for _, q := range pairs(v) {
				if q.key.Value == "spec" {
					im.podSpec(c, q.value, path+".podTemplate.spec", &pods)
				} else {
					pods = append(pods, q)
				}
			}
		case "autoscaling", "scalingAdapter":
			im.lost(p.key, path+"."+p.key.Value, "a planner node scales others", "a graph has no word for it")
		case "dynamoNamespace", "globalDynamoNamespace":
			im.lost(v, path+"."+p.key.Value, "", "%q: a graph is a namespace of its own", text(v))
		default:
			pods = append(pods, p)
		}
	}
	im.grouped(pods, path, ofPods)
	im.argv(c)
	im.parts = append(im.parts, c)
}

// podSpec reads the main container of a pod.
func (im *importer) podSpec(c *component, spec *yaml.Node, path string, pods *[]pair) {
	for _, p := range pairs(spec) {
		switch p.key.Value {
		case "mainContainer":
			im.container(c, p.value, path+".mainContainer", pods)
		case "containers":
			for i, x := range items(p.value) {
				at := fmt.Sprintf("%s.containers[%d]", path, i)
				if n := text(get(x, "name")); n == "main" || n == "" && i == 0 {
					im.container(c, x, at, pods)
				} else {
					im.lost(get(x, "name"), at, "", "container %q: a node is one process", n)
				}
			}
		default:
			*pods = append(*pods, p)
		}
	}
}

func (im *importer) container(c *component, n *yaml.Node, path string, pods *[]pair) {
	var command, args []word
	for _, p := range pairs(n) {
		switch p.key.Value {
		case "name":
		case "image":
			c.image = text(p.value)
			*pods = append(*pods, p)
		case "command":
			command = words(p.value)
		case "args":
			args = words(p.value)
		case "env":
			im.readEnv(p.value, c.env)
		case "envFrom":
			im.lost(p.key, path+".envFrom", `a model that needs a token names it in its source: "hf:ORG/REPO/FILE#token=env:HF_TOKEN"`, "a graph takes no environment from Secrets")
		case "resources":
			*pods = append(*pods, im.resources(c, p.value)...)
		default:
			*pods = append(*pods, p)
		}
	}
	c.argv = append(command, args...)
}

// words reads a list of texts, or one.
func words(n *yaml.Node) (out []word) {
	if n != nil && n.Kind == yaml.ScalarNode {
		return []word{{text: text(n), at: n}}
	}
	for _, x := range items(n) {
		out = append(out, word{text: text(x), at: x})
	}
	return out
}

// resources reads the number of accelerators and returns the rest.
func (im *importer) resources(c *component, n *yaml.Node) (rest []pair) {
	for _, p := range pairs(n) {
		if p.key.Value != "limits" && p.key.Value != "requests" {
			rest = append(rest, p)
			continue
		}
		for _, q := range pairs(p.value) {
			switch q.key.Value {
			case "gpu", "nvidia.com/gpu", "amd.com/gpu":
				if v := im.number(q.value, c.path+"."+q.key.Value); v != nil {
					c.gpus, c.gpusAt = *v, q.value
				}
			default:
				rest = append(rest, q)
			}
		}
	}
	return rest
}

// readEnv reads variables; those from elsewhere, as Secrets, have no text.
func (im *importer) readEnv(n *yaml.Node, into map[string]word) {
	for _, x := range items(n) {
		name := text(get(x, "name"))
		if name == "" {
			continue
		}
		at := get(x, "value")
		if at == nil {
			at = get(x, "name")
		}
		into[name] = word{text: text(get(x, "value")), at: at}
	}
}

// number reads a whole number, which may be quoted.
func (im *importer) number(n *yaml.Node, path string) *int {
	if n == nil {
		return nil
	}
	v, err := strconv.Atoi(text(n))
	if err != nil || v < 0 {
		im.add("bad-type", n, path, "", "want a whole number, got %q", text(n))
		return nil
	}
	return &v
}

// flag is an option of a command line. Values is empty for one that is only there.
type flag struct {
	name   string // without hyphens in front, and with them for underscores
	values []string
	word
}

func (f flag) value() string { return strings.Join(f.values, " ") }

// modules say which program of Dynamo's runs, by the engine's name in a spec.
var modules = map[string]string{
	"dynamo.vllm": "vllm", "dynamo.sglang": "sglang", "dynamo.trtllm": "trtllm", "dynamo.mocker": "mock", "dynamo.llama_cpp": "llamacpp",
}

// argv finds the program and its options.
func (im *importer) argv(c *component) {
	argv := c.argv
	for i, w := range argv { // a shell's script is the last word that matters
		base := w.text[strings.LastIndexByte(w.text, '/')+1:]
		if i+2 < len(argv) && (base == "bash" || base == "sh") && strings.HasPrefix(argv[i+1].text, "-") && strings.HasSuffix(argv[i+1].text, "c") {
			args := argv[i+3:]
			if len(args) > 0 {
				args = args[1:] // the first is the shell's own name
			}
			var words []word
			for _, x := range split(argv[i+2]) {
				if x.text == "$@" {
					words = append(words, args...)
				} else {
					words = append(words, x)
				}
			}
			argv = words
			break
		}
	}
	start := -1
	for i, w := range argv {
		if w.text == "-m" && i+1 < len(argv) && strings.HasPrefix(argv[i+1].text, "dynamo.") {
			c.module, start = argv[i+1].text, i+2
		}
	}
	if start < 0 {
		start = slices.IndexFunc(argv, func(w word) bool { return strings.HasPrefix(w.text, "--") })
		if start < 0 {
			start = len(argv)
		}
	}
	argv = argv[start:]
	for i := 0; i < len(argv); i++ {
		w := argv[i]
		if w.text == ";" || w.text == "&&" || w.text == "||" || w.text == "|" || w.text == "&" {
			break // another command
		}
		if !strings.HasPrefix(w.text, "-") || len(w.text) < 2 {
			im.lost(w.at, c.path, "", "argument %q: it belongs to no option", w.text)
			continue
		}
		name, v, set := strings.Cut(strings.TrimLeft(w.text, "-"), "=")
		f := flag{name: strings.ReplaceAll(name, "_", "-"), word: w}
		if set {
			f.values = []string{v}
		}
		for !set && i+1 < len(argv) && !isOption(argv[i+1].text) {
			i++
			f.values = append(f.values, im.expand(c, argv[i].text))
		}
		c.flags = append(c.flags, f)
	}
	c.engine = modules[c.module]
	if c.engine == "" && c.module == "" {
		c.engine = im.engineOf(c)
	}
}

func isOption(s string) bool {
	if s == ";" || s == "&&" || s == "||" || s == "|" || s == "&" {
		return true
	}
	if len(s) < 2 || s[0] != '-' {
		return false
	}
	_, err := strconv.ParseFloat(s, 64)
	return err != nil
}

// expand puts variables of the component into a text that is nothing but one: "$MODEL", "${MODEL}", "$(MODEL)".
func (im *importer) expand(c *component, s string) string {
	name, ok := strings.CutPrefix(s, "$")
	if !ok {
		return s
	}
	name = strings.Trim(name, "{}()")
	if w, ok := c.env[name]; ok && w.text != "" {
		c.used = append(c.used, name)
		return w.text
	}
	return s
}

// engineOf tells the engine where no module is run: of the deployment, or by the image's name.
func (im *importer) engineOf(c *component) string {
	switch c.typ {
	case "worker", "prefill", "decode", "main":
	default:
		return ""
	}
	switch b := im.backend; b {
	case "vllm", "sglang", "trtllm":
		return b
	}
	for sub, e := range map[string]string{"vllm": "vllm", "sglang": "sglang", "tensorrtllm": "trtllm", "trtllm": "trtllm"} {
		if strings.Contains(c.image, sub) {
			return e
		}
	}
	return ""
}

// take removes the flags of some names and returns the last of them.
func (c *component) take(names ...string) (flag, bool) {
	var found flag
	ok := false
	c.flags = slices.DeleteFunc(c.flags, func(f flag) bool {
		if slices.Contains(names, f.name) {
			found, ok = f, true
			return true
		}
		return false
	})
	return found, ok
}

// split cuts a shell's script into words: quotes, escapes and line continuations as in sh; operators are words of their own. Variables set
// in front of the command stay words.
func split(script word) []word {
	var out []word
	var b strings.Builder
	line, in := 0, false
	flush := func(at int) {
		if in {
			out = append(out, word{text: b.String(), at: script.at, line: at})
		}
		b.Reset()
		in = false
	}
	s := script.text
	for i := 0; i < len(s); i++ {
		switch ch := s[i]; {
		case ch == '\\' && i+1 < len(s):
			i++
			if s[i] == '\n' {
				flush(line)
				line++
				continue
			}
			b.WriteByte(s[i])
			in = true
		case ch == '\'' || ch == '"':
			in = true
			for i++; i < len(s) && s[i] != ch; i++ {
				if ch == '"' && s[i] == '\\' && i+1 < len(s) {
					i++
				}
				if s[i] == '\n' {
					line++
				}
				b.WriteByte(s[i])
			}
		case ch == '\n':
			if in || len(out) > 0 && out[len(out)-1].text != ";" {
				flush(line)
				out = append(out, word{text: ";", at: script.at, line: line})
			}
			line++
		case ch == ' ' || ch == '\t' || ch == '\r':
			flush(line)
		case ch == '#' && !in:
			for i+1 < len(s) && s[i+1] != '\n' {
				i++
			}
		case ch == ';' || ch == '|' || ch == '&':
			flush(line)
			op := string(ch)
			if i+1 < len(s) && s[i+1] == ch {
				op += op
				i++
			}
			out = append(out, word{text: op, at: script.at, line: line})
		default:
			in = true
			b.WriteByte(ch)
		}
	}
	flush(line)
	return out
}

// typed reads an option's value as JSON would have it: a number, true or false, or a text.
func typed(s string) any {
	if s == "" {
		return s
	}
	if strings.EqualFold(s, "true") || strings.EqualFold(s, "false") {
		return strings.EqualFold(s, "true")
	}
	if d := json.NewDecoder(strings.NewReader(s)); s[0] == '-' || s[0] >= '0' && s[0] <= '9' {
		d.UseNumber()
		var n json.Number
		if d.Decode(&n) == nil && !d.More() && n.String() == s {
			return n
		}
	}
	return s
}
