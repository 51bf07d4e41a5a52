package check

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/dynamograph/dynamo/graph/diag"
	"github.com/dynamograph/dynamo/nodes/engine"
	"github.com/dynamograph/dynamo/nodes/engine/table"
)

// connectors are the names of a graph as the engines' registries have them; any of them will do. What is not here is the same for both.
var connectors = map[string]map[string][]string{
	"vllm": {
		"nixl": {"NixlConnector"}, "mooncake": {"MooncakeConnector", "MooncakeStoreConnector"}, "lmcache": {"LMCacheConnectorV1", "LMCacheConnector"},
		"p2p-nccl": {"P2pNcclConnector"}, "moriio": {"MoRIIOConnector"}, "shm": {"SharedStorageConnector", "ExampleConnector"},
	},
	"sglang": {"moriio": {"mori"}},
}

// caches are types of the KV cache that a release may lack, as its flag has them. Others go by the model's own type, or are not known.
var caches = map[string]map[string]string{
	"vllm":     {"fp8": "fp8", "fp8_e4m3": "fp8_e4m3", "fp8_e5m2": "fp8_e5m2", "nvfp4": "nvfp4"},
	"sglang":   {"fp8_e4m3": "fp8_e4m3", "fp8_e5m2": "fp8_e5m2", "nvfp4": "nvfp4"},
	"llamacpp": {"fp8": "fp8", "fp8_e4m3": "fp8_e4m3", "fp8_e5m2": "fp8_e5m2", "nvfp4": "nvfp4", "bf16": "bf16", "f16": "f16", "f32": "f32"},
}

var cacheFlag = map[string]string{"vllm": "kv-cache-dtype", "sglang": "kv-cache-dtype", "llamacpp": "cache-type-k"}

// kv finds a connector and a type of the cache that the release does not have.
func (k *checker) kv() {
	if k.unchecked() {
		return
	}
	if c := k.c.KV.Connector; c != "" && k.c.Engine != "llamacpp" {
		names := connectors[k.c.Engine][c]
		if names == nil {
			names = []string{c}
		}
		if !slices.ContainsFunc(names, func(n string) bool { return k.release.Has(table.Connectors, n) }) {
			d := k.add(k.severity(), "unsupported-feature", "kv.connector", k.connector(names), "%s", k.lacks("connector %q", c))
			d.Notes = []string{"it has " + strings.Join(k.release.Names(table.Connectors), ", ")}
			d.Related = k.node("version", "the version is %s", k.c.Version)
		}
	}
	if t, ok := caches[k.c.Engine][k.c.KV.DType]; ok {
		k.takes("kv.dtype", cacheFlag[k.c.Engine], t, fmt.Sprintf("KV cache of type %q", t))
	}
	if k.c.Engine == "vllm" {
		if n := k.c.KV.Block; n > 0 {
			k.takes("kv.block", "block-size", strconv.Itoa(n), fmt.Sprintf("KV block of %d tokens", n))
		}
		if h := k.c.KV.Hash; h != "" {
			k.takes("kv.hash", "prefix-caching-hash-algo", h, fmt.Sprintf("hash scheme %q", h))
		}
	}
	if k.c.Engine == "vllm" {
		k.transfer()
	}
}

// takes finds a field with a value that the release's flag for it does not take.
func (k *checker) takes(field, flag, value, what string) {
	f, _, ok := k.release.Flag(flag)
	if !k.known || !ok || len(f.Choices) == 0 || slices.Contains(f.Choices, value) {
		return
	}
	hint := k.taking(flag, value)
	if hint == "" {
		hint = "use one that it has"
	}
	d := k.add(diag.Error, "unsupported-feature", field, hint, "%s", k.lacks("%s", what))
	d.Notes = []string{"it has " + strings.Join(f.Choices, ", ")}
	d.Related = k.node("version", "the version is %s", k.c.Version)
}

func (k *checker) connector(names []string) string {
	for _, n := range names {
		if have := k.engine.With(table.Connectors, n); len(have) > 0 {
			return since(k.engine, have)
		}
	}
	return "use one that it has"
}

// transfer finds a class in vLLM's kv-transfer-config that the release does not have. A module of the author's own may hold any.
func (k *checker) transfer() {
	v, name, ok := k.flag("kv-transfer-config")
	t, _, err := engine.TransferOf(k.c.Flags)
	if !ok || err != nil || t.Connector == "" || strings.Contains(shownPlain(v), "kv_connector_module_path") {
		return // no flag, or nothing that can be read of it, which is found elsewhere
	}
	if k.release.Has(table.Connectors, t.Connector) {
		return
	}
	hint := k.connector([]string{t.Connector})
	if have := k.engine.With(table.Connectors, t.Connector); len(have) == 0 {
		hint = diag.Suggest(t.Connector, k.release.Names(table.Connectors))
	}
	d := k.add(k.severity(), "bad-flag", "flags."+name, hint, "%s", k.lacks("connector %q", t.Connector))
	d.Notes = []string{fmt.Sprintf("it has %s", strings.Join(k.release.Names(table.Connectors), ", "))}
	d.Related = k.node("version", "the version is %s", k.c.Version)
}
