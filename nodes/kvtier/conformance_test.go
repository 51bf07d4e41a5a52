package kvtier_test

import (
	"testing"

	_ "github.com/dynamograph/dynamo/nodes/kvtier"
	"github.com/dynamograph/dynamo/nodes/nodetest"
)

func TestConformance(t *testing.T) {
	nodetest.Run(t, "kvtier", nodetest.Options{Config: `{"tiers":[{"medium":"dram","size":"1Gi"}]}`})
}
