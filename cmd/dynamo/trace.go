package main

import (
	"context"
	"log/slog"
	"time"

	"github.com/dynamograph/dynamo/runtime/telemetry"
)

// tracer returns what sends spans, nil where the environment asks for none.
func (p *program) tracer(ctx context.Context, log *slog.Logger, graph, process string) (*telemetry.Tracer, error) {
	o, on, err := telemetry.TraceEnv(p.Getenv)
	if err != nil || !on {
		return nil, err
	}
	o.Graph, o.Process = graph, process
	o.OnError = func(err error) { log.Warn("spans are lost", "endpoint", o.Endpoint, "error", err) }
	return telemetry.NewTracer(ctx, o)
}

// closeTracer sends the last spans, but does not hold up the end of the process for long.
func closeTracer(t *telemetry.Tracer, log *slog.Logger) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	if err := t.Close(ctx); err != nil {
		log.Debug("the last spans are lost", "error", err)
	}
}
