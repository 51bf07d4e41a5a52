package serve_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/dynamograph/dynamo/graph"
	"github.com/dynamograph/dynamo/graph/diag"
	"github.com/dynamograph/dynamo/graph/kind"
	"github.com/dynamograph/dynamo/nodes/engine"
	_ "github.com/dynamograph/dynamo/nodes/engine/native"
	"github.com/dynamograph/dynamo/nodes/engine/serve"
)

func config(t *testing.T, raw string) engine.Config {
	t.Helper()
	c := engine.DefaultConfig()
	if err := json.Unmarshal([]byte(raw), &c); err != nil {
		t.Fatalf("%s: %v", raw, err)
	}
	return c
}

// The two ends of a kv edge, and which terms do not fit.
func TestContract(t *testing.T) {
	for _, tt := range []struct{ a, b, want string }{
		{`{}`, `{}`, ""},
		{`{}`, `{"engine":"mock"}`, "engine"},
		{`{"engine":"vllm"}`, `{"engine":"vllm"}`, ""},
		{`{"engine":"vllm"}`, `{"engine":"sglang"}`, "engine, connector, hand-off mode"},
		{`{"engine":"vllm","kv":{"block":16}}`, `{"engine":"vllm","kv":{"block":32}}`, "block size"},
		{`{"engine":"vllm","kv":{"block":16}}`, `{"engine":"vllm"}`, ""}, // the other's depends on its kernels
		{`{"engine":"vllm","kv":{"block":64}}`, `{"engine":"vllm","flags":{"block-size":"32"}}`, "block size"},
		{`{"engine":"vllm","kv":{"block":64}}`, `{"engine":"vllm","flags":{"block_size":64}}`, ""},
		{`{"engine":"vllm","kv":{"dtype":"fp8"}}`, `{"engine":"vllm"}`, "KV dtype"},
		{`{"engine":"vllm","kv":{"dtype":"fp8"}}`, `{"engine":"vllm","flags":{"kv-cache-dtype":"fp8_e4m3"}}`, ""},
		{`{"engine":"vllm","kv":{"dtype":"fp8_e4m3"}}`, `{"engine":"vllm","kv":{"dtype":"fp8_e5m2"}}`, "KV dtype"},
		{`{"engine":"vllm","kv":{"dtype":"bf16"}}`, `{"engine":"vllm"}`, ""}, // likely the model's own
		{`{"engine":"vllm","dtype":"f16"}`, `{"engine":"vllm","flags":{"dtype":"bfloat16"}}`, "KV dtype"},
		{`{"engine":"vllm","dtype":"f16"}`, `{"engine":"vllm","flags":{"dtype":"half"}}`, ""},
		{`{"engine":"vllm","kv":{"layout":"NHD"}}`, `{"engine":"vllm","kv":{"layout":"HND"}}`, "KV layout"},
		{`{"engine":"vllm","kv":{"hash":"sha256"}}`, `{"engine":"vllm","flags":{"prefix-caching-hash-algo":"sha256_cbor"}}`, "hash scheme"},
		{`{"engine":"vllm","kv":{"seed":0}}`, `{"engine":"vllm","kv":{"seed":42}}`, "hash seed"},
		{`{"engine":"vllm","numerics":"fa2"}`, `{"engine":"vllm","numerics":"fa3"}`, "numerics"},
		{`{"engine":"vllm","tp":2}`, `{"engine":"vllm","tp":4}`, ""},
		{`{"engine":"vllm","tp":3}`, `{"engine":"vllm","flags":{"tensor-parallel-size":4}}`, "tensor parallelism"},
		{`{"engine":"vllm","kv":{"transports":["rdma","tcp"]}}`, `{"engine":"vllm","kv":{"transports":["tcp"]}}`, ""},
		{`{"engine":"vllm","kv":{"transports":["rdma"]}}`, `{"engine":"vllm","kv":{"transports":["tcp"]}}`, "transport"},
		{`{"engine":"vllm","kv":{"transports":["rdma"]}}`, `{"engine":"vllm"}`, ""},
		{`{"engine":"vllm","kv":{"connector":"shm"}}`, `{"engine":"vllm","kv":{"connector":"shm","transports":["tcp"]}}`, "transport"},
		{`{"engine":"vllm","kv":{"connector":"lmcache"}}`, `{"engine":"vllm"}`, "connector"}, // nixl
		{`{"engine":"vllm","flags":{"kv-transfer-config":"{\"kv_connector\":\"MooncakeConnector\"}"}}`, `{"engine":"vllm"}`, "connector"},
		{`{"engine":"sglang"}`, `{"engine":"sglang","flags":{"disaggregation-transfer-backend":"nixl"}}`, "connector"},
		{`{"engine":"vllm","kv":{"handOff":"beside"}}`, `{"engine":"vllm"}`, "hand-off mode"},
		{`{"engine":"mock","mock":{"handOff":"beside"}}`, `{"engine":"mock"}`, ""},
		{`{"engine":"mock","mock":{"handOff":"beside"}}`, `{"engine":"mock","mock":{"handOff":"after"}}`, "hand-off mode"},
	} {
		theirs := serve.Contract(config(t, tt.b), "kv")
		var bad []string
		for _, x := range serve.Contract(config(t, tt.a), "kv") {
			if i := slices.IndexFunc(theirs, func(y kind.Term) bool { return y.Name == x.Name }); i >= 0 && (!x.Fits(theirs[i]) || !theirs[i].Fits(x)) {
				bad = append(bad, x.Name)
			}
		}
		if got := strings.Join(bad, ", "); got != tt.want {
			t.Errorf("%s and %s: %q do not fit, want %q", tt.a, tt.b, got, tt.want)
		}
	}
	if got := serve.Contract(config(t, `{"engine":"vllm","flags":{"block-size":32}}`), "kv")[1]; got.Field != "flags.block-size" {
		t.Errorf("%+v: it does not say where it is written", got)
	}
	if got := serve.Contract(config(t, `{}`), "load"); got != nil {
		t.Errorf("port load says %v", got)
	}
}

