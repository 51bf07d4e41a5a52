// Package kindtest is a kind.Host in memory, for tests of nodes and engines. Hosts of one process share memory regions by name, so that
// a test may play both ends of a hand-off. It has no transport: ports that are served are kept, ports that are dialled are set by the
// test.
package kindtest

import (
	"bytes"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"unsafe"

	"github.com/dynamograph/dynamo/graph/kind"
)

// Host is a kind.Host. Its fields may be set before the host is given away; its methods are safe for concurrent use.
type Host struct {
	GraphName string         // "test"
	AllModels []*kind.Model  // what Models returns
	Dialled   map[string]any // what DialPort returns, by port: a flow.Peers of the port's types
	Served    map[string]any // what was given to ServePort, by port; read it under no concurrent ServePort
	Infos     map[string]map[string]string
	Secrets   map[string]string // what Secret returns, by reference

	node, instance string
	model          *kind.Model
	cache          func() string
	log            *slog.Logger
	logs           lockedBuffer
	metrics        *Metrics

	mu      sync.Mutex
	reports []Report
	changed chan struct{}
}

// Report is one call of Host.Report.
type Report struct {
	State  kind.State
	Reason string
}

var _ kind.Host = (*Host)(nil)

// NewHost returns a host of one instance. model may be nil. CacheDir is made in t.TempDir on first use.
func NewHost(t testing.TB, node, instance string, model *kind.Model) *Host {
	h := &Host{
		GraphName: "test", Dialled: map[string]any{}, Served: map[string]any{}, Infos: map[string]map[string]string{},
		node: node, instance: instance, model: model, cache: sync.OnceValue(t.TempDir), metrics: &Metrics{}, changed: make(chan struct{}),
	}
	if model != nil {
		h.AllModels = []*kind.Model{model}
	}
	h.log = slog.New(slog.NewTextHandler(&h.logs, &slog.HandlerOptions{Level: slog.LevelDebug}))
	return h
}

// Secret returns what Secrets holds.
func (h *Host) Secret(ref string) ([]byte, error) {
	v, ok := h.Secrets[ref]
	if !ok {
		return nil, fmt.Errorf("%q: not there", ref)
	}
	return []byte(v), nil
}

// Graph returns GraphName.
func (h *Host) Graph() string { return h.GraphName }

// Node returns the node's name.
func (h *Host) Node() string { return h.node }

// Instance returns the instance's name.
func (h *Host) Instance() string { return h.instance }

// Log returns a logger whose lines Logs returns.
func (h *Host) Log() *slog.Logger { return h.log }

// Logs returns everything logged so far.
func (h *Host) Logs() string { return h.logs.String() }

// Metrics returns instruments whose values Metrics.Value returns.
func (h *Host) Metrics() kind.Metrics { return h.metrics }

// Metric returns the value of an instrument; see Metrics.Value.
func (h *Host) Metric(name string, labels ...string) float64 { return h.metrics.Value(name, labels...) }

// Model returns the node's model.
func (h *Host) Model() *kind.Model { return h.model }

// Models returns AllModels.
func (h *Host) Models() []*kind.Model { return h.AllModels }

// CacheDir returns a folder of the test.
func (h *Host) CacheDir() string { return h.cache() }

// Report records the state.
func (h *Host) Report(s kind.State, reason string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.reports = append(h.reports, Report{s, reason})
	close(h.changed)
	h.changed = make(chan struct{})
}

// Reports returns all reports so far, and a channel that is closed by the next.
func (h *Host) Reports() ([]Report, <-chan struct{}) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return append([]Report(nil), h.reports...), h.changed
}

// State returns the last reported state, or "".
func (h *Host) State() kind.State {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.reports) == 0 {
		return ""
	}
	return h.reports[len(h.reports)-1].State
}

// ServePort keeps engine in Served.
func (h *Host) ServePort(port, typ string, engine any, info map[string]string) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if _, ok := h.Served[port]; ok {
		return fmt.Errorf("node %s: port %q of type %q: served twice", h.node, port, typ)
	}
	h.Served[port], h.Infos[port] = engine, info
	return nil
}

// DialPort returns what the test set in Dialled.
func (h *Host) DialPort(port, typ string) (any, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if p, ok := h.Dialled[port]; ok {
		return p, nil
	}
	return nil, fmt.Errorf("node %s: port %q of type %q: %w", h.node, port, typ, kind.ErrNoEdge)
}

var (
	regionMu  sync.Mutex
	regions   = map[string][]byte{}
	regionSeq atomic.Uint64
)

type memory struct {
	region string
	bytes  []byte
	owner  bool
}

func (m *memory) Region() string { return m.region }
func (m *memory) Bytes() []byte  { return m.bytes }
func (m *memory) Close() error {
	if m.owner {
		regionMu.Lock()
		defer regionMu.Unlock()
		delete(regions, m.region)
	}
	return nil
}

// Memory returns page-aligned memory of this process; its region can be opened until it is closed.
func (h *Host) Memory(name string, size int64) (kind.Memory, error) {
	const page = 4096
	if size < 0 {
		return nil, fmt.Errorf("memory %q: size %d", name, size)
	}
	b := make([]byte, size+page)
	off := (page - int(uintptr(unsafe.Pointer(&b[0]))%page)) % page
	m := &memory{fmt.Sprintf("kindtest-%d-%s-%s", regionSeq.Add(1), h.instance, name), b[off : off+int(size) : off+int(size)], true}
	regionMu.Lock()
	defer regionMu.Unlock()
	regions[m.region] = m.bytes
	return m, nil
}

// OpenMemory returns the memory of any host in this process.
func (h *Host) OpenMemory(region string) (kind.Memory, error) {
	regionMu.Lock()
	defer regionMu.Unlock()
	b, ok := regions[region]
	if !ok {
		return nil, fmt.Errorf("memory region %q: not found on this machine", region)
	}
	return &memory{region: region, bytes: b}, nil
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}
