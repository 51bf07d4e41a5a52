// Package kind says how a kind of node is made and found, and what the runtime offers to a running node. The compiler names no kind: all
// that it knows of one is here. Implementations of Host live in runtime.
package kind

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/dynamograph/dynamo/graph"
	"github.com/dynamograph/dynamo/graph/diag"
	"github.com/dynamograph/dynamo/graph/model"
	"github.com/dynamograph/dynamo/graph/plan"
)

// Dir is the direction of a port as an edge is drawn.
type Dir string

// The directions.
const (
	In  Dir = "in"
	Out Dir = "out"
)

// Word returns "input" or "output".
func (d Dir) Word() string { return string(d) + "put" }

// Port is one port of a kind.
type Port struct {
	Name string // one word, unique in its direction: "prefill"
	Type string // "chat", "tokens", "kv", "tier", "events", "load", "scale", "media"
	Dir  Dir
	Need bool // an edge must be there
	Many bool // several edges may be there
	// Signals are names of the catalogue Signals: of an output what the node gives there, of an input what every node that is joined there
	// must give.
	Signals []string
	// Doc says what an author must know of the port beyond its type, as a clause: "it takes text only". Findings about edges that do not fit
	// show it.
	Doc string
}

// Serves reports whether the node answers calls at p: call ports are answered by the edge's To, data ports by its From.
func (p Port) Serves() bool {
	if p.Type == "chat" || p.Type == "tokens" {
		return p.Dir == In
	}
	return p.Dir == Out
}

// Kind describes one kind of node. C is its configuration: a struct with JSON names equal to the schema's fields.
type Kind[C any] struct {
	Name    string // one word: "decode"
	Summary string // one line
	// Schema is the CUE of package spec that defines the user's config: a closed definition named after the kind ("#Decode") with
	// documented optional fields (unit, range, default in words). It sets kind, may embed #worker, and holds no defaults.
	Schema string
	// Colocate says that the node runs in the process of the node that calls it, and is never replicated by itself.
	Colocate bool
	// NeedsModel says that the node serves or reads a model of the graph.
	NeedsModel bool
	// Converts names two call types, "chat" and "tokens": where an edge leads from a port of the first to one of the second, the compiler
	// inserts a node of this kind. It has one port of each. Both empty: it is never inserted so. At most one kind converts a pair.
	Converts [2]string
	// Wraps names a call type: the compiler inserts a node of this kind at the top of each path of that type, directly below the node
	// that converts to it. It has one port in and one out, both of that type. Several such kinds are stacked in the order of their names.
	Wraps   string
	Default func() C                        // the config where the spec says nothing
	Ports   func(C) []Port                  // in the order in which they are listed
	Check   func(C, Site) diag.List         // what only this kind knows; pure; nil is "nothing"
	Size    func(C, model.Facts) plan.Needs // one replica; nil is "nothing to speak of"
	New     func(C, Host) (Component, error)
	// Contract is what the node says about the edges at its data port (type kv, events, media, …). Terms that both ends say must fit. Pure;
	// nil says nothing.
	Contract func(c C, port string) []Term
	// Lacks names what the schema takes and Check accepts, but New cannot do yet. `vet` notes it; running and compiling for a target that
	// runs it are refused. A kind without New lacks everything: its Lacks need not say so. Nil: nothing.
	Lacks func(C) []Lack
	// Limits are the bounds that the config puts on requests; the compiler compares them along the path of a request. Nil: none.
	Limits func(C) []Limit
	// Features are what clients may ask of the model behind the node (see Features), as far as that is known; known false says nothing is
	// known, and is no finding. Nil: the node neither adds nor takes features, as a router does.
	Features func(C) (have []string, known bool)
	// Parses reports whether the node reads tool calls (what is "tools") or reasoning ("reasoning") out of answers that are written in a format,
	// by any engine's name for its parser. Nil: it reads none.
	Parses func(what, format string) bool
	// Guard says what keeps strangers from a node that listens: "keys", "mtls", or "insecure" where the author spells out that nothing
	// does. Empty: nothing. Nil: the node does not listen.
	Guard func(C) string
	// Tenants says what the node does with tenants: "tells" them apart, or "mixes" them in what it keeps, as a cache that all share; field
	// is the config field that says so. Nil or "": neither.
	Tenants func(C) (does, field string)
	// Calls gives the URLs of servers outside of the graph that one replica calls; a target lets it reach them. Nil: none.
	Calls func(C) []string
	// Names gives the names that clients use for models that the node serves and the graph does not have, with the names that its server has
	// for them. Nil or none: it has none of its own.
	Names func(C) map[string]string
	// Scales gives the bounds of the replicas of other nodes, by name, between which the node may change them; Want does not count. Nil: none.
	Scales func(C) map[string]plan.Replicas
	// Listen gives the addresses ("127.0.0.1:8000") that one replica binds for clients outside of the graph, by the config field that sets
	// them ("listen"). A target may write another host into that field: in a pod it is all interfaces. The first of them answers GET /live
	// and /ready over HTTP. Nil: none.
	Listen func(C) map[string]string
}

