package dgd

import (
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/dynamograph/dynamo/graph"
	"github.com/dynamograph/dynamo/graph/diag"
)

// fieldOf maps options of engines to fields of a node, by the engine's name in a spec. What is in none of the lists here goes into the
// node's flags.
var fieldOf = map[string]map[string]string{
	"vllm": {
		"tensor-parallel-size": "tp", "tp": "tp", "pipeline-parallel-size": "pp", "pp": "pp", "data-parallel-size": "dp", "dp": "dp",
		"dtype": "dtype", "block-size": "kv.block", "kv-cache-dtype": "kv.dtype", "prefix-caching-hash-algo": "kv.hash",
		"max-num-seqs": "batch.seqs", "max-num-batched-tokens": "batch.tokens",
	},
	"sglang": {
		"tensor-parallel-size": "tp", "tp-size": "tp", "tp": "tp", "pipeline-parallel-size": "pp", "pp-size": "pp", "pp": "pp",
		"data-parallel-size": "dp", "dp-size": "dp", "dp": "dp", "dtype": "dtype", "page-size": "kv.block", "kv-cache-dtype": "kv.dtype",
		"max-total-tokens": "kv.tokens", "disaggregation-transfer-backend": "kv.connector",
		"max-running-requests": "batch.seqs", "chunked-prefill-size": "batch.tokens",
	},
	"trtllm": {
		"tp-size": "tp", "tensor-parallel-size": "tp", "pp-size": "pp", "pipeline-parallel-size": "pp", "kv-block-size": "kv.block",
		"max-batch-size": "batch.seqs", "max-num-tokens": "batch.tokens", "kv-cache-config.tokens-per-block": "kv.block",
		"kv-cache-config.dtype": "kv.dtype", "kv-cache-config.max-tokens": "kv.tokens",
	},
	"llamacpp": {"ctx-size": "kv.tokens", "parallel": "batch.seqs", "batch-size": "batch.tokens"},
	"mock":     {"block-size": "kv.block", "max-num-seqs": "batch.seqs", "max-num-batched-tokens": "batch.tokens"},
}

// lengthOf names the option for the longest sequence.
var lengthOf = map[string]string{"vllm": "max-model-len", "sglang": "context-length", "trtllm": "max-seq-len"}

// The ways out that several options share.
const (
	byStore  = "processes of a graph find each other by its store"
	byEdges  = "edges from the node's events and load say who takes them"
	oneNode  = "a replica that spans machines is one node"
	byScript = "mock.ttft, mock.perPrompt and mock.itl script the mock engine's times"
)

// ofRuntime are options that a node's flags do not take: those of Dynamo's own programs, and those by which the processes of an engine find
// each other. The text is a way out.
var ofRuntime = map[string]string{
	"endpoint": byStore, "namespace": byStore, "discovery-backend": byStore, "store-kv": byStore, "request-plane": byStore,
	"event-plane": byStore, "host": byStore, "port": byStore, "disaggregation-bootstrap-port": byStore,
	"kv-events-config": byEdges, "publish-events-and-metrics": byEdges, "durable-kv-events": byEdges,
	"node-rank": oneNode, "nnodes": oneNode, "dist-init-addr": oneNode, "master-addr": oneNode, "headless": oneNode,
	"data-parallel-hybrid-lb": oneNode, "data-parallel-address": oneNode, "data-parallel-rpc-port": oneNode,
	"data-parallel-size-local": oneNode, "data-parallel-start-rank": oneNode,
	"planner-profile-data": byScript, "speedup-ratio": byScript,
	"migration-limit":         "write a migrate node above the router and set its limit",
	"custom-jinja-template":   "the model's own template is taken",
	"disaggregation-strategy": "kv.handOff says how prefill meets decode",
	"use-vllm-tokenizer":      "", "use-sglang-tokenizer": "", "route-to-encoder": "", "multimodal-worker": "", "enable-multimodal": "",
	"modality": "", "encode-endpoint": "", "model-express-url": "", "connector": "",
}

// dtypes are the types that a field has a word for, by the engines' names.
var dtypes = map[string]string{
	"auto": "auto", "bfloat16": "bf16", "bf16": "bf16", "float16": "f16", "half": "f16", "fp16": "f16", "float32": "f32", "float": "f32", "fp32": "f32",
	"fp8": "fp8",
}

