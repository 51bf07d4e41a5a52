package flow

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Class is the kind of failure that a caller acts on. A class maps to one HTTP status and one gRPC code.
type Class string

// The classes.
const (
	InvalidRequest    Class = "invalid_request"    // 400: the request can never succeed as it is
	NotFound          Class = "not_found"          // 404
	PayloadTooLarge   Class = "payload_too_large"  // 413
	CapacityExhausted Class = "capacity_exhausted" // 429/529: come again, see RetryAfter
	Cancelled         Class = "cancelled"          // 499: the caller went away
	Unavailable       Class = "unavailable"        // 503: nobody can serve this now
	BackendProtocol   Class = "backend_protocol"   // 502: a peer broke the protocol
	DeadlineExceeded  Class = "deadline_exceeded"  // 504
	NotImplemented    Class = "not_implemented"    // 501: typed refusal of a field or verb
	Internal          Class = "internal"           // 500: a fault of ours
)

// Error is a failure on an edge. It crosses processes whole, but for Err, whose text is appended to Msg.
type Error struct {
	Class      Class
	Reason     string        // stable, dotted: "transport.disconnected", "engine.context_length", "router.no_instance"
	Param      string        // the request field at fault, if one is
	Msg        string        // for the client: says what and why, nothing of the inside
	Instance   string        // where it happened, if known
	RetryAfter time.Duration // 0: not said
	Retry      bool          // another instance may do it: migration and fallbacks act on this alone
	Err        error         // cause; may be nil
}

// Error returns the message and the cause.
func (e *Error) Error() string {
	s := e.Msg
	if s == "" {
		s = e.Reason
	}
	if e.Instance != "" {
		s = e.Instance + ": " + s
	}
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	return s
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Errorf makes an Error that cannot be retried elsewhere. A %w verb sets the cause's chain through Msg.
func Errorf(c Class, reason, format string, args ...any) *Error {
	return &Error{Class: c, Reason: reason, Msg: fmt.Sprintf(format, args...)}
}

// AsError returns err as an *Error. A context's end becomes Cancelled or DeadlineExceeded, anything unknown becomes Internal with reason
// "internal.untyped". AsError(nil) is nil.
func AsError(err error) *Error {
	if err == nil {
		return nil
	}
	var e *Error
	switch {
	case errors.As(err, &e):
		return e
	case errors.Is(err, context.DeadlineExceeded):
		return &Error{Class: DeadlineExceeded, Reason: "deadline", Msg: "the request's deadline passed", Err: err}
	case errors.Is(err, context.Canceled):
		return &Error{Class: Cancelled, Reason: "cancelled", Msg: "the request was cancelled", Err: err}
	}
	return &Error{Class: Internal, Reason: "internal.untyped", Msg: "internal error", Err: err}
}
