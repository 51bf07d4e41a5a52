package grpc

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"time"

	gogrpc "google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/dynamograph/dynamo/graph/flow"
	"github.com/dynamograph/dynamo/graph/flow/llm"
	"github.com/dynamograph/dynamo/runtime/transport"
)

// Conn is a transport.Conn to one process.
type Conn struct {
	target string
	opt    Options
	ctx    context.Context // ends with Close
	cancel context.CancelFunc
	wg     sync.WaitGroup
	kick   chan struct{} // ends the wait between attempts

	mu       sync.Mutex
	started  bool
	closed   bool
	session  *session
	attempt  chan struct{} // closed when the attempt under way, or the next, has ended
	lastErr  error         // of the last attempt
	failedAt time.Time     // while waiting for the next attempt; else zero
}

var _ transport.Conn = (*Conn)(nil)

// Dial returns a Conn to target, "unix:/path" or "host:port". It connects when first used.
func Dial(target string, o Options) *Conn {
	ctx, cancel := context.WithCancel(context.Background())
	return &Conn{
		target: target, opt: o.withDefaults(), ctx: ctx, cancel: cancel, kick: make(chan struct{}, 1), attempt: make(chan struct{}),
	}
}

// Engine implements transport.Conn. The engine is that of the port type: tokens, kv, events or load.
func (c *Conn) Engine(a transport.Address, typ string) (any, error) {
	switch typ {
	case llm.Tokens.Type:
		return &remoteTokens{c, a}, nil
	case llm.KV.Type:
		return &remoteKV{c, a}, nil
	case llm.Events.Type:
		return &remoteEvents{c, a}, nil
	case llm.Loads.Type:
		return &remoteLoads{c, a}, nil
	}
	return nil, fmt.Errorf("port %s: type %q does not cross processes", a, typ)
}

// Healthy implements transport.Conn.
func (c *Conn) Healthy() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.session != nil && c.session.alive()
}

// Close implements transport.Conn.
func (c *Conn) Close() error {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	c.cancel()
	c.wg.Wait()
	return nil
}

// get returns the live session. It waits for an attempt to connect that is under way or due, not for more than one.
func (c *Conn) get(ctx context.Context) (*session, *flow.Error) {
	for waited := false; ; waited = true {
		c.mu.Lock()
		if c.closed {
			c.mu.Unlock()
			return nil, c.errClosed()
		}
		if s := c.session; s != nil && s.alive() {
			c.mu.Unlock()
			return s, nil
		}
		if !c.started {
			c.started = true
			c.wg.Go(c.keep)
		}
		// The last attempt failed just now: another would not fare better.
		if waited || !c.failedAt.IsZero() && time.Since(c.failedAt) < minBackoff {
			err := c.lastErr
			c.mu.Unlock()
			return nil, unavailable(c.opt.Instance, "transport.cannot_connect", "cannot connect to "+c.target, err)
		}
		attempt := c.attempt
		c.mu.Unlock()
		select {
		case c.kick <- struct{}{}:
		default:
		}
		select {
		case <-attempt:
		case <-ctx.Done():
			return nil, flow.AsError(ctx.Err())
		case <-c.ctx.Done():
			return nil, c.errClosed()
		}
	}
}

// lost says why a session or a stream on it ended.
func (c *Conn) lost(cause error) *flow.Error {
	if c.ctx.Err() != nil {
		return c.errClosed()
	}
	return unavailable(c.opt.Instance, "transport.disconnected", "the connection was lost", cause)
}

func (c *Conn) errClosed() *flow.Error {
	return unavailable(c.opt.Instance, "transport.closed", "the connection was closed on this side", nil)
}

// keep holds a session until Close: it connects at once when one is lost, then with growing pauses that a call cuts short.
func (c *Conn) keep() {
	pause := minBackoff
	for c.ctx.Err() == nil {
		s, err := c.connect()
		c.mu.Lock()
		c.session, c.lastErr, c.failedAt = s, err, time.Time{}
		if err != nil {
			c.failedAt = time.Now()
		}
		close(c.attempt)
		c.attempt = make(chan struct{})
		c.mu.Unlock()
		if err == nil {
			began := time.Now()
			s.run()
			c.mu.Lock()
			c.session = nil
			c.mu.Unlock()
			if time.Since(began) > maxBackoff { // one that is lost at once is no better than none
				pause = minBackoff
				continue
			}
		}
		timer := time.NewTimer(pause)
		select {
		case <-c.kick:
		case <-timer.C:
			pause = min(2*pause, maxBackoff)
		case <-c.ctx.Done():
		}
		timer.Stop()
		c.mu.Lock()
		c.failedAt = time.Time{}
		c.mu.Unlock()
	}
}

// connect makes one attempt. The session ends with c.ctx.
func (c *Conn) connect() (*session, error) {
	creds := insecure.NewCredentials()
	if c.opt.TLS != nil {
		creds = credentials.NewTLS(c.opt.TLS)
	}
	path, unix := strings.CutPrefix(c.target, "unix:")
	opts := []gogrpc.DialOption{
		gogrpc.WithTransportCredentials(creds),
		gogrpc.WithDefaultCallOptions(
			gogrpc.ForceCodecV2(newCodec()), gogrpc.MaxCallRecvMsgSize(c.opt.MaxMessage), gogrpc.MaxCallSendMsgSize(c.opt.MaxMessage)),
		gogrpc.WithContextDialer(func(ctx context.Context, addr string) (net.Conn, error) {
			var d net.Dialer
			if unix {
				return d.DialContext(ctx, "unix", path)
			}
			return d.DialContext(ctx, "tcp", addr)
		}),
		gogrpc.WithInitialWindowSize(1 << 20), gogrpc.WithInitialConnWindowSize(4 << 20),
		gogrpc.WithDisableRetry(), gogrpc.WithDisableServiceConfig(), gogrpc.WithNoProxy(),
		gogrpc.WithIdleTimeout(0),
	}
	target := c.target
	if unix {
		target = "peer"
		opts = append(opts, gogrpc.WithAuthority("localhost"))
	}
	cc, err := gogrpc.NewClient("passthrough:///"+target, opts...)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(c.ctx)
	late := time.AfterFunc(c.opt.ConnectTimeout, cancel)
	s, err := newSession(ctx, cancel, cc, c)
	if !late.Stop() && err == nil {
		err = context.DeadlineExceeded // the hello came with the timer
	}
	if err != nil {
		if ctx.Err() != nil && c.ctx.Err() == nil {
			err = fmt.Errorf("no answer within %s", c.opt.ConnectTimeout)
		}
		cancel()
		return nil, errors.Join(err, cc.Close())
	}
	return s, nil
}
