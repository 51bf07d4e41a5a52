package mem

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/dynamograph/dynamo/runtime/discovery"
	"github.com/dynamograph/dynamo/runtime/discovery/discoverytest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestConformance(t *testing.T) {
	discoverytest.Run(t, func(*testing.T) func() discovery.Registry {
		r := New()
		return func() discovery.Registry { return r }
	})
}
