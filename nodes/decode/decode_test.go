package decode_test

import (
	"testing"

	"github.com/dynamograph/dynamo/graph/flow"
	"github.com/dynamograph/dynamo/graph/flow/llm"
	"github.com/dynamograph/dynamo/graph/kind/kindtest"
	_ "github.com/dynamograph/dynamo/nodes/decode"
	_ "github.com/dynamograph/dynamo/nodes/engine/mock"
	"github.com/dynamograph/dynamo/nodes/nodetest"
)

func TestConformance(t *testing.T) {
	nodetest.Run(t, "decode", nodetest.Options{
		Config: `{"engine":"mock","mock":{"fail":{"kind":"hang"}}}`,
		Host:   func(h *kindtest.Host) { h.Dialled["kv"] = flow.Static[*llm.KVFetch, *llm.KVBlock]{} },
	})
}
