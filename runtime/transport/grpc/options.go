// Package grpc carries calls between processes as dynamo.v1 over gRPC, on unix sockets or TCP. It is the only code that maps package llm
// to protobuf.
//
// Requests of the tokens type share one long-lived stream for a pair of processes: what all requests gained since the last send goes into
// one message, in a hand-written codec that reuses its structs. Each request has a window of deltas, so that a slow reader stalls only its
// own engine. Pings on that stream find a peer that is stopped or cut off. Data ports (kv, events, load) are streams of their own on the
// same connection.
package grpc

import (
	"crypto/tls"
	"log/slog"
	"time"
)

// Options configure a Server or a Conn; the zero value is ready to use.
type Options struct {
	// Instance is set as flow.Error.Instance where an error names none. A Server takes its own, a Conn that of its peer.
	Instance string
	// Log gets what no caller is told, such as the stack of a panic. nil: nothing is logged.
	Log *slog.Logger
	// TLS is used as it is: certificates, roots and client authentication are the caller's. nil: plain text, for unix sockets and loopback.
	TLS *tls.Config

	// Window is how many deltas of one request may be under way or unread. 0: 64.
	Window int
	// MaxRequests bounds the concurrent requests of one peer on one Server; beyond it they are refused. 0: 1024.
	MaxRequests int
	// MaxMessage bounds one message in bytes: a request, or a KV block. 0: 64 MiB.
	MaxMessage int

	// ConnectTimeout bounds one attempt to connect, the peer's hello included. 0: 3 s.
	ConnectTimeout time.Duration
	// PingEvery and PingTimeout find a peer that does not answer: it is given up when nothing was heard for their sum. 0: 1 s and 3 s.
	PingEvery, PingTimeout time.Duration
}

const (
	minBackoff = 50 * time.Millisecond // between attempts to connect; a call may cut it short
	maxBackoff = 2 * time.Second
	maxCredit  = 1 << 16   // deltas: no peer gets more, whatever it says
	batchBytes = 128 << 10 // a message is closed when it is longer

	closeTimeout = 2 * time.Second // for peers to take what was said before Close
)

func (o Options) withDefaults() Options {
	def := func(p *int, v int) {
		if *p <= 0 {
			*p = v
		}
	}
	defD := func(p *time.Duration, v time.Duration) {
		if *p <= 0 {
			*p = v
		}
	}
	def(&o.Window, 64)
	def(&o.MaxRequests, 1024)
	def(&o.MaxMessage, 64<<20)
	defD(&o.ConnectTimeout, 3*time.Second)
	defD(&o.PingEvery, time.Second)
	defD(&o.PingTimeout, 3*time.Second)
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return o
}