// Every field has an effect with some engine; with the others it is refused.
func TestNoEffect(t *testing.T) {
	values := map[string]string{
		"version": `"0.11.0"`, "flags.seed": `1`, "device": `"h100"`, "tp": `2`, "pp": `2`, "dp": `2`, "dtype": `"bf16"`, "numerics": `"x"`, "threads": `2`,
		"kv.block": `16`, "kv.dtype": `"auto"`, "kv.layout": `"NHD"`, "kv.hash": `"sha256"`, "kv.seed": `1`, "kv.connector": `"nixl"`,
		"kv.transports": `["tcp"]`, "kv.handOff": `"after"`, "kv.offload": `"1Gi"`, "kv.disk": `"2Gi"`, "kv.tokens": `4096`,
		"batch.seqs": `4`, "batch.tokens": `512`, "batch.queue": `8`, "mock.seed": `1`,
	}
	with := map[string][]string{ // engines that take it
		"version": engine.Foreign(), "flags.seed": engine.Foreign(), "device": engine.Foreign(), "numerics": engine.Foreign(),
		"tp": {"sglang", "trtllm", "vllm"}, "pp": {"sglang", "trtllm", "vllm"}, "dp": {"sglang", "trtllm", "vllm"}, "dtype": {"sglang", "trtllm", "vllm"},
		"threads": {"llamacpp", "native"}, "batch.tokens": {"llamacpp", "native", "sglang", "trtllm", "vllm"}, "kv.block": {"mock", "native", "sglang", "trtllm", "vllm"},
		"kv.dtype": {"llamacpp", "native", "sglang", "trtllm", "vllm"}, "kv.handOff": {"native", "sglang", "trtllm", "vllm"}, "mock.seed": {"mock"},
		"kv.layout": {"sglang", "trtllm", "vllm"}, "kv.hash": {"sglang", "trtllm", "vllm"}, "kv.seed": {"sglang", "trtllm", "vllm"},
		"kv.connector": {"sglang", "trtllm", "vllm"}, "kv.transports": {"sglang", "trtllm", "vllm"}, "kv.offload": {"sglang", "trtllm", "vllm"},
		"kv.disk": {"sglang", "trtllm", "vllm"},
	}
	all := []string{"llamacpp", "mock", "native", "sglang", "trtllm", "vllm"}
	for field, v := range values {
		for _, name := range all {
			at := diag.Pos{File: "s", Line: 3, Col: 1}
			raw := v
			parts := strings.Split(field, ".")
			places := map[string]diag.Pos{}
			for i := range parts {
				places[strings.Join(parts[:i+1], ".")] = at
			}
			for _, p := range slices.Backward(parts) {
				raw = fmt.Sprintf("{%q:%s}", p, raw)
			}
			raw = fmt.Sprintf(`{"engine":%q,%s`, name, raw[1:])
			n := &graph.Node{Name: "w", Kind: "worker", Model: "m", Fields: places}
			g := &graph.Graph{Nodes: map[string]*graph.Node{"w": n}, Models: map[string]*graph.Model{}, Devices: map[string]*graph.Device{"h100": {}}}
			refused := false
			for _, d := range serve.Check(config(t, raw), kind.Site{Graph: g, Node: n}) {
				if d.Code == "no-effect" {
					refused = d.Pos == at
				}
			}
			want := with[field] != nil && !slices.Contains(with[field], name)
			if refused != want {
				t.Errorf("%s: refused %v, want %v", raw, refused, want)
			}
		}
	}
}
