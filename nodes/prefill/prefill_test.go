package prefill_test

import (
	"testing"

	_ "github.com/dynamograph/dynamo/nodes/engine/mock"
	"github.com/dynamograph/dynamo/nodes/nodetest"
	_ "github.com/dynamograph/dynamo/nodes/prefill"
)

func TestConformance(t *testing.T) {
	nodetest.Run(t, "prefill", nodetest.Options{
		Config: `{"engine":"mock","mock":{"fail":{"kind":"hang"}}}`,
	})
}
