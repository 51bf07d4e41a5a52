package kind

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"

	"github.com/dynamograph/dynamo/graph/flow"
	"github.com/dynamograph/dynamo/graph/model"
)

// State says whether a node can serve.
type State string

// The states.
const (
	Starting State = "starting"
	Ready    State = "ready"
	Degraded State = "degraded" // serves, but not as the spec wants: the reason says what is missing
	Draining State = "draining"
	Failed   State = "failed"
)

// Host is what the runtime offers to a component; nothing else is ambient. All methods are safe for concurrent use.
type Host interface {
	Graph() string    // name of the graph
	Node() string     // name of the node
	Instance() string // unique in the graph and stable over a restart: "decode-1"
	Log() *slog.Logger
	Metrics() Metrics

	// Model returns the node's model, nil where the node has none.
	Model() *Model
	// Models returns all models of the graph, sorted by name.
	Models() []*Model
	// CacheDir is a folder for what can be made again, shared by all graphs of the user; it exists.
	CacheDir() string
	// Secret returns what a reference of a spec stands for: "env:NAME" an environment variable, "file:PATH" a file of at most 1 MiB. The
	// error names the reference, never the content.
	Secret(ref string) ([]byte, error)
	// Memory makes zeroed, page-aligned memory that processes of this machine can map by its name. size is in bytes.
	Memory(name string, size int64) (Memory, error)
	// OpenMemory maps what another process of this graph made, read-only. It is an error where the machine differs.
	OpenMemory(region string) (Memory, error)

	// Report tells whether the node can serve, and why not. It may be called at any time; the last call counts.
	Report(s State, reason string)

	// ServePort and DialPort are untyped: use Serve and Dial.
	ServePort(port, typ string, engine any, info map[string]string) error
	DialPort(port, typ string) (any, error)
}

// Model is a model of the graph whose bytes are on this machine.
type Model struct {
	Name    string   // key in the graph
	Names   []string // what clients call it; never empty
	Path    string   // of the weights
	SHA256  string   // hex, of the file at Path: the content id
	Context int      // longest sequence in tokens; never above Facts.Context unless that is 0
	Facts   model.Facts

	Family    string // as the author names it: "qwen3"; "" is not said
	Tools     string // parser of tool calls, by any engine's name for it; "" is the family's
	Reasoning string // parser of reasoning, likewise
}

// Memory is a shared mapping. Bytes is valid until Close.
type Memory interface {
	Region() string // what OpenMemory takes
	Bytes() []byte
	Close() error
}

// Metrics makes instruments. Names are dynamo_<noun>_<unit>; asking twice for one name gives the same instrument. The returned functions
// bind label values once; the bound function is cheap and safe for concurrent use.
type Metrics interface {
	Counter(name, help string, labels ...string) func(values ...string) func(add float64)
	Gauge(name, help string, labels ...string) func(values ...string) func(set float64)
	Histogram(name, help string, buckets []float64, labels ...string) func(values ...string) func(observe float64)
	Handler() http.Handler // Prometheus text of this process
}

// ErrNoEdge is wrapped by Dial for a port that no edge of the graph joins.
var ErrNoEdge = errors.New("no edge of the graph joins it")

// Serve answers calls at port with e. info is told to whoever dials.
func Serve[Req, Resp any](h Host, p flow.Port[Req, Resp], port string, e flow.AsyncEngine[Req, Resp], info map[string]string) error {
	return h.ServePort(port, p.Type, e, info)
}

// Dial returns the instances behind port: in this process, on this machine or elsewhere. A port without an edge is an error that names it.
func Dial[Req, Resp any](h Host, p flow.Port[Req, Resp], port string) (flow.Peers[Req, Resp], error) {
	v, err := h.DialPort(port, p.Type)
	if err != nil {
		return nil, err
	}
	peers, ok := v.(flow.Peers[Req, Resp])
	if !ok {
		return nil, fmt.Errorf("node %s: port %q: runtime gave %T for type %q", h.Node(), port, v, p.Type)
	}
	return peers, nil
}