var kvDtypes = map[string]string{
	"auto": "auto", "bfloat16": "bf16", "bf16": "bf16", "float16": "f16", "fp16": "f16", "half": "f16", "fp8": "fp8", "fp8_e4m3": "fp8_e4m3",
	"fp8_e5m2": "fp8_e5m2", "int8": "int8", "nvfp4": "nvfp4",
}

// connectors are the names that vLLM's classes go by in a spec.
var connectors = map[string]string{
	"NixlConnector": "nixl", "MooncakeConnector": "mooncake", "LMCacheConnectorV1": "lmcache", "LMCacheConnector": "lmcache",
	"P2pNcclConnector": "p2p-nccl", "MoRIIOConnector": "moriio", "nixl": "nixl", "mooncake": "mooncake", "lmcache": "lmcache", "ascend": "ascend",
}

// config is a node's config on its way.
type config map[string]any

// set sets a field by its path of at most two names; it reports false where it is set to something else already.
func (c config) set(field string, v any) bool {
	m := c
	if a, b, ok := strings.Cut(field, "."); ok {
		sub, _ := c[a].(config)
		if sub == nil {
			sub = config{}
			c[a] = sub
		}
		m, field = sub, b
	}
	if old, ok := m[field]; ok && old != v {
		return false
	}
	m[field] = v
	return true
}

// engineConfig makes the config of a node that computes. The options that say more than a field have been taken before.
func (im *importer) engineConfig(c *component) config {
	out := config{"engine": c.engine}
	flags := config{}
	var runtime []flag
	for _, f := range c.flags {
		field := fieldOf[c.engine][f.name]
		if c.role == "encode" && field != "dtype" && field != "batch.seqs" {
			field = ""
		}
		if field != "" && im.setField(c, out, field, f) {
			continue
		}
		_, ours := ofRuntime[f.name]
		switch {
		case ours && field == "" || strings.HasPrefix(f.name, "dyn-") || c.engine == "mock":
			runtime = append(runtime, f)
		case len(f.values) == 0:
			flags[f.name] = true
			c.places["flags."+f.name], _ = im.wordAt(f.word)
		case len(f.values) == 1 || f.name == "served-model-name":
			flags[f.name] = typed(f.values[0])
			c.places["flags."+f.name], _ = im.wordAt(f.word)
		default:
			im.lostWord(f.word, c.path, "", "option --%s %s: a flag of a node has one value", f.name, f.value())
		}
	}
	for _, f := range runtime {
		im.lostWord(f.word, c.path, ofRuntime[f.name], "option --%s: a graph has no field for it", f.name)
	}
	if len(flags) > 0 {
		out["flags"] = flags
	}
	im.offload(c, out)
	return out
}

// setField sets a field by an option; false says that the field cannot hold it.
func (im *importer) setField(c *component, out config, field string, f flag) bool {
	var v any = f.value()
	switch field {
	case "dtype", "kv.dtype", "kv.connector":
		words := map[string]map[string]string{"dtype": dtypes, "kv.dtype": kvDtypes, "kv.connector": connectors}[field]
		w, ok := words[f.value()]
		if !ok {
			return false
		}
		v = w
	case "kv.hash":
	default:
		n, err := strconv.Atoi(f.value())
		if err != nil || n <= 0 {
			return false
		}
		if field == "kv.block" && c.engine == "mock" && n != 16 {
			im.lostWord(f.word, c.path, "", "option --%s %d: blocks of the mock engine have 16 tokens", f.name, n)
			return true
		}
		v = n
	}
	c.places[field], _ = im.wordAt(f.word)
	if !out.set(field, v) {
		im.lostWord(f.word, c.path, "", "option --%s %s: %s is set to another value already", f.name, f.value(), field)
	}
	return true
}

