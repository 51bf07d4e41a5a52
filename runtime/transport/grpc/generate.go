package grpc

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	gogrpc "google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/dynamograph/dynamo/graph/flow"
	"github.com/dynamograph/dynamo/graph/flow/llm"
	dynamov1 "github.com/dynamograph/dynamo/runtime/api/dynamo/v1"
	"github.com/dynamograph/dynamo/runtime/transport"
)

// peer is the server's end of one Generate stream: all requests of one process.
type peer struct {
	s     *Server
	ctx   context.Context
	out   *outbox
	calls sync.WaitGroup
	last  uint64 // highest request number; only the reader uses it

	mu     sync.Mutex
	active map[uint64]*serverCall
	closed bool // no call begins any more
}

// serverCall is one request.
type serverCall struct {
	id     uint64
	cancel context.CancelFunc
	credit atomic.Int64 // deltas that may be sent
	wake   chan struct{}
	quiet  atomic.Bool // the caller listens no more
}

// Generate implements the Worker service. It ends when the peer goes away, or with Close, when all that was said has been sent.
func (s *Server) Generate(stream gogrpc.BidiStreamingServer[dynamov1.CallerFrames, dynamov1.WorkerFrames]) error {
	ctx, cancel := context.WithCancel(stream.Context())
	defer cancel()
	p := &peer{s: s, ctx: ctx, out: newOutbox(), active: map[uint64]*serverCall{}}
	p.put(0, &dynamov1.WorkerFrame{Kind: &dynamov1.WorkerFrame_Hello{
		Hello: &dynamov1.Hello{Instance: text(s.opt.Instance), MaxRequests: uint32(s.opt.MaxRequests)},
	}})
	sending, flush := context.WithCancel(context.WithoutCancel(ctx))
	var sender sync.WaitGroup
	sender.Go(func() {
		defer cancel()
		_ = p.out.run(sending, stream.SendMsg)
	})
	fault := make(chan error, 1)
	s.readers.Go(func() { // until the stream ends, which is after this handler's return: Close waits for it
		defer cancel()
		fault <- p.read(stream)
	})
	select {
	case <-ctx.Done():
	case <-s.ctx.Done():
	}
	p.close(cancel)
	flush()
	sender.Wait()
	select {
	case err := <-fault:
		return err
	default:
		return errClosing
	}
}

// errClosing has no details: to the caller it is a lost connection.
var errClosing = status.Error(codes.Unavailable, "the instance was closed")

// read handles what the peer says until it goes away, which is no error, or breaks the protocol. It never waits for an engine, so that
// pings are answered and credits counted whatever the engines do.
func (p *peer) read(stream gogrpc.BidiStreamingServer[dynamov1.CallerFrames, dynamov1.WorkerFrames]) error {
	var in raw
	for {
		if err := stream.RecvMsg(&in); err != nil {
			return nil //nolint:nilerr // there is nobody to tell
		}
		err := fields(*in.buf, func(num protowire.Number, typ protowire.Type, _ uint64, b []byte) error {
			if num != 1 || typ != protowire.BytesType {
				return nil
			}
			return p.frame(b)
		})
		if err != nil {
			p.s.opt.Log.Warn("a peer broke the protocol", "error", err)
			return status.Error(codes.InvalidArgument, err.Error())
		}
	}
}

// close ends every call and waits for them.
func (p *peer) close(cancel context.CancelFunc) {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	cancel()
	p.calls.Wait()
}

// put sends a frame that is not a delta.
func (p *peer) put(stream uint64, f *dynamov1.WorkerFrame) {
	f.Stream = stream
	b := p.out.begin()
	*b = appendFrame(*b, f)
	p.out.commit()
}

// appendFrame appends f as an element of CallerFrames or WorkerFrames.
func appendFrame(b []byte, f proto.Message) []byte {
	m, err := proto.Marshal(f)
	if err != nil { // strings are made valid before: only a programmer's mistake gets here
		panic(fmt.Sprintf("dynamo.v1: %v", err))
	}
	return protowire.AppendBytes(protowire.AppendTag(b, 1, protowire.BytesType), m)
}

// frame handles one CallerFrame.
func (p *peer) frame(b []byte) error {
	var id uint64
	return fields(b, func(num protowire.Number, typ protowire.Type, v uint64, b []byte) error {
		switch {
		case num == 1 && typ == protowire.VarintType:
			id = v
		case num == 2 && typ == protowire.BytesType:
			return p.open(id, b)
		case num == 3 && typ == protowire.VarintType:
			if c := p.call(id); c != nil {
				c.grant(v)
			}
		case num == 4 && typ == protowire.BytesType:
			if c := p.call(id); c != nil {
				c.quiet.Store(true)
				c.cancel()
			}
		case num == 5 && typ == protowire.BytesType:
			var ping dynamov1.Ping
			if err := proto.Unmarshal(b, &ping); err != nil {
				return err
			}
			p.put(0, &dynamov1.WorkerFrame{Kind: &dynamov1.WorkerFrame_Pong{Pong: &dynamov1.Pong{Number: ping.GetNumber()}}})
		}
		return nil
	})
}

