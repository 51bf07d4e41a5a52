package profiler_test

import (
	"testing"

	"github.com/dynamograph/dynamo/nodes/nodetest"
	_ "github.com/dynamograph/dynamo/nodes/profiler"
)

func TestConformance(t *testing.T) { nodetest.Run(t, "profiler", nodetest.Options{}) }
