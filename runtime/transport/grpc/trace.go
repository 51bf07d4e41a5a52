package grpc

import (
	"context"

	"go.opentelemetry.io/otel/propagation"
	"google.golang.org/grpc/metadata"
)

const traceKey = "traceparent"

// traceparent returns the W3C header of ctx's span, or "".
func traceparent(ctx context.Context) string {
	c := propagation.MapCarrier{}
	propagation.TraceContext{}.Inject(ctx, c)
	return c[traceKey]
}

// withTraceparent makes the caller's span the parent of what ctx begins.
func withTraceparent(ctx context.Context, header string) context.Context {
	if header == "" {
		return ctx
	}
	return propagation.TraceContext{}.Extract(ctx, propagation.MapCarrier{traceKey: header})
}

func outgoingTrace(ctx context.Context) context.Context {
	if h := traceparent(ctx); h != "" {
		return metadata.AppendToOutgoingContext(ctx, traceKey, h)
	}
	return ctx
}

func incomingTrace(ctx context.Context) context.Context {
	if h := metadata.ValueFromIncomingContext(ctx, traceKey); len(h) > 0 {
		return withTraceparent(ctx, h[0])
	}
	return ctx
}
