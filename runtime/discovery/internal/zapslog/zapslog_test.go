package zapslog

import (
	"bytes"
	"errors"
	"log/slog"
	"testing"

	"go.uber.org/zap"
)

func TestLogger(t *testing.T) {
	var buf bytes.Buffer
	h := slog.NewTextHandler(&buf, &slog.HandlerOptions{Level: slog.LevelDebug, ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}})
	var level slog.LevelVar
	level.Set(slog.LevelWarn)
	z := New(h, &level).With(zap.String("member", "m"))
	z.Info("not told")
	z.Warn("slow", zap.Int("took", 3), zap.Error(errors.New("x y")))
	level.Set(slog.LevelDebug)
	z.Debug("told now")
	func() {
		defer func() {
			if recover() == nil {
				t.Error("a fatal entry went on")
			}
		}()
		z.Fatal("dead")
	}()
	if err := z.Sync(); err != nil {
		t.Error(err)
	}
	want := `level=WARN msg=slow error="x y" member=m took=3
level=DEBUG msg="told now" member=m
level=ERROR msg=dead member=m
`
	if buf.String() != want {
		t.Errorf("got\n%s\nwant\n%s", &buf, want)
	}
}
