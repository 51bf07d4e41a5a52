package planner_test

import (
	"testing"

	"github.com/dynamograph/dynamo/nodes/nodetest"
	_ "github.com/dynamograph/dynamo/nodes/planner"
)

func TestConformance(t *testing.T) {
	nodetest.Run(t, "planner", nodetest.Options{Config: `{"scale":{"w":{"max":2}}}`})
}
