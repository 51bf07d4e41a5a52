package frontend

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/dynamograph/dynamo/graph/flow"
	"github.com/dynamograph/dynamo/graph/flow/llm"
	"github.com/dynamograph/dynamo/graph/kind/kindtest"
	"github.com/dynamograph/dynamo/nodes/nodetest"
)

// A connection that is closed on a client that still sends lingers half a second in net/http.
func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("net/http.(*conn).closeWriteAndWait"))
}

func TestConformance(t *testing.T) {
	hang := nodetest.Hang[*llm.ChatRequest, *llm.ChatDelta]()
	nodetest.Run(t, "frontend", nodetest.Options{
		Config: `{"listen":"127.0.0.1:0"}`,
		Host: func(h *kindtest.Host) {
			h.Dialled["out"] = flow.Static[*llm.ChatRequest, *llm.ChatDelta]{{ID: "preprocess-0", AsyncEngine: hang}}
		},
	})
}
