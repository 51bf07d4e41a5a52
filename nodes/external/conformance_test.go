package external_test

import (
	"testing"

	_ "github.com/dynamograph/dynamo/nodes/external"
	"github.com/dynamograph/dynamo/nodes/nodetest"
)

func TestConformance(t *testing.T) {
	nodetest.Run(t, "external", nodetest.Options{Config: `{"url":"https://example.com/v1"}`})
}
