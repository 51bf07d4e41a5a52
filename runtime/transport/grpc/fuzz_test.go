package grpc

import (
	"context"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	dynamov1 "github.com/dynamograph/dynamo/runtime/api/dynamo/v1"
	"github.com/dynamograph/dynamo/runtime/transport/transporttest"
)

// messages feeds the frames of one message to f, as both readers do.
func messages(b []byte, f func([]byte) error) error {
	return fields(b, func(num protowire.Number, typ protowire.Type, _ uint64, b []byte) error {
		if num != 1 || typ != protowire.BytesType {
			return nil
		}
		return f(b)
	})
}

func seed(f *testing.F, m proto.Message) {
	b, err := proto.Marshal(m)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Add(b[:len(b)-1])
}

// FuzzCallerFrames: whatever a caller sends, the server does not panic and every request that it took ends.
func FuzzCallerFrames(f *testing.F) {
	echo := &dynamov1.Address{Node: echoAt.Node, Port: echoAt.Port}
	seed(f, &dynamov1.CallerFrames{Frames: []*dynamov1.CallerFrame{
		open(1, 1, echo, 1, 2), {Kind: &dynamov1.CallerFrame_Ping{Ping: &dynamov1.Ping{Number: 5}}},
		{Stream: 1, Kind: &dynamov1.CallerFrame_Credit{Credit: 1 << 31}}, {Stream: 1, Kind: &dynamov1.CallerFrame_Cancel{Cancel: &dynamov1.Cancel{}}},
		open(7, 0, &dynamov1.Address{Node: "x"}),
	}})
	f.Fuzz(func(t *testing.T, b []byte) {
		s := NewServer(Options{MaxRequests: 4})
		defer s.Close()
		if err := s.Handle(echoAt, "tokens", &transporttest.Echo{}); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		p := &peer{s: s, ctx: ctx, out: newOutbox(), active: map[uint64]*serverCall{}}
		_ = messages(b, p.frame)
		p.close(cancel)
		if len(p.active) != 0 || s.active != 0 {
			t.Errorf("%d, %d requests are left", len(p.active), s.active)
		}
		for m := p.out.take(); m != nil; m = p.out.take() { // what it answered is well-formed
			if err := proto.Unmarshal(*m, new(dynamov1.WorkerFrames)); err != nil {
				t.Error(err)
			}
		}
	})
}

// FuzzWorkerFrames: whatever a worker sends, the caller does not panic, and holds no more of a request than its window.
func FuzzWorkerFrames(f *testing.F) {
	seed(f, &dynamov1.WorkerFrames{Frames: []*dynamov1.WorkerFrame{
		delta(1, 1, 5, 6), delta(1, 2), end(1, &dynamov1.Error{Class: "internal"}), delta(1, 3, 1),
	}})
	seed(f, &dynamov1.WorkerFrames{Frames: []*dynamov1.WorkerFrame{delta(1, 1), delta(1, 2), delta(1, 3), delta(1, 4), delta(1, 5), end(1, nil)}})
	f.Fuzz(func(t *testing.T, b []byte) {
		s := &session{out: newOutbox(), calls: map[uint64]*call{}}
		c := &call{s: s, id: 1, window: 4, wake: make(chan struct{}, 1)}
		s.calls[1] = c
		_ = messages(b, s.frame)
		if c.n > 4 || len(c.ring) > 4 {
			t.Errorf("holds %d deltas in %d slots", c.n, len(c.ring))
		}
		if s.calls[1] == nil && !c.ended {
			t.Error("forgotten without an end")
		}
	})
}
