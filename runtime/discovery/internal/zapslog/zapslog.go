// Package zapslog lets etcd, which logs to zap, log to slog.
package zapslog

import (
	"context"
	"log/slog"
	"slices"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// New returns a zap logger that writes entries of level and above to h; level may be a slog.LevelVar. Levels above Error become Error;
// an entry that zap calls fatal panics after it is written, and does not end the process.
func New(h slog.Handler, level slog.Leveler) *zap.Logger {
	return zap.New(&core{h: h, min: level}, zap.WithFatalHook(zapcore.WriteThenPanic))
}

type core struct {
	h      slog.Handler
	min    slog.Leveler
	fields []zapcore.Field
}

func levelOf(l zapcore.Level) slog.Level {
	switch {
	case l < zapcore.InfoLevel:
		return slog.LevelDebug
	case l < zapcore.WarnLevel:
		return slog.LevelInfo
	case l < zapcore.ErrorLevel:
		return slog.LevelWarn
	}
	return slog.LevelError
}

// Enabled implements zapcore.Core.
func (c *core) Enabled(l zapcore.Level) bool {
	return levelOf(l) >= c.min.Level() && c.h.Enabled(context.Background(), levelOf(l))
}

// With implements zapcore.Core.
func (c *core) With(f []zapcore.Field) zapcore.Core {
	return &core{h: c.h, min: c.min, fields: append(slices.Clip(c.fields), f...)}
}

// Check implements zapcore.Core.
func (c *core) Check(e zapcore.Entry, ce *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	if c.Enabled(e.Level) {
		return ce.AddCore(e, c)
	}
	return ce
}

// Write implements zapcore.Core.
func (c *core) Write(e zapcore.Entry, f []zapcore.Field) error {
	enc := zapcore.NewMapObjectEncoder()
	for _, f := range append(slices.Clip(c.fields), f...) {
		f.AddTo(enc)
	}
	r := slog.NewRecord(e.Time, levelOf(e.Level), e.Message, 0)
	names := make([]string, 0, len(enc.Fields))
	for n := range enc.Fields {
		names = append(names, n)
	}
	slices.Sort(names)
	for _, n := range names {
		r.AddAttrs(slog.Any(n, enc.Fields[n]))
	}
	return c.h.Handle(context.Background(), r)
}

// Sync implements zapcore.Core.
func (c *core) Sync() error { return nil }
