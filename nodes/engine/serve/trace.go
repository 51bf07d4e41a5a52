package serve

import (
	"context"
	"errors"
	"iter"
	"log/slog"
	"time"

	"github.com/dynamograph/dynamo/graph/flow"
	"github.com/dynamograph/dynamo/graph/flow/llm"
	"github.com/dynamograph/dynamo/graph/kind"
)

// watched is what one request came to, for its span and its log line. A nil *watched does nothing.
type watched struct {
	h       kind.Host
	span    kind.Span
	request *llm.TokensRequest // as the engine gets it: its parent is the span
	begin   time.Time
	first   time.Duration // to the first token; 0: there was none
	tokens  int
	finish  llm.FinishReason
	cached  int
	err     error
}

// watch begins a span where the process records traces; it returns nil where neither a span nor a log line is wanted.
func watch(ctx context.Context, h kind.Host, r *llm.TokensRequest) (context.Context, *watched) {
	traced, span := kind.StartSpan(ctx, h, r.Trace, "engine")
	if !span.On() && !h.Log().Enabled(ctx, slog.LevelDebug) {
		return ctx, nil
	}
	w := &watched{h: h, span: span, request: r, begin: time.Now()}
	if span.On() {
		c := *r
		c.Trace = span.Traceparent()
		w.request = &c
		span.Str("dynamo.request.id", r.ID)
		span.Str("dynamo.phase", r.Phase.String())
		span.Int("gen_ai.usage.input_tokens", len(r.Tokens)-r.Generated)
		if r.HandOff != nil {
			span.Str("dynamo.handoff.peer", r.HandOff.Peer)
			span.Int("dynamo.handoff.tokens", r.HandOff.Tokens)
		}
	}
	return traced, w
}

func (w *watched) saw(d *llm.TokensDelta, err error) {
	if w == nil {
		return
	}
	if err != nil {
		w.err = err
	}
	if d == nil {
		return
	}
	if len(d.Tokens) > 0 && w.first == 0 {
		w.first = max(time.Since(w.begin), 1)
		w.span.Event("first token")
	}
	w.tokens += len(d.Tokens)
	if d.Finish != "" {
		w.finish = d.Finish
	}
	if d.Usage != nil {
		w.cached = d.Usage.Cached
	}
}

func (w *watched) end(ctx context.Context) {
	w.span.Int("gen_ai.usage.output_tokens", w.tokens)
	w.span.Int("dynamo.cached_tokens", w.cached)
	w.span.Str("dynamo.finish", string(w.finish))
	w.span.End(w.err)
	if log := w.h.Log(); log.Enabled(ctx, slog.LevelDebug) {
		log.Debug("generated", "request", w.request.ID, "phase", w.request.Phase.String(), "prompt", len(w.request.Tokens), "cached", w.cached,
			"tokens", w.tokens, "finish", string(w.finish), "ttft_ms", w.first.Milliseconds(), "ms", time.Since(w.begin).Milliseconds(),
			"trace", w.span.TraceID())
	}
}

var errLeftFetch = errors.New("the fetch was given up")

// fetches is p with a span around each fetch of a hand-off.
func fetches(h kind.Host, p flow.Peer[*llm.KVFetch, *llm.KVBlock]) flow.AsyncEngine[*llm.KVFetch, *llm.KVBlock] {
	if t, ok := h.(kind.Traced); !ok || t.Tracer() == nil {
		return p.AsyncEngine
	}
	return flow.EngineFunc[*llm.KVFetch, *llm.KVBlock](func(ctx context.Context, f *llm.KVFetch) iter.Seq2[*llm.KVBlock, error] {
		if f.Release {
			return p.Generate(ctx, f)
		}
		return func(yield func(*llm.KVBlock, error) bool) {
			ctx, span := kind.StartSpan(ctx, h, "", "fetch")
			var blocks, bytes, shared int
			failed := errLeftFetch
			defer func() {
				span.Str("dynamo.handoff.id", f.HandOff)
				span.Str("dynamo.peer", p.ID)
				span.Int("dynamo.handoff.blocks", blocks)
				span.Int("dynamo.handoff.blocks_wanted", f.To-f.From)
				span.Int("dynamo.handoff.bytes", bytes)
				span.Int("dynamo.handoff.shared_memory_blocks", shared)
				span.End(failed)
			}()
			for b, err := range p.Generate(ctx, f) {
				if err != nil {
					failed = err
				} else {
					blocks++
					bytes += b.Length
					if b.Region != "" {
						shared++
					}
				}
				if !yield(b, err) {
					return
				}
			}
			if errors.Is(failed, errLeftFetch) {
				failed = nil
			}
		}
	})
}
