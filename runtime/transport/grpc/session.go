package grpc

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	gogrpc "google.golang.org/grpc"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/dynamograph/dynamo/graph/flow"
	dynamov1 "github.com/dynamograph/dynamo/runtime/api/dynamo/v1"
)

// session is one connection, from its hello until it is lost.
type session struct {
	conn   *Conn
	opt    Options
	cc     *gogrpc.ClientConn
	stream gogrpc.BidiStreamingClient[dynamov1.CallerFrames, dynamov1.WorkerFrames]
	ctx    context.Context
	cancel context.CancelFunc
	out    *outbox
	heard  atomic.Int64 // when the peer was last heard of: time since epoch
	epoch  time.Time

	mu    sync.Mutex
	calls map[uint64]*call
	last  uint64
	err   *flow.Error // why it ended
}

// newSession opens the Generate stream and waits for the peer's hello.
func newSession(ctx context.Context, cancel context.CancelFunc, cc *gogrpc.ClientConn, c *Conn) (*session, error) {
	st, err := dynamov1.NewWorkerClient(cc).Generate(ctx)
	if err != nil {
		return nil, plain(err)
	}
	s := &session{
		conn: c, opt: c.opt, cc: cc, stream: st, ctx: ctx, cancel: cancel, out: newOutbox(), epoch: time.Now(), calls: map[uint64]*call{},
	}
	hello := new(dynamov1.WorkerFrames)
	if err := st.RecvMsg(hello); err != nil {
		return nil, plain(err)
	}
	if len(hello.GetFrames()) == 0 || hello.GetFrames()[0].GetHello() == nil {
		return nil, errors.New("the peer's first frame is no hello")
	}
	if len(hello.GetFrames()) > 1 {
		return nil, errors.New("the peer sent frames before any request")
	}
	s.hear()
	return s, nil
}

// plain takes the gRPC dressing off an error that a user will read.
func plain(err error) error {
	if s, ok := status.FromError(err); ok {
		return errors.New(s.Message())
	}
	return err
}

func (s *session) hear() { s.heard.Store(int64(time.Since(s.epoch))) }

func (s *session) alive() bool { return s.ctx.Err() == nil }

// run serves the session until it is lost or its ctx ends, and ends every call.
func (s *session) run() {
	var wg sync.WaitGroup
	wg.Go(func() {
		// EOF means that the peer ended the stream: what it said before is still to be read, and why it ended.
		if err := s.out.run(s.ctx, s.stream.SendMsg); !errors.Is(err, io.EOF) {
			s.fail(s.conn.lost(plain(err)))
		}
	})
	wg.Go(s.ping)
	s.read()
	wg.Wait()
	_ = s.cc.Close() // ends what else runs on the connection
}

// fail ends the session for the given reason; the first counts.
func (s *session) fail(e *flow.Error) {
	s.mu.Lock()
	if s.err == nil {
		s.err = e
	}
	calls := s.calls
	s.calls = nil
	s.mu.Unlock()
	s.cancel()
	for _, c := range calls {
		c.finish(s.err)
	}
}

// read hands frames to their calls until the stream ends.
func (s *session) read() {
	var in raw
	for {
		if err := s.stream.RecvMsg(&in); err != nil {
			s.fail(s.conn.lost(plain(err)))
			return
		}
		s.hear()
		err := fields(*in.buf, func(num protowire.Number, typ protowire.Type, _ uint64, b []byte) error {
			if num != 1 || typ != protowire.BytesType {
				return nil
			}
			return s.frame(b)
		})
		if err != nil {
			s.fail(protocol(s.opt.Instance, "the peer sent what is no frame: "+err.Error()))
			return
		}
	}
}

// frame handles one WorkerFrame. Frames of a call that has ended here are under way for a while: they are dropped.
func (s *session) frame(b []byte) error {
	var id, seq uint64
	return fields(b, func(num protowire.Number, typ protowire.Type, v uint64, b []byte) error {
		switch {
		case num == 1 && typ == protowire.VarintType:
			id = v
		case num == 2 && typ == protowire.VarintType:
			seq = v
		case num == 3 && typ == protowire.BytesType:
			if c := s.call(id); c != nil {
				if e := c.push(seq, b); e != nil {
					s.forget(id, true)
					c.finish(e)
				}
			}
		case num == 4 && typ == protowire.BytesType:
			var end dynamov1.End
			if err := proto.Unmarshal(b, &end); err != nil {
				return fmt.Errorf("end: %w", err)
			}
			if c := s.call(id); c != nil {
				s.forget(id, false)
				if e := end.GetError(); e != nil {
					c.finish(errorFromWire(e, s.opt.Instance))
				} else {
					c.finish(nil)
				}
			}
		}
		return nil
	})
}

func (s *session) call(id uint64) *call {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.calls[id]
}

// forget drops a call; cancel tells the peer to stop.
func (s *session) forget(id uint64, cancel bool) {
	s.mu.Lock()
	_, ok := s.calls[id]
	delete(s.calls, id)
	s.mu.Unlock()
	if ok && cancel {
		s.put(&dynamov1.CallerFrame{Stream: id, Kind: &dynamov1.CallerFrame_Cancel{Cancel: &dynamov1.Cancel{}}})
	}
}

func (s *session) put(f *dynamov1.CallerFrame) {
	b := s.out.begin()
	*b = appendFrame(*b, f)
	s.out.commit()
}

// credit lets the peer send n deltas more.
func (s *session) credit(id uint64, n int) {
	b := s.out.begin()
	size := 2 + protowire.SizeVarint(id) + protowire.SizeVarint(uint64(n))
	*b = protowire.AppendVarint(protowire.AppendTag(*b, 1, protowire.BytesType), uint64(size))
	*b = protowire.AppendVarint(protowire.AppendTag(*b, 1, protowire.VarintType), id)
	*b = protowire.AppendVarint(protowire.AppendTag(*b, 3, protowire.VarintType), uint64(n))
	s.out.commit()
}

// open sends a request. Numbers rise in the order in which they are sent.
func (s *session) open(o *dynamov1.Open) (*call, *flow.Error) {
	f := &dynamov1.CallerFrame{Kind: &dynamov1.CallerFrame_Open{Open: o}}
	if n := proto.Size(f); n > s.opt.MaxMessage-2*batchBytes {
		return nil, flow.Errorf(flow.PayloadTooLarge, "transport.too_large", "the request takes %d bytes, above the limit of %d", n, s.opt.MaxMessage)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return nil, s.err
	}
	s.last++
	c := &call{s: s, id: s.last, window: s.opt.Window, wake: make(chan struct{}, 1)}
	s.calls[c.id] = c
	f.Stream = c.id
	s.put(f)
	return c, nil
}

// ping asks the peer for a sign of life, and gives it up where none comes.
func (s *session) ping() {
	tick := time.NewTicker(s.opt.PingEvery)
	defer tick.Stop()
	var n uint64
	before := time.Now()
	for {
		select {
		case <-s.ctx.Done():
			return
		case <-tick.C:
		}
		now := time.Now()
		if now.Sub(before) > 2*s.opt.PingEvery { // it was we who slept
			s.hear()
		}
		before = now
		if quiet := now.Sub(s.epoch) - time.Duration(s.heard.Load()); quiet >= s.opt.PingEvery+s.opt.PingTimeout {
			s.fail(s.conn.lost(fmt.Errorf("no sign of life for %.1f s", quiet.Seconds())))
			return
		}
		n++
		s.put(&dynamov1.CallerFrame{Kind: &dynamov1.CallerFrame_Ping{Ping: &dynamov1.Ping{Number: n}}})
	}
}
