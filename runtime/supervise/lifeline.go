package supervise

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"sync"
	"syscall"
	"time"
)

// ErrOrphan is the cause of a child's context when its supervisor is gone.
var ErrOrphan = errors.New("the supervisor is gone")

// ExitConfig is the exit status of a child that cannot run as it is configured: Run gives up where the graph never was ready.
const ExitConfig = 78

// beatEvery is well below any Limits.Silence in use.
const beatEvery = 2 * time.Second

// Status is what a child tells its supervisor, a JSON object a line. A line without a node is a beat.
type Status struct {
	Node   string `json:"node,omitempty"`
	State  string `json:"state,omitempty"` // kind.State
	Reason string `json:"reason,omitempty"`
	Addr   string `json:"addr,omitempty"` // for people: a URL or a socket
	Note   string `json:"note,omitempty"` // something that the user should read once
}

// Lifeline is a child's side of the two pipes to its supervisor: one that ends with the supervisor, one for Status lines.
type Lifeline struct {
	in, out *os.File
	mu      sync.Mutex
	w       *bufio.Writer
	wg      sync.WaitGroup
	stop    chan struct{}
}

// OpenLifeline takes the pipes that a Supervisor passes as descriptors 3 and 4. The returned context ends with cause ErrOrphan when the
// supervisor does. It is called once.
func OpenLifeline(ctx context.Context) (context.Context, *Lifeline) {
	ctx, cancel := context.WithCancelCause(ctx)
	_ = syscall.SetNonblock(3, true) // so that Close ends a read
	l := &Lifeline{in: os.NewFile(3, "lifeline"), out: os.NewFile(4, "status"), stop: make(chan struct{})}
	l.w = bufio.NewWriter(l.out)
	l.wg.Go(func() {
		_, _ = io.Copy(io.Discard, l.in) // ends when the supervisor does, or at Close
		cancel(ErrOrphan)
	})
	l.wg.Go(func() {
		t := time.NewTicker(beatEvery)
		defer t.Stop()
		for {
			select {
			case <-l.stop:
				return
			case <-t.C:
				l.Tell(Status{})
			}
		}
	})
	return ctx, l
}

// Tell sends s. A supervisor that is gone is no error: the context says so.
func (l *Lifeline) Tell(s Status) {
	b, err := json.Marshal(s)
	if err != nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	_, _ = l.w.Write(append(b, '\n'))
	_ = l.w.Flush()
}

// Close ends the lifeline's goroutines and waits for them.
func (l *Lifeline) Close() {
	close(l.stop)
	_ = l.in.Close()
	l.wg.Wait()
	_ = l.out.Close()
}
