package telemetry

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/dynamograph/dynamo/graph/flow"
	"github.com/dynamograph/dynamo/graph/kind"
)

// TraceOptions say where spans go and who sends them.
type TraceOptions struct {
	Endpoint string // URL that OTLP is posted to, with its path: "http://127.0.0.1:4318/v1/traces"
	Service  string // service.name
	Graph    string
	Process  string  // service.instance.id: "decode-0"
	Ratio    float64 // of the traces that begin here, which are recorded, from 0 to 1; a caller's decision is followed
	// OnError hears, at most once a minute, that spans could not be sent: they are lost. May be nil.
	OnError func(error)
}

// TraceEnv reads OpenTelemetry's standard environment variables. on is false where nobody asked for traces: neither OTEL_TRACES_EXPORTER is
// "otlp" nor an endpoint is set, or OTEL_SDK_DISABLED is "true". What it does not read (headers, time-outs, certificates, batches) the
// exporter reads by itself.
func TraceEnv(getenv func(string) string) (o TraceOptions, on bool, err error) {
	o = TraceOptions{Service: "dynamo", Ratio: 1}
	exporter := getenv("OTEL_TRACES_EXPORTER")
	base, full := getenv("OTEL_EXPORTER_OTLP_ENDPOINT"), getenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
	switch exporter {
	case "none":
		return o, false, nil
	case "", "otlp":
	default:
		return o, false, fmt.Errorf("OTEL_TRACES_EXPORTER %q: want otlp or none", exporter)
	}
	if getenv("OTEL_SDK_DISABLED") == "true" || exporter == "" && base == "" && full == "" {
		return o, false, nil
	}
	for _, k := range []string{"OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL"} {
		if p := getenv(k); p != "" && p != "http/protobuf" {
			return o, false, fmt.Errorf("%s %q: want http/protobuf", k, p)
		}
	}
	if o.Endpoint = full; full == "" {
		if base == "" {
			base = "http://localhost:4318"
		}
		o.Endpoint = strings.TrimSuffix(base, "/") + "/v1/traces"
	}
	if u, err := url.Parse(o.Endpoint); err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return o, false, fmt.Errorf("OTLP endpoint %q: want a URL such as http://127.0.0.1:4318", o.Endpoint)
	}
	if s := getenv("OTEL_SERVICE_NAME"); s != "" {
		o.Service = s
	}
	switch s := getenv("OTEL_TRACES_SAMPLER"); s {
	case "", "always_on", "parentbased_always_on":
	case "always_off", "parentbased_always_off":
		o.Ratio = 0
	case "traceidratio", "parentbased_traceidratio":
		if a := getenv("OTEL_TRACES_SAMPLER_ARG"); a != "" {
			if _, err := fmt.Sscanf(a, "%g", &o.Ratio); err != nil || !(o.Ratio >= 0 && o.Ratio <= 1) {
				return o, false, fmt.Errorf("OTEL_TRACES_SAMPLER_ARG %q: want a number from 0 to 1", a)
			}
		}
	default:
		return o, false, fmt.Errorf("OTEL_TRACES_SAMPLER %q: want always_on, always_off, traceidratio, or one of them after parentbased_", s)
	}
	return o, true, nil
}

// Tracer implements kind.Tracer: spans are sent in the background by OTLP over HTTP, from a queue that drops what does not fit. It is safe for
// concurrent use.
type Tracer struct {
	provider *sdk.TracerProvider
	tracer   trace.Tracer
}

var _ kind.Tracer = (*Tracer)(nil)

// NewTracer makes a tracer. Nothing is contacted before the first span ends. There is one a process: the hook for errors is global.
func NewTracer(ctx context.Context, o TraceOptions) (*Tracer, error) {
	var last atomic.Int64
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) {
		now, old := time.Now().Unix(), last.Load()
		if o.OnError != nil && now-old >= 60 && last.CompareAndSwap(old, now) {
			o.OnError(err)
		}
	}))
	exp, err := otlptracehttp.New(ctx, otlptracehttp.WithEndpointURL(o.Endpoint))
	if err != nil {
		return nil, fmt.Errorf("traces: %w", err)
	}
	res, err := resource.New(ctx, resource.WithFromEnv(), resource.WithAttributes(
		attribute.String("service.name", o.Service), attribute.String("service.instance.id", o.Process),
		attribute.String("dynamo.graph", o.Graph), attribute.String("dynamo.process", o.Process),
	))
	if err != nil {
		return nil, fmt.Errorf("traces: %w", err)
	}
	p := sdk.NewTracerProvider(sdk.WithBatcher(exp), sdk.WithResource(res), sdk.WithSampler(sdk.ParentBased(sdk.TraceIDRatioBased(o.Ratio))))
	return &Tracer{p, p.Tracer("github.com/dynamograph/dynamo")}, nil
}

// Close sends what is left, until ctx ends.
func (t *Tracer) Close(ctx context.Context) error { return t.provider.Shutdown(ctx) }

// Start implements kind.Tracer.
func (t *Tracer) Start(ctx context.Context, parent, name string) (context.Context, kind.Recording) {
	if parent != "" && !trace.SpanContextFromContext(ctx).IsValid() {
		ctx = propagation.TraceContext{}.Extract(ctx, propagation.MapCarrier{"traceparent": parent})
	}
	ctx, s := t.tracer.Start(ctx, name)
	return ctx, recording{s: s, parent: sync.OnceValue(func() string { return traceparent(s.SpanContext()) })}
}

func traceparent(c trace.SpanContext) string {
	return fmt.Sprintf("00-%s-%s-%02x", c.TraceID(), c.SpanID(), byte(c.TraceFlags()&trace.FlagsSampled))
}

type recording struct {
	s      trace.Span
	parent func() string
}

func (r recording) Traceparent() string         { return r.parent() }
func (r recording) TraceID() string             { return r.s.SpanContext().TraceID().String() }
func (r recording) Str(key, value string)       { r.s.SetAttributes(attribute.String(key, value)) }
func (r recording) Int(key string, value int64) { r.s.SetAttributes(attribute.Int64(key, value)) }
func (r recording) Event(name string)           { r.s.AddEvent(name) }

func (r recording) End(err error) {
	if err != nil {
		e := flow.AsError(err)
		r.s.SetAttributes(attribute.String("error.type", e.Reason))
		if e.Class == flow.Cancelled {
			r.s.SetAttributes(attribute.Bool("dynamo.cancelled", true)) // the caller's wish, not a failure
		} else {
			r.s.SetStatus(codes.Error, err.Error())
		}
	}
	r.s.End()
}