// call returns a request that has not ended: frames for others came too late.
func (p *peer) call(id uint64) *serverCall {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.active[id]
}

func (c *serverCall) grant(n uint64) {
	if c.credit.Add(int64(min(n, maxCredit))) > maxCredit {
		c.credit.Store(maxCredit)
	}
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// acquire waits for one credit.
func (c *serverCall) acquire(ctx context.Context) error {
	for c.credit.Load() <= 0 {
		select {
		case <-c.wake:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	c.credit.Add(-1)
	return nil
}

func (p *peer) open(id uint64, b []byte) error {
	if id <= p.last {
		return fmt.Errorf("request number %d after %d", id, p.last)
	}
	p.last = id
	var o dynamov1.Open
	if err := proto.Unmarshal(b, &o); err != nil {
		return fmt.Errorf("request %d: %w", id, err)
	}
	v, fe := p.s.lookup(o.GetTo(), llm.Tokens.Type)
	if fe == nil {
		fe = p.s.admit()
	}
	if fe != nil {
		p.end(id, fe)
		return nil
	}
	ctx, cancel := context.WithCancel(withTraceparent(p.ctx, o.GetTraceparent()))
	c := &serverCall{id: id, wake: make(chan struct{}, 1), cancel: cancel}
	c.grant(uint64(o.GetCredit()))
	p.mu.Lock()
	defer p.mu.Unlock()
	n := len(p.active)
	if p.closed {
		cancel()
		p.s.release()
		return nil
	}
	if n >= p.s.opt.MaxRequests {
		cancel()
		p.s.release()
		p.end(id, &flow.Error{
			Class: flow.CapacityExhausted, Reason: "transport.busy", Retry: true,
			Msg: fmt.Sprintf("%d requests of this caller are running here, which is the limit", n),
		})
		return nil
	}
	p.active[id] = c
	p.calls.Go(func() {
		defer cancel()
		if t := o.GetTimeoutNano(); t > 0 {
			var stop context.CancelFunc
			ctx, stop = context.WithTimeout(ctx, time.Duration(t))
			defer stop()
		}
		err := p.run(ctx, c, v.(tokensEngine), &o)
		p.mu.Lock()
		delete(p.active, id)
		p.mu.Unlock()
		// A call that was cut off by the end of the stream is not cancelled: its caller sees the stream's end.
		if !c.quiet.Load() && (err == nil || p.ctx.Err() == nil) {
			p.end(id, flow.AsError(err))
		}
		p.s.release() // last: Close after Drain sends what was said before
	})
	return nil
}

// run drives one request to its end.
func (p *peer) run(ctx context.Context, c *serverCall, e tokensEngine, o *dynamov1.Open) (err error) {
	defer p.s.contain(transport.Address{Node: o.GetTo().GetNode(), Port: o.GetTo().GetPort()}.String(), &err)
	var seq uint64
	var scratch []byte
	complete := false
	for d, err := range e.Generate(ctx, requestFromWire(o.GetRequest())) {
		if err != nil {
			return err
		}
		if err := c.acquire(ctx); err != nil {
			return err
		}
		scratch, err = appendDelta(scratch[:0], d)
		if err != nil {
			return err
		}
		seq++
		b := p.out.begin()
		*b = appendDeltaFrame(*b, c.id, seq, scratch)
		p.out.commit()
		complete = d.Finish != "" || d.HandOff != nil
	}
	if complete {
		return nil
	}
	return ctx.Err() // an engine that just stops when it is cancelled did not succeed
}

// appendDeltaFrame appends an element of WorkerFrames that holds an encoded delta.
func appendDeltaFrame(b []byte, stream, seq uint64, delta []byte) []byte {
	n := 2 + protowire.SizeVarint(stream) + protowire.SizeVarint(seq) + 1 + protowire.SizeBytes(len(delta))
	b = protowire.AppendVarint(protowire.AppendTag(b, 1, protowire.BytesType), uint64(n))
	b = protowire.AppendVarint(protowire.AppendTag(b, 1, protowire.VarintType), stream)
	b = protowire.AppendVarint(protowire.AppendTag(b, 2, protowire.VarintType), seq)
	return protowire.AppendBytes(protowire.AppendTag(b, 3, protowire.BytesType), delta)
}

// end tells that a request is over; e is nil where it succeeded.
func (p *peer) end(id uint64, e *flow.Error) {
	end := &dynamov1.End{}
	if e != nil {
		end.Error = errorToWire(e, p.s.opt.Instance)
	}
	p.put(id, &dynamov1.WorkerFrame{Kind: &dynamov1.WorkerFrame_End{End: end}})
}