// engineFile reads options that lie in a file, where a ConfigMap beside the deployment has it.
func (im *importer) engineFile(c *component) {
	inline, ok := c.take("override-engine-args")
	if ok {
		var n yaml.Node
		if err := yaml.Unmarshal([]byte(inline.value()), &n); err != nil || len(n.Content) == 0 {
			im.lostWord(inline.word, c.path, "", "option --%s: it is not JSON", inline.name)
		} else {
			c.flatten("", n.Content[0], inline.word, 6)
		}
	}
	f, ok := c.take("extra-engine-args", "config")
	if !ok {
		return
	}
	doc := im.configs[path.Base(f.value())]
	if doc == nil {
		im.lostWord(f.word, c.path, "put the ConfigMap with it into the file", "option --%s %s: the file is not here, so what it says is not in the graph", f.name, f.value())
		return
	}
	var n yaml.Node
	if err := yaml.Unmarshal([]byte(text(doc)), &n); err != nil || len(n.Content) == 0 {
		im.lost(doc, c.path, "", "%s: it is not YAML", path.Base(f.value()))
		return
	}
	c.flatten("", n.Content[0], word{at: doc}, 6)
}

// flatten adds options of nested maps: kv_cache_config: {dtype: fp8} is kv-cache-config.dtype. What the command line says counts more.
func (c *component) flatten(prefix string, n *yaml.Node, at word, depth int) {
	for _, p := range pairs(n) {
		name := prefix + strings.ReplaceAll(p.key.Value, "_", "-")
		switch {
		case p.value.Kind == yaml.MappingNode && depth > 0:
			c.flatten(name+".", p.value, at, depth-1)
		case p.value.Kind == yaml.ScalarNode && p.value.Tag != "!!null" && !slices.ContainsFunc(c.flags, func(f flag) bool { return f.name == name }):
			w := at
			w.line = p.key.Line - 1
			c.flags = append(c.flags, flag{name: name, values: []string{p.value.Value}, word: w})
		case p.value.Kind == yaml.SequenceNode:
			var all []string
			for _, x := range items(p.value) {
				all = append(all, text(x))
			}
			c.flags = append(c.flags, flag{name: name, values: []string{"[" + strings.Join(all, ", ") + "]"}, word: at})
		}
	}
}

// offload reads where KV blocks go for which the device has no room, and the connector that moves blocks.
func (im *importer) offload(c *component, out config) {
	if c.engine == "mock" || c.engine == "llamacpp" || c.role == "encode" {
		return
	}
	for _, v := range []struct{ name, field string }{{"DYN_KVBM_CPU_CACHE_GB", "kv.offload"}, {"DYN_KVBM_DISK_CACHE_GB", "kv.disk"}} {
		w, ok := c.env[v.name]
		if !ok {
			continue
		}
		gb, err := strconv.ParseFloat(w.text, 64)
		if err != nil || gb < 0 || gb > 1e9 {
			im.lostWord(w, c.path, "", "variable %s: want a number, got %q", v.name, w.text)
			continue
		}
		delete(c.env, v.name)
		if gb > 0 {
			out.set(v.field, graph.FormatSize(int64(gb*1e9)>>20<<20))
		}
	}
	if f, ok := take(out, "hicache-size"); ok && c.engine == "sglang" {
		if gb, err := strconv.ParseFloat(fmt.Sprint(f), 64); err == nil && gb > 0 {
			out.set("kv.offload", graph.FormatSize(int64(gb*1e9)>>20<<20))
		}
	}
}

// take removes an engine's flag.
func take(out config, name string) (any, bool) {
	flags, _ := out["flags"].(config)
	v, ok := flags[name]
	if ok {
		delete(flags, name)
	}
	return v, ok
}

// connector reads what moves KV blocks between vLLM's processes. KVBM keeps blocks in host memory: that is kv.offload.
func (im *importer) connector(c *component) (name string) {
	if f, ok := c.take("connector"); ok {
		for _, v := range f.values {
			switch {
			case connectors[v] != "":
				name = connectors[v]
			case v == "kvbm":
				im.kvbm(c, f.word, "option --connector kvbm")
			case v != "none" && v != "null":
				im.lostWord(f.word, c.path, "", "option --connector %s: it is not known", v)
			}
		}
	}
	i := slices.IndexFunc(c.flags, func(f flag) bool { return f.name == "kv-transfer-config" })
	if i < 0 {
		return name
	}
	f := c.flags[i]
	var t transfer
	if err := json.Unmarshal([]byte(f.value()), &t); err != nil {
		im.lostWord(f.word, c.path, "", "option --kv-transfer-config: it is not JSON: %v", err)
		c.take("kv-transfer-config")
		return name
	}
	if n := connectors[t.Connector]; n != "" && n != "lmcache" {
		return name // the node's flag says it
	}
	c.take("kv-transfer-config")
	for _, n := range t.all(4) {
		switch {
		case connectors[n] != "":
			name = connectors[n]
		case n == "DynamoConnector":
			im.kvbm(c, f.word, "connector DynamoConnector")
		case n != "PdConnector" && n != "MultiConnector":
			im.lostWord(f.word, c.path, "", "connector %s: it is not known", n)
		}
	}
	return name
}

