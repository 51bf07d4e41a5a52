package grpc

import (
	"context"
	"errors"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/dynamograph/dynamo/graph/flow"
	dynamov1 "github.com/dynamograph/dynamo/runtime/api/dynamo/v1"
)

// unavailable is a failure of the transport itself: another instance may do it.
func unavailable(instance, reason, msg string, cause error) *flow.Error {
	return &flow.Error{Class: flow.Unavailable, Reason: reason, Msg: msg, Instance: instance, Retry: true, Err: cause}
}

func protocol(instance, msg string) *flow.Error {
	return &flow.Error{Class: flow.BackendProtocol, Reason: "transport.protocol", Msg: msg, Instance: instance, Retry: true}
}

func errorToWire(e *flow.Error, instance string) *dynamov1.Error {
	msg := e.Msg
	if e.Err != nil {
		if msg != "" {
			msg += ": "
		}
		msg += e.Err.Error()
	}
	if e.Instance != "" {
		instance = e.Instance
	}
	valid := func(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }
	return &dynamov1.Error{
		Class: string(e.Class), Reason: valid(e.Reason), Param: valid(e.Param), Message: valid(msg), Instance: valid(instance),
		RetryAfterNano: int64(e.RetryAfter), Retry: e.Retry,
	}
}

func errorFromWire(e *dynamov1.Error, instance string) *flow.Error {
	if e.GetInstance() != "" {
		instance = e.GetInstance()
	}
	class := flow.Class(e.GetClass())
	if _, ok := classCodes[class]; !ok {
		class = flow.Internal
	}
	return &flow.Error{
		Class: class, Reason: e.GetReason(), Param: e.GetParam(), Msg: e.GetMessage(), Instance: instance,
		RetryAfter: time.Duration(e.GetRetryAfterNano()), Retry: e.GetRetry(),
	}
}

var classCodes = map[flow.Class]codes.Code{
	flow.InvalidRequest: codes.InvalidArgument, flow.NotFound: codes.NotFound, flow.PayloadTooLarge: codes.OutOfRange,
	flow.CapacityExhausted: codes.ResourceExhausted, flow.Cancelled: codes.Canceled, flow.Unavailable: codes.Unavailable,
	flow.BackendProtocol: codes.Aborted, flow.DeadlineExceeded: codes.DeadlineExceeded, flow.NotImplemented: codes.Unimplemented,
	flow.Internal: codes.Internal,
}

// toStatus makes the status of a data port's stream.
func toStatus(err error, instance string) error {
	e := flow.AsError(err)
	s := status.New(classCodes[e.Class], e.Reason)
	if d, err := s.WithDetails(errorToWire(e, instance)); err == nil {
		s = d
	}
	return s.Err()
}

// fromStatus reads a failed stream: what the peer said, else what became of the connection.
func (c *Conn) fromStatus(ctx context.Context, err error) *flow.Error {
	instance := c.opt.Instance
	s, ok := status.FromError(err)
	if ok {
		for _, d := range s.Details() {
			if e, ok := d.(*dynamov1.Error); ok {
				return errorFromWire(e, instance)
			}
		}
	}
	if ctx.Err() != nil {
		return flow.AsError(ctx.Err())
	}
	switch s.Code() {
	case codes.Unavailable, codes.Canceled, codes.DeadlineExceeded:
		return c.lost(errors.New(s.Message()))
	case codes.ResourceExhausted:
		return &flow.Error{Class: flow.PayloadTooLarge, Reason: "transport.too_large", Msg: s.Message(), Instance: instance}
	}
	return protocol(instance, s.Code().String()+": "+s.Message())
}
