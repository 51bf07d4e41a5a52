package encode_test

import (
	"testing"

	_ "github.com/dynamograph/dynamo/nodes/encode"
	"github.com/dynamograph/dynamo/nodes/nodetest"
)

func TestConformance(t *testing.T) { nodetest.Run(t, "encode", nodetest.Options{}) }
