package serve_test

import (
	"slices"
	"testing"

	"github.com/dynamograph/dynamo/graph/kind"
	"github.com/dynamograph/dynamo/nodes/engine/serve"
)

// A flag that switches something off silences the port that would tell of it.
func TestSilencers(t *testing.T) {
	for _, tt := range []struct {
		config, port string
		tells        bool
	}{
		{`{}`, "events", true}, {`{}`, "load", true}, {`{"engine":"mock"}`, "events", false}, {`{"engine":"llamacpp"}`, "events", false},
		{`{"engine":"vllm"}`, "events", true},
		{`{"engine":"vllm","flags":{"enable-prefix-caching":true}}`, "events", true},
		{`{"engine":"vllm","flags":{"enable_prefix_caching":false}}`, "events", false},
		{`{"engine":"vllm","flags":{"no-enable-prefix-caching":true}}`, "events", false},
		{`{"engine":"vllm","flags":{"no-enable-prefix-caching":true}}`, "load", true},
		{`{"engine":"vllm","flags":{"disable-log-stats":true}}`, "load", false},
		{`{"engine":"sglang","flags":{"disable-radix-cache":true}}`, "events", false},
		{`{"engine":"sglang","flags":{"disable-log-stats":true}}`, "load", true}, // another's flag
		{`{"engine":"trtllm","flags":{"kv_cache_config.enable_block_reuse":false}}`, "events", false},
	} {
		ps := serve.Ports(config(t, tt.config))
		p := ps[slices.IndexFunc(ps, func(p kind.Port) bool { return p.Name == tt.port })]
		if got := len(p.Signals) > 0; got != tt.tells {
			t.Errorf("%s: port %s tells %v: %q", tt.config, tt.port, p.Signals, p.Doc)
		}
	}
}
