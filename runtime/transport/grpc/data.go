package grpc

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"

	gogrpc "google.golang.org/grpc"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/dynamograph/dynamo/graph/flow"
	"github.com/dynamograph/dynamo/graph/flow/llm"
	dynamov1 "github.com/dynamograph/dynamo/runtime/api/dynamo/v1"
	"github.com/dynamograph/dynamo/runtime/transport"
)

// serve runs one call of a data port on the server and gives each response to send.
func serve[Req, Resp any](s *Server, ctx context.Context, to *dynamov1.Address, p flow.Port[Req, Resp], req Req, send func(Resp) error) error {
	v, fe := s.lookup(to, p.Type)
	if fe != nil {
		return toStatus(fe, s.opt.Instance)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(s.ctx, cancel)()
	err := func() (err error) {
		defer s.contain(to.GetNode()+"."+to.GetPort(), &err)
		for r, err := range v.(flow.AsyncEngine[Req, Resp]).Generate(incomingTrace(ctx), req) {
			if err != nil {
				return err
			}
			if err := send(r); err != nil {
				return err
			}
		}
		return ctx.Err()
	}()
	switch {
	case err != nil && s.ctx.Err() != nil:
		return errClosing
	case err != nil:
		return toStatus(err, s.opt.Instance)
	}
	return nil
}

// remote runs one call of a data port at the caller. next reads one response, which is reused.
func remote[Resp any](ctx context.Context, c *Conn, yield func(Resp, error) bool,
	open func(context.Context, dynamov1.WorkerClient) (gogrpc.ClientStream, error), next func(gogrpc.ClientStream) (Resp, error),
) {
	var zero Resp
	if err := ctx.Err(); err != nil {
		yield(zero, flow.AsError(err))
		return
	}
	s, fe := c.get(ctx)
	if fe != nil {
		yield(zero, fe)
		return
	}
	inner, cancel := context.WithCancel(outgoingTrace(ctx))
	defer cancel() // gRPC lets go of the stream
	st, err := open(inner, dynamov1.NewWorkerClient(s.cc))
	if err != nil {
		yield(zero, c.fromStatus(ctx, err))
		return
	}
	for {
		r, err := next(st)
		switch {
		case errors.Is(err, io.EOF):
			return
		case err != nil:
			yield(zero, c.fromStatus(ctx, err))
			return
		case !yield(r, nil):
			return
		}
	}
}

func address(a transport.Address) *dynamov1.Address {
	return &dynamov1.Address{Node: text(a.Node), Port: text(a.Port)}
}

// Fetch implements the Worker service.
func (s *Server) Fetch(r *dynamov1.FetchRequest, st gogrpc.ServerStreamingServer[dynamov1.Block]) error {
	m := raw{pool: blocks}
	f := &llm.KVFetch{
		HandOff: r.GetHandOff(), Contract: contractFromWire(r.GetContract()), From: int(r.GetFromBlock()), To: int(r.GetToBlock()),
		Release: r.GetRelease(), SharedMemory: r.GetSharedMemory(),
	}
	return serve(s, st.Context(), r.GetTo(), llm.KV, f, func(b *llm.KVBlock) error {
		m.buf = blocks.Get(0)
		if need := len(b.Bytes) + len(b.Region) + 128; cap(*m.buf) < need {
			*m.buf = make([]byte, 0, need)
		}
		*m.buf = appendBlock(*m.buf, b)
		return st.SendMsg(&m)
	})
}

type remoteKV struct {
	c *Conn
	a transport.Address
}

// Generate implements flow.AsyncEngine. A block's Bytes are valid until the loop's next turn.
func (r *remoteKV) Generate(ctx context.Context, f *llm.KVFetch) iter.Seq2[*llm.KVBlock, error] {
	return func(yield func(*llm.KVBlock, error) bool) {
		var in raw
		var b llm.KVBlock
		remote(ctx, r.c, yield, func(ctx context.Context, w dynamov1.WorkerClient) (gogrpc.ClientStream, error) {
			return w.Fetch(ctx, &dynamov1.FetchRequest{
				To: address(r.a), HandOff: text(f.HandOff), Contract: contractToWire(&f.Contract), FromBlock: uint32(f.From),
				ToBlock: uint32(f.To), Release: f.Release, SharedMemory: f.SharedMemory,
			})
		}, func(st gogrpc.ClientStream) (*llm.KVBlock, error) {
			if err := st.RecvMsg(&in); err != nil {
				return nil, err
			}
			return &b, decodeBlock(*in.buf, &b)
		})
	}
}

// appendBlock is dynamo.v1.Block by hand: bytes are copied once.
func appendBlock(b []byte, k *llm.KVBlock) []byte {
	varint := func(num protowire.Number, v uint64) {
		if v != 0 {
			b = protowire.AppendVarint(protowire.AppendTag(b, num, protowire.VarintType), v)
		}
	}
	varint(1, uint64(k.Index))
	varint(2, uint64(k.Tokens))
	if k.Hash != [16]byte{} {
		b = protowire.AppendBytes(protowire.AppendTag(b, 3, protowire.BytesType), k.Hash[:])
	}
	if k.Sum != 0 {
		b = protowire.AppendFixed64(protowire.AppendTag(b, 4, protowire.Fixed64Type), k.Sum)
	}
	if k.Region != "" {
		b = protowire.AppendString(protowire.AppendTag(b, 5, protowire.BytesType), text(k.Region))
	}
	varint(6, uint64(k.Offset))
	varint(7, uint64(k.Length))
	if len(k.Bytes) > 0 {
		b = protowire.AppendBytes(protowire.AppendTag(b, 15, protowire.BytesType), k.Bytes)
	}
	return b
}

// decodeBlock reads b into k; k.Bytes lies in b.
func decodeBlock(b []byte, k *llm.KVBlock) error {
	region := k.Region
	*k = llm.KVBlock{}
	return fields(b, func(num protowire.Number, typ protowire.Type, v uint64, p []byte) error {
		switch {
		case num == 1 && typ == protowire.VarintType:
			k.Index = int(v)
		case num == 2 && typ == protowire.VarintType:
			k.Tokens = int(v)
		case num == 3 && typ == protowire.BytesType:
			if len(p) != len(k.Hash) {
				return fmt.Errorf("hash of %d bytes", len(p))
			}
			copy(k.Hash[:], p)
		case num == 4 && typ == protowire.Fixed64Type:
			k.Sum = v
		case num == 5 && typ == protowire.BytesType:
			if region != string(p) {
				region = string(p)
			}
			k.Region = region
		case num == 6 && typ == protowire.VarintType:
			k.Offset = int64(v)
		case num == 7 && typ == protowire.VarintType:
			k.Length = int(v)
		case num == 15 && typ == protowire.BytesType:
			k.Bytes = p
		}
		return nil
	})
}

// Events implements the Worker service.
func (s *Server) Events(r *dynamov1.SubscribeRequest, st gogrpc.ServerStreamingServer[dynamov1.EventBatch]) error {
	return serve(s, st.Context(), r.GetTo(), llm.Events, &llm.Subscribe{After: r.GetAfter()}, func(b *llm.EventBatch) error {
		w := &dynamov1.EventBatch{Sequence: b.Sequence, Snapshot: b.Snapshot, Events: make([]*dynamov1.Event, len(b.Events))}
		for i, e := range b.Events {
			w.Events[i] = &dynamov1.Event{Type: dynamov1.EventType(e.Type), Parent: e.Parent, Hashes: e.Hashes, Tier: text(e.Tier)}
		}
		return st.Send(w)
	})
}

type remoteEvents struct {
	c *Conn
	a transport.Address
}

// Generate implements flow.AsyncEngine.
func (r *remoteEvents) Generate(ctx context.Context, sub *llm.Subscribe) iter.Seq2[*llm.EventBatch, error] {
	return func(yield func(*llm.EventBatch, error) bool) {
		remote(ctx, r.c, yield, func(ctx context.Context, w dynamov1.WorkerClient) (gogrpc.ClientStream, error) {
			return w.Events(ctx, &dynamov1.SubscribeRequest{To: address(r.a), After: sub.After})
		}, func(st gogrpc.ClientStream) (*llm.EventBatch, error) {
			w := new(dynamov1.EventBatch)
			if err := st.RecvMsg(w); err != nil {
				return nil, err
			}
			b := &llm.EventBatch{Sequence: w.GetSequence(), Snapshot: w.GetSnapshot()}
			for _, e := range w.GetEvents() {
				b.Events = append(b.Events, llm.KVEvent{
					Type: llm.EventType(e.GetType()), Parent: e.GetParent(), Hashes: e.GetHashes(), Tier: e.GetTier(),
				})
			}
			return b, nil
		})
	}
}

// Loads implements the Worker service.
func (s *Server) Loads(r *dynamov1.SubscribeRequest, st gogrpc.ServerStreamingServer[dynamov1.Load]) error {
	return serve(s, st.Context(), r.GetTo(), llm.Loads, &llm.Subscribe{After: r.GetAfter()}, func(l *llm.Load) error {
		return st.Send(&dynamov1.Load{
			Sequence: l.Sequence, Running: uint32(l.Running), Waiting: uint32(l.Waiting), PrefillTokens: uint64(l.PrefillTokens),
			BlocksUsed: uint64(l.BlocksUsed), BlocksTotal: uint64(l.BlocksTotal), BlocksCached: uint64(l.BlocksCached),
		})
	})
}

type remoteLoads struct {
	c *Conn
	a transport.Address
}

// Generate implements flow.AsyncEngine.
func (r *remoteLoads) Generate(ctx context.Context, sub *llm.Subscribe) iter.Seq2[*llm.Load, error] {
	return func(yield func(*llm.Load, error) bool) {
		remote(ctx, r.c, yield, func(ctx context.Context, w dynamov1.WorkerClient) (gogrpc.ClientStream, error) {
			return w.Loads(ctx, &dynamov1.SubscribeRequest{To: address(r.a), After: sub.After})
		}, func(st gogrpc.ClientStream) (*llm.Load, error) {
			w := new(dynamov1.Load)
			if err := st.RecvMsg(w); err != nil {
				return nil, err
			}
			return &llm.Load{
				Sequence: w.GetSequence(), Running: int(w.GetRunning()), Waiting: int(w.GetWaiting()), PrefillTokens: int(w.GetPrefillTokens()),
				BlocksUsed: int(w.GetBlocksUsed()), BlocksTotal: int(w.GetBlocksTotal()), BlocksCached: int(w.GetBlocksCached()),
			}, nil
		})
	}
}
