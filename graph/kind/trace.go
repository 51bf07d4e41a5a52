package kind

import "context"

// Tracer records traces. All methods are safe for concurrent use.
type Tracer interface {
	// Start begins a span below the span of ctx, else below parent, a W3C traceparent; where there is neither it begins a trace. What ctx
	// becomes carries the span, over edges too.
	Start(ctx context.Context, parent, name string) (context.Context, Recording)
}

// Recording is a span that is being recorded.
type Recording interface {
	Traceparent() string // W3C
	TraceID() string     // hex
	Str(key, value string)
	Int(key string, value int64)
	Event(name string)
	// End is called once; err, where not nil, makes the span a failed one.
	End(err error)
}

// Traced is implemented by a Host whose process records traces. The tracer is nil where nobody asked for them.
type Traced interface{ Tracer() Tracer }

// Span is what one node does for one request. The zero Span is off: its methods do nothing and allocate nothing.
type Span struct{ r Recording }

// StartSpan begins a span where h records traces; else it returns ctx and a Span that is off. parent counts only where ctx carries no span:
// it is the Trace of the request. The caller must call End.
func StartSpan(ctx context.Context, h Host, parent, name string) (context.Context, Span) {
	t, ok := h.(Traced)
	if !ok {
		return ctx, Span{}
	}
	tr := t.Tracer()
	if tr == nil {
		return ctx, Span{}
	}
	if parent == "" {
		parent, _ = ctx.Value(traceKey{}).(string)
	}
	ctx, r := tr.Start(ctx, parent, name)
	r.Str("dynamo.instance", h.Instance())
	return ctx, Span{r}
}

type traceKey struct{}

// WithTrace makes parent, the Trace of a request, the parent of spans that work of its own context begins: what an engine does for a request
// in the background. An empty parent changes nothing.
func WithTrace(ctx context.Context, parent string) context.Context {
	if parent == "" {
		return ctx
	}
	return context.WithValue(ctx, traceKey{}, parent)
}

// On reports whether the span is recorded.
func (s Span) On() bool { return s.r != nil }

// Traceparent returns the span as a request's Trace, "" where the span is off.
func (s Span) Traceparent() string {
	if s.r == nil {
		return ""
	}
	return s.r.Traceparent()
}

// TraceID returns the trace's id in hex, "" where the span is off.
func (s Span) TraceID() string {
	if s.r == nil {
		return ""
	}
	return s.r.TraceID()
}

// Str sets an attribute.
func (s Span) Str(key, value string) {
	if s.r != nil {
		s.r.Str(key, value)
	}
}

// Int sets an attribute.
func (s Span) Int(key string, value int) {
	if s.r != nil {
		s.r.Int(key, int64(value))
	}
}

// Event marks the present moment of the span.
func (s Span) Event(name string) {
	if s.r != nil {
		s.r.Event(name)
	}
}

// Follow returns yield as a stage calls it, and what the stage defers: the span then ends with the stream's error. Where s is off they are
// yield itself and nothing.
func Follow[R any](s Span, yield func(R, error) bool) (follow func(R, error) bool, end func()) {
	if s.r == nil {
		return yield, func() {}
	}
	var failed error
	return func(r R, err error) bool {
		if err != nil {
			failed = err
		}
		return yield(r, err)
	}, func() { s.End(failed) }
}

// End ends the span; err, where not nil, makes it a failed one.
func (s Span) End(err error) {
	if s.r != nil {
		s.r.End(err)
	}
}
