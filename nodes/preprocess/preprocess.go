package preprocess

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/dynamograph/dynamo/graph/flow"
	"github.com/dynamograph/dynamo/graph/flow/llm"
	"github.com/dynamograph/dynamo/graph/kind"
	"github.com/dynamograph/dynamo/graph/model/gguf"
	"github.com/dynamograph/dynamo/nodes/inflight"
	"github.com/dynamograph/dynamo/nodes/text/family"
	"github.com/dynamograph/dynamo/nodes/text/render"
	"github.com/dynamograph/dynamo/nodes/text/template"
	"github.com/dynamograph/dynamo/nodes/text/tokenizer"
)

// Node is the component. Between Start and Close it answers chats; it has no goroutines of its own.
type Node struct {
	c      Config
	h      kind.Host
	models map[string]*served // by every name
	names  []string           // sorted
	any    *served            // a graph without models takes any name
	next   flow.Peers[*llm.TokensRequest, *llm.TokensDelta]
	turn   atomic.Uint64
	calls  *inflight.Group
	cache  *tokenizer.Cache
}

// cacheBytes bounds what the node remembers of texts that it made tokens of, so that of a conversation only the new turn costs anything.
const cacheBytes = 64 << 20

// served is one model, ready for use.
type served struct {
	name       string // the first of its names
	tok        *tokenizer.Tokenizer
	cache      *tokenizer.Cache // of all models of the node
	template   *template.Template
	noTemplate string // why template is nil
	context    int    // tokens; 0: not known
	vocabulary int    // token ids are below it

	key, source          string // in the graph; of the template
	showsTools           bool   // the template reads them
	tools, reasoning     string // formats of package parse; "": none is known
	think                family.Switch
	ids                  family.CallIDs
	ends                 []uint32 // tokens that end the model's turn
	keepThought, keepAll []uint32 // special tokens that are markup of reasoning, and of tool calls, too; sorted
}

// New returns a node that has not started.
func New(c Config, h kind.Host) *Node {
	return &Node{c: c, h: h, models: map[string]*served{}, calls: inflight.New(h.Node()), cache: tokenizer.NewCache(cacheBytes)}
}

// Start reads the tokenizers and templates of the graph's models and begins to serve.
func (n *Node) Start(ctx context.Context) error {
	if n.calls.Shut() {
		return fmt.Errorf("node %s: started after close", n.h.Node())
	}
	n.h.Report(kind.Starting, "reading tokenizers")
	if err := n.start(ctx); err != nil {
		n.h.Report(kind.Failed, err.Error())
		return fmt.Errorf("node %s: %w", n.h.Node(), err)
	}
	var without []string
	for _, name := range n.names {
		if m := n.models[name]; m.template == nil && name == m.name {
			without = append(without, fmt.Sprintf("model %s takes no chats: %s", name, m.noTemplate))
		}
	}
	if len(without) > 0 {
		n.h.Report(kind.Degraded, strings.Join(without, "; "))
		return nil
	}
	n.h.Report(kind.Ready, "")
	return nil
}

func (n *Node) start(ctx context.Context) error {
	models := n.h.Models()
	if m := n.h.Model(); m != nil { // in a graph of several each path has its own
		models = []*kind.Model{m}
	}
	for _, m := range models {
		if err := ctx.Err(); err != nil {
			return err
		}
		s, err := n.load(m)
		if err != nil {
			return fmt.Errorf("model %s: %w", m.Name, err)
		}
		for _, name := range m.Names {
			n.models[name] = s
			n.names = append(n.names, name)
		}
	}
	slices.Sort(n.names)
	if len(n.models) == 0 {
		t, err := template.Compile(first(n.c.Template, tokenizer.RawTemplate), template.Options{})
		if err != nil {
			return err
		}
		tok := tokenizer.Raw()
		n.any = &served{name: "any", tok: tok, cache: n.cache, template: t, vocabulary: tok.Size(), ends: tok.EOS()}
	}
	var err error
	if n.next, err = kind.Dial(n.h, llm.Tokens, "out"); err != nil {
		return err
	}
	return kind.Serve(n.h, llm.Chat, "in", flow.AsyncEngine[*llm.ChatRequest, *llm.ChatDelta](n), n.info())
}

// info tells callers which models are served: the key is the frontend's.
func (n *Node) info() map[string]string {
	if len(n.names) == 0 {
		return nil // any
	}
	return map[string]string{"models": strings.Join(n.names, "\n")}
}

// load reads what a model's file says of its text.
func (n *Node) load(m *kind.Model) (*served, error) {
	fd, err := os.Open(m.Path)
	if err != nil {
		return nil, err
	}
	defer fd.Close()
	st, err := fd.Stat()
	if err != nil {
		return nil, err
	}
	f, err := gguf.Read(fd, st.Size())
	if err != nil {
		return nil, err
	}
	s := &served{cache: n.cache, context: m.Context, vocabulary: m.Facts.Vocabulary}
	if len(m.Names) > 0 {
		s.name = m.Names[0]
	}
	if s.tok, err = tokenizer.FromGGUF(f); err != nil {
		return nil, err
	}
	if s.vocabulary == 0 {
		s.vocabulary = s.tok.Size()
	}
	if s.context == 0 {
		s.context = m.Facts.Context
	}
	source := n.c.Template
	if source == "" {
		source, _ = f.String("tokenizer.chat_template")
	}
	general, _ := f.String("general.name")
	if source == "" { // its authors may publish a program instead
		if card, ok := cardOf(m, general); ok {
			source, _ = render.Find(card.Template)
		}
	}
	if source == "" {
		s.noTemplate, s.ends = "it carries no chat template", s.tok.EOS()
		return s, nil
	}
	special := map[string]string{}
	for name, key := range map[string]string{"bos_token": "bos", "eos_token": "eos", "pad_token": "padding", "unk_token": "unknown"} {
		if id, ok := f.Uint("tokenizer.ggml." + key + "_token_id"); ok && id < uint64(s.tok.Size()) {
			special[name] = s.tok.Piece(uint32(id))
		}
	}
	s.source = source
	if err := s.speaks(m, general); err != nil {
		return nil, err
	}
	if s.template, err = template.Compile(source, template.Options{Special: special}); err != nil {
		s.noTemplate = err.Error()
		n.h.Log().Warn("chat template refused", "model", s.name, "error", err)
		return s, nil
	}
	for _, w := range s.template.Warnings() {
		n.h.Log().Warn("chat template", "model", s.name, "finding", w)
	}
	return s, nil
}

func first(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

// Drain takes no new requests and waits for those in flight.
func (n *Node) Drain(ctx context.Context) error {
	n.h.Report(kind.Draining, "")
	return n.calls.Drain(ctx)
}

// Close ends the requests in flight and waits for them.
func (n *Node) Close() error {
	n.calls.Close()
	return nil
}

// pick takes turns among the instances behind, but for a pin.
func (n *Node) pick(pin string) (flow.Peer[*llm.TokensRequest, *llm.TokensDelta], error) {
	list := n.next.List()
	if pin != "" {
		for _, p := range list {
			if p.ID == pin {
				return p, nil
			}
		}
	}
	if len(list) == 0 {
		return flow.Peer[*llm.TokensRequest, *llm.TokensDelta]{}, flow.Errorf(flow.Unavailable, "preprocess.no_instance",
			"no instance behind node %s is up", n.h.Node())
	}
	return list[n.turn.Add(1)%uint64(len(list))], nil
}
