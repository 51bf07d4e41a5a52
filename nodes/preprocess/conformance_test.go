package preprocess

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/dynamograph/dynamo/graph/flow"
	"github.com/dynamograph/dynamo/graph/flow/llm"
	"github.com/dynamograph/dynamo/graph/kind/kindtest"
	"github.com/dynamograph/dynamo/nodes/nodetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestConformance(t *testing.T) {
	hang := nodetest.Hang[*llm.TokensRequest, *llm.TokensDelta]()
	nodetest.Run(t, "preprocess", nodetest.Options{
		Config: `{"template":"{{ messages[0].content }}"}`,
		Host: func(h *kindtest.Host) {
			h.Dialled["out"] = flow.Static[*llm.TokensRequest, *llm.TokensDelta]{{ID: "router-0", AsyncEngine: hang}}
		},
	})
}