// transfer is vLLM's kv-transfer-config.
type transfer struct {
	Connector string `json:"kv_connector"`
	Extra     struct {
		Connectors []transfer `json:"connectors"`
	} `json:"kv_connector_extra_config"`
}

func (t transfer) all(depth int) []string {
	out := []string{t.Connector}
	for _, x := range t.Extra.Connectors {
		if depth > 0 {
			out = append(out, x.all(depth-1)...)
		}
	}
	return out
}

// kvbm says that blocks are kept in host memory and not how much, where no variable says it.
func (im *importer) kvbm(c *component, w word, what string) {
	if _, ok := c.env["DYN_KVBM_CPU_CACHE_GB"]; !ok {
		im.lostWord(w, c.path, "set kv.offload", "%s: no variable DYN_KVBM_CPU_CACHE_GB says how much host memory keeps blocks", what)
	}
}

// restShared tells the same of those that all components have, where none of them read it.
func (im *importer) restShared() {
	var names []string
	for _, n := range slices.Sorted(maps.Keys(im.env)) {
		used := func(c *component) bool { return slices.Contains(c.used, n) }
		if n != "DYN_ROUTER_MODE" && n != "DYN_HTTP_PORT" && !slices.ContainsFunc(im.parts, used) {
			names = append(names, n)
		}
	}
	if len(names) > 0 {
		im.lostEnv(im.env, names, "spec")
	}
}

// secretVariable is how a variable is called that may hold a secret.
var secretVariable = regexp.MustCompile(`(?i)(TOKEN|KEY|SECRET|PASSWORD)$`)

// lostEnv tells that variables are not in the graph: those that may hold a secret one by one, so that no writer shows it.
func (im *importer) lostEnv(env map[string]word, names []string, path string) {
	tell := func(names ...string) {
		im.lostWord(env[names[0]], path, "", "variables %s: a graph has no field for the environment of a process", strings.Join(names, ", "))
	}
	var plain []string
	for _, n := range names {
		if !secretVariable.MatchString(n) {
			plain = append(plain, n)
			continue
		}
		tell(n)
		im.list[len(im.list)-1].Secret = env[n].text
	}
	if len(plain) > 0 {
		tell(plain...)
	}
}

// restEnv tells the variables that a graph has no field for.
func (im *importer) restEnv(c *component) {
	var names []string
	for _, n := range slices.Sorted(maps.Keys(c.env)) {
		if _, shared := im.env[n]; shared || n == "DYN_ROUTER_MODE" || n == "DYN_HTTP_PORT" || slices.Contains(c.used, n) {
			continue
		}
		names = append(names, n)
	}
	if len(names) > 0 {
		im.lostEnv(c.env, names, c.path)
	}
}

// lostWord is lost at a word.
func (im *importer) lostWord(w word, path, hint, format string, args ...any) {
	im.lost(w.at, path, hint, format, args...)
	d := &im.list[len(im.list)-1]
	if p, n := im.wordAt(w); n > 0 || p.Line != d.Pos.Line {
		d.Pos, d.Len = p, n
	}
}

// wordAt is the place of a word, also inside of a text of several lines, and its length where that is known.
func (im *importer) wordAt(w word) (p diag.Pos, n int) {
	p = im.at(w.at)
	if w.at == nil || w.at.Style&yaml.LiteralStyle == 0 || p.Line+w.line >= len(im.lines) {
		return p, 0
	}
	p.Line += 1 + w.line
	line := im.lines[p.Line-1]
	if i := strings.Index(line, w.text); i >= 0 && w.text != "" {
		p.Col = i + 1
		return p, len(w.text)
	}
	p.Col = 1 + len(line) - len(strings.TrimLeft(line, " "))
	return p, 0
}
