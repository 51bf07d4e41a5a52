package serve

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/dynamograph/dynamo/graph/kind"
	"github.com/dynamograph/dynamo/nodes/engine"
)

// BlockTokens is the size of a KV block of the engines of ours.
const BlockTokens = 16

// Contract is what a node says about the edges at its data ports. What is not known is not said, but where it has a field the compiler
// fills it from the other end.
func Contract(c engine.Config, port string) []kind.Term {
	r, from, _ := c.Resolve()
	at := func(field string) string {
		if f := from[field]; f != "" {
			return f
		}
		return field
	}
	var terms []kind.Term
	say := func(rule kind.Rule, name, field string, values ...string) {
		if slices.Contains(values, "") {
			if slices.Contains([]string{"vllm", "sglang", "trtllm"}, r.Engine) { // it has the field: what the other end says fills it
				terms = append(terms, kind.Term{Name: name, Field: field, Rule: rule})
			}
			return
		}
		if len(values) > 0 {
			terms = append(terms, kind.Term{Name: name, Field: at(field), Values: values, Rule: rule})
		}
	}
	switch port {
	case "kv", "offload":
		say(kind.Same, "engine", "engine", r.Engine)
		say(kind.Same, "block size", "kv.block", blockTokens(r))
		say(kind.Meet, "KV dtype", "kv.dtype", kvTypes(r)...)
		say(kind.Same, "KV layout", "kv.layout", r.KV.Layout)
		say(kind.Same, "hash scheme", "kv.hash", r.KV.Hash)
		seed := ""
		if r.KV.Seed != nil {
			seed = strconv.FormatUint(*r.KV.Seed, 10)
		}
		say(kind.Same, "hash seed", "kv.seed", seed)
		say(kind.Same, "numerics", "numerics", r.Numerics)
	case "events":
		say(kind.Same, "block size", "kv.block", blockTokens(r))
		return terms
	default:
		return nil
	}
	if port == "offload" {
		return terms
	}
	say(kind.Divides, "tensor parallelism", "tp", strconv.Itoa(max(r.TP, 1)))
	say(kind.Meet, kind.Transport, "kv.transports", transports(r)...)
	say(kind.Same, "connector", "kv.connector", connector(r))
	if v := release(r); v != "" {
		say(kind.Same, "release", "version", v)
	}
	field := "kv.handOff"
	if r.Engine == "mock" {
		field = "mock.handOff"
	}
	var modes []string
	for _, m := range r.HandOffs() {
		modes = append(modes, string(m))
	}
	say(kind.Meet, "hand-off mode", field, modes...)
	return terms
}

// release is the version that the other end must have, too: vLLM's NIXL connector compares them, unless it is told not to; "" where nobody
// does.
func release(c engine.Config) string {
	if c.Engine != "vllm" || connector(c) != "nixl" {
		return ""
	}
	for name, v := range c.Flags {
		if strings.HasPrefix(engine.Flag(name), "kv-transfer-config") && strings.Contains(fmt.Sprint(name, v), "enforce_handshake_compat") {
			return ""
		}
	}
	return strings.TrimPrefix(c.Version, "v")
}

func blockTokens(c engine.Config) string {
	switch {
	case !engine.IsForeign(c.Engine):
		return strconv.Itoa(BlockTokens)
	case c.KV.Block > 0:
		return strconv.Itoa(c.KV.Block)
	}
	return "" // it depends on the engine's release, its kernels and the device
}

// kvTypes returns the types that the elements of the cache may have, as far as that is known.
func kvTypes(c engine.Config) []string {
	t := c.KV.DType
	if t == "" || t == "auto" {
		t = c.DType
	}
	switch {
	case c.Engine == "native":
		return []string{"f16"}
	case c.Engine == "mock" || c.Engine == "llamacpp":
		return nil
	case c.KV.DType == "fp8":
		return []string{"fp8", "fp8_e4m3"}
	case c.KV.DType != "" && c.KV.DType != "auto":
		return []string{engine.TypeName(c.KV.DType)}
	case t == "" || t == "auto" || t == "fp8": // the model's own, which is never narrower
		return []string{"bf16", "f16", "f32", "auto"}
	}
	return []string{engine.TypeName(t)}
}

// transports returns what moves blocks between two nodes: of engines of ours what they have, of others what the author says, or else all
// that their connectors are made for.
func transports(c engine.Config) []string {
	switch {
	case !engine.IsForeign(c.Engine):
		return []string{"shm", "tcp"}
	case len(c.KV.Transports) > 0:
		return c.KV.Transports
	case c.Engine == "llamacpp":
		return nil // it has no connector
	}
	switch connector(c) {
	case "shm":
		return []string{"shm"}
	case "mooncake":
		return []string{"rdma", "nvlink", "tcp"}
	}
	return []string{"rdma", "nvlink", "ipc", "shm", "tcp"}
}

func connector(c engine.Config) string {
	switch {
	case c.KV.Connector != "":
		return c.KV.Connector
	case c.Engine == "vllm":
		return "nixl"
	case c.Engine == "sglang":
		return "mooncake"
	}
	return ""
}

// Lacks says which engines this build does not run.
func Lacks(c engine.Config) []kind.Lack {
	if engine.IsForeign(c.Engine) {
		return []kind.Lack{{Field: "engine", Msg: fmt.Sprintf(`engine %q is not run yet: use "native" or "mock"`, c.Engine)}}
	}
	return nil
}

// Limits are the bounds that an engine puts on requests. What a foreign engine's own would be is not said.
func Limits(c engine.Config) []kind.Limit {
	r, from, _ := c.Resolve()
	l := []kind.Limit{{Bound: kind.Wait, Field: "batch.queue", Value: int64(r.Batch.Queue)}}
	if n := r.Batch.Seqs; n > 0 {
		field := "batch.seqs"
		if f := from[field]; f != "" {
			field = f
		}
		l = append(l, kind.Limit{Bound: kind.Run, Field: field, Value: int64(n)})
	}
	if r.Engine == "mock" && r.Mock != nil { // what it invents it may also delay
		for _, f := range []struct {
			bound    kind.Bound
			field, d string
		}{{kind.First, "mock.ttft", r.Mock.TTFT}, {kind.Step, "mock.itl", r.Mock.ITL}} {
			if d, err := time.ParseDuration(f.d); err == nil && d > 0 {
				l = append(l, kind.Limit{Bound: f.bound, Field: f.field, Value: int64(d)})
			}
		}
	}
	return l
}
