package inproc

import (
	"log/slog"
	"testing"

	"go.uber.org/goleak"

	"github.com/dynamograph/dynamo/runtime/transport/transporttest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestConformance(t *testing.T) {
	transporttest.Run(t, func(_ *testing.T, log *slog.Logger) transporttest.Pair {
		s := NewServer(transporttest.Instance, log)
		return transporttest.Pair{Server: s, Conn: s.Conn()}
	})
}