// Term is one thing that a node says about an edge.
type Term struct {
	Name  string // what is said, in the field's words: "block size"; see Transport
	Field string // config field that says it, so that a finding can point there: "kv.block"; "" where it follows from others
	// Values is one value, or for Meet all that would do. None, with a Field, says that nothing is said yet: where the rule is Same, the
	// compiler sets the field to what the other end says.
	Values []string
	Rule   Rule
}

// Transport is the Name of the term that says how a node moves what flows over its edge. The compiler chooses one that both ends have.
const Transport = "transport"

// Rule is how the two ends' values of a Term fit.
type Rule int

// The rules.
const (
	Same    Rule = iota // one value each, equal
	Divides             // one whole number each, the smaller divides the larger
	Meet                // at least one value in common
)

// Lack is a part of a config that the build cannot run yet.
type Lack struct {
	Field string // "" for the node as a whole
	Msg   string // what, and what to do instead; a clause: `policy "kv" is not run yet`
}

// Limit is one bound.
type Limit struct {
	Bound Bound
	Field string // config field that sets it
	Value int64  // nanoseconds, bytes or requests; 0: unbounded
}

// Bound says what a Limit bounds.
type Bound string

// The bounds, in the order in which a request meets them.
const (
	Body  Bound = "body"  // bytes of a request's body
	Admit Bound = "admit" // requests in progress that one replica takes
	Total Bound = "total" // nanoseconds that a request may take
	Queue Bound = "queue" // nanoseconds that a request waits for an instance
	Begin Bound = "begin" // nanoseconds without a first answer after which what is below counts as failed
	First Bound = "first" // nanoseconds that the node takes for a first answer by its own config
	Stall Bound = "stall" // nanoseconds between two answers after which what is below counts as failed
	Step  Bound = "step"  // nanoseconds that the node takes between two answers by its own config
	Run   Bound = "run"   // requests that one replica computes at once
	Wait  Bound = "wait"  // requests that one replica lets wait
)

// Signals is the catalogue of what nodes may tell of themselves at ports of type load and events, with units.
var Signals = map[string]string{
	"running":       "sequences that run",
	"waiting":       "sequences that wait",
	"prefillTokens": "prompt tokens admitted and not yet computed",
	"blocksUsed":    "KV blocks in use, share of all, 0 to 1",
	"blocksCached":  "KV blocks that are kept for reuse, share of all, 0 to 1",
	"blocks":        "KV blocks stored and removed, by hash, in order",
	"ttft":          "time to the first token, 95th percentile, seconds",
	"itl":           "time between two tokens, 95th percentile, seconds",
	"requests":      "requests a second",
}

// Features is the catalogue of what clients may ask of a model.
var Features = map[string]string{
	"tools":      "tool calls",
	"structured": "answers bound to a JSON schema, regular expression, choice or grammar",
	"logprobs":   "log probabilities of tokens",
	"reasoning":  "reasoning apart from the answer",
	"lora":       "adapters",
	"images":     "images in the prompt",
	"audio":      "audio in the prompt",
	"embeddings": "embeddings of texts",
}

// Site is what a Check sees of the graph around its node.
type Site struct {
	Graph *graph.Graph // with defaults, inserted stages and resolved ports
	Node  *graph.Node
	Facts *model.Facts // of the node's model; nil where unknown
	// Gives returns the signals that a node gives at its outputs; nil where the compiler does not tell.
	Gives func(node string) []string
	// Limits returns the limits of a node; nil where the compiler does not tell.
	Limits func(node string) []Limit
	// Names returns the names of models that a node serves and the graph does not have, as its kind gives them; nil where the compiler does
	// not tell.
	Names func(node string) map[string]string
}

// Field returns the place of a field that the author set, or of the nearest above it that they did, or the node's.
func (s Site) Field(path string) diag.Pos {
	for path != "" {
		if p, ok := s.Node.Fields[path]; ok {
			return p
		}
		path = path[:max(strings.LastIndexByte(path, '.'), 0)]
	}
	return s.Node.Pos
}

// Finding starts an error about a config field ("kv.block"): its place, and a message that begins with its path.
func (s Site) Finding(code, field, hint, format string, args ...any) diag.Diagnostic {
	d := diag.Diagnostic{Code: code, Pos: s.Field(field), Path: "nodes." + s.Node.Name + "." + field, Hint: hint}
	d.Msg = d.Path + ": " + fmt.Sprintf(format, args...)
	if _, set := s.Node.Fields[field]; set {
		label := field[strings.LastIndexByte(field, '.')+1:]
		if _, err := strconv.Atoi(label); err != nil { // an item of a list has no label
			d.Len = len(label)
		}
	}
	return d
}

// Component is a running node. Start returns once it can accept or refuse work; whether it can serve is a State that it reports through
// Host. Drain takes no new work and returns when what is in flight has ended or ctx has. Close is safe in any state, twice too, and waits
// for every goroutine of the component.
type Component interface {
	Start(ctx context.Context) error
	Drain(ctx context.Context) error
	Close() error
}

// Progress is implemented by a Component that can tell when it hangs. Stuck returns for how long it has had work without getting on with it;
// 0 while it gets on, or has none. It does not block, and is safe for concurrent use.
type Progress interface{ Stuck() time.Duration }
