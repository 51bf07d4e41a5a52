// Package sched decides what an engine computes next: which sequences run, which tokens of them in this step, in which KV blocks, and who
// gives way when blocks run out. It is a step machine: no I/O, clock, goroutine or random number inside; equal calls give equal steps.
// It computes nothing itself.
//
//	for {
//		step := core.Plan(now)      // what to compute; who has run out of time
//		…compute step.Run, start step.Import…
//		core.Commit(work)           // for each work: its tokens have KV now
//		core.Append(seq, token)     // for each work that is Last: the next token
//		core.End(seq)               // where that was the final one
//	}
//
// Policy: sequences rank by priority, then by arrival. Running sequences that produce output come first in a step, one token each; what is
// left of the step's tokens goes to prompts, in rank, in chunks. A waiting sequence starts when there are blocks for all its tokens; none
// overtakes one of higher rank. When a running sequence needs a block and none is left, the lowest in rank gives up all of its own and is
// computed again later.
package sched

import (
	"cmp"
	"slices"
	"time"

	"github.com/dynamograph/dynamo/graph/flow"
	"github.com/dynamograph/dynamo/graph/flow/llm"
	"github.com/dynamograph/dynamo/nodes/kv/block"
	"github.com/dynamograph/dynamo/nodes/kv/hash"
)

// Config bounds a Core. All counts are positive unless said otherwise; Tokens is at least Seqs.
type Config struct {
	Blocks    int // KV blocks
	BlockSize int // tokens
	Context   int // longest sequence in tokens; where Blocks hold less, that counts
	Seqs      int // sequences that run at once
	Tokens    int // tokens of one step
	Queue     int // sequences that may wait beyond those that can start at once; 0: none
	Pins      int // sets of blocks pinned for others at once; 0: none
}

// PinGrace is how long a pin is safe from a sequence that cannot start for want of blocks while nothing runs.
const PinGrace = time.Second

// rowChunk is the most tokens a step of a sequence that wants logits of each token: rows are large.
const rowChunk = 16

// State is where a sequence is.
type State uint8

// The states.
const (
	Waiting   State = iota
	Importing       // blocks are being filled from elsewhere: call Imported
	Running
	Ended
)

// Seq is one sequence. Its maker sets the first group of fields before Submit; from then on it belongs to the Core and is only read.
type Seq struct {
	Tokens   []uint32 // the prompt, to which Append adds; the Core keeps the slice
	Priority int      // higher first
	Deadline time.Time
	Root     hash.Root // of the identities; a zero Root is fine where no KV leaves the process
	Seed     uint64    // of the routing hashes
	Media    []llm.MediaItem
	Rows     bool // logits of each prompt token are wanted: they are computed even where their KV is held, in small chunks
	Import   int  // tokens from the first on whose KV can be fetched from elsewhere; 0: none
	Data     any  // the caller's

	State    State
	Prompt   int     // tokens at Submit
	Computed int     // tokens from the first on that have KV
	Cached   int     // tokens whose KV was found when the sequence first started
	Blocks   []int32 // that hold KV of Tokens, in order

	arrival uint64
	named   int // blocks from the first on that have their name
	started bool
	ids     []hash.ID
	routes  []uint64
	rowsEnd int // tokens whose rows are done
}

// Work is a run of tokens of one sequence to compute in a step: Seq.Tokens[Pos:Pos+N].
type Work struct {
	Seq    *Seq
	Pos, N int
	Last   bool // it ends with the sequence's last token: its logits choose the next one
}

// Step is what to do now. It and its slices are valid until the next Plan.
type Step struct {
	Run     []Work
	Import  []*Seq    // began to import: blocks from Computed on are to be filled
	Expired []*Seq    // ended by their deadline
	Fresh   []int32   // blocks that changed hands: what they hold is void
	Wake    time.Time // where Run is empty: when to plan again at the latest; zero: when something changes
}

// Core is the scheduler. It is not safe for concurrent use.
type Core struct {
	c       Config
	kv      *block.Manager
	running []*Seq // by rank
	waiting []*Seq // by rank
	pins    []*Pin // by age
	step    Step
	arrived uint64
	evicted uint64
	found   uint64
}

// New returns a Core without sequences.
func New(c Config) *Core { return &Core{c: c, kv: block.New(c.Blocks)} }

// Limit is the longest sequence in tokens that the Core takes.
func (c *Core) Limit() int { return min(c.c.Context, c.c.Blocks*c.c.BlockSize) }

func rank(a, b *Seq) int {
	return cmp.Or(cmp.Compare(b.Priority, a.Priority), cmp.Compare(a.arrival, b.arrival))
}

func insert(list []*Seq, s *Seq) []*Seq {
	i, _ := slices.BinarySearchFunc(list, s, rank)
	return slices.Insert(list, i, s)
}

func remove(list []*Seq, s *Seq) []*Seq {
	if i, ok := slices.BinarySearchFunc(list, s, rank); ok {
		return slices.Delete(list, i, i+1)
	}
	return list
}

// Name computes the hashes of the prompt. Submit does it where it was not done; it is apart so that it can be done without the Core.
func (s *Seq) Name(blockSize int) {
	s.ids = s.Root.Identities(s.ids, s.Tokens, blockSize, s.Media)
	for i := len(s.routes); i < len(s.ids); i++ {
		h := hash.Block(s.Tokens[i*blockSize:(i+1)*blockSize], nil, s.Seed)
		if i > 0 {
			h = hash.Next(s.routes[i-1], h)
		}
		s.routes = append(s.routes, h)
	}
}

// IDs returns the identities of the sequence's complete blocks so far.
func (s *Seq) IDs() []hash.ID { return s.ids }

// Submit queues s. It is refused with a *flow.Error where it can never run or where too many wait.
func (c *Core) Submit(s *Seq) *flow.Error {
	if len(s.Tokens) == 0 {
		return invalid("tokens", "the prompt is empty")
	}
	if n := len(s.Tokens) + 1; n > c.Limit() {
		what := "the context holds"
		if c.c.Context > c.Limit() {
			what = "the KV cache (kv.tokens) holds"
		}
		e := flow.Errorf(flow.InvalidRequest, "engine.context_length", "the prompt has %d tokens, %s %d with at least one of output", n-1, what, c.Limit())
		e.Param = "tokens"
		return e
	}
	if room := c.c.Queue + max(0, c.c.Seqs-len(c.running)); len(c.waiting) >= room {
		e := flow.Errorf(flow.CapacityExhausted, "engine.queue_full", "%d sequences run and %d wait: the limit is batch.queue %d", len(c.running), len(c.waiting), c.c.Queue)
		e.Retry, e.RetryAfter = true, time.Second
		return e
	}
	c.arrived++
	s.arrival = c.arrived
	s.Prompt = len(s.Tokens)
	s.State = Waiting
	s.Name(c.c.BlockSize)
	c.waiting = insert(c.waiting, s)
	return nil
}

func invalid(param, msg string) *flow.Error {
	e := flow.Errorf(flow.InvalidRequest, "engine.request", "%s", msg)
	e.Param = param
	return e
}

// End takes s out, whatever its state, and frees its blocks; those of a sequence that imports are freed by Imported.
func (c *Core) End(s *Seq) {
	switch s.State {
	case Waiting:
		c.waiting = remove(c.waiting, s)
	case Running:
		c.running = remove(c.running, s)
		c.free(s)
	case Importing:
		c.running = remove(c.running, s)
	}
	s.State = Ended
}

func (c *Core) free(s *Seq) {
	c.kv.ReleaseAll(s.Blocks)
	s.Blocks = s.Blocks[:0]
	s.Computed, s.named = 0, 0
}

// Imported tells that the import of s has ended and that its first n tokens have KV: what was held before, or more. The rest is computed.
func (c *Core) Imported(s *Seq, n int) {
	s.Import = 0
	if s.State != Importing {
		c.free(s)
		return
	}
	s.State = Running
	s.Computed = max(s.Computed, min(n, len(s.Tokens)-1)) // the last token is computed for its logits
	c.name(s)
}

// Commit tells that the tokens of w have KV.
func (c *Core) Commit(w Work) {
	s := w.Seq
	if s.State != Running || s.Computed != w.Pos {
		return
	}
	s.Computed += w.N
	s.rowsEnd = max(s.rowsEnd, s.Computed)
	c.name(s)
}

// name makes complete blocks known.
func (c *Core) name(s *Seq) {
	full := s.Computed / c.c.BlockSize
	if full > len(s.ids) {
		s.Name(c.c.BlockSize)
	}
	for ; s.named < full; s.named++ {
		i := s.named
		r := block.Route{Hash: s.routes[i]}
		if i > 0 {
			r.Parent = s.routes[i-1]
		}
		s.Blocks[i] = c.kv.Name(s.Blocks[i], s.ids[i], r)
	}
}

// Append adds an output token.
func (c *Core) Append(s *Seq, token uint32) { s.Tokens = append(s.Tokens, token) }

// Flush forgets KV that nobody uses and returns how many blocks that freed.
func (c *Core) Flush() int { return c.kv.Flush() }

// Find appends the blocks that hold the longest run of ids from the first on to dst. They are not referenced: the next Plan may give them
// to others.
func (c *Core) Find(dst []int32, ids []hash.ID) []int32 {
	n := len(dst)
	dst = c.kv.Acquire(dst, ids)
	c.kv.ReleaseAll(dst[n:])
	return dst
}

// Events returns what became of blocks since the last call, as block.Manager.Events.
func (c *Core) Events() []llm.KVEvent { return c.kv.Events() }

// Each calls f for each sequence that has not ended, by rank, the running ones first. f must not change the Core.
func (c *Core) Each(f func(*Seq)) {
	for _, s := range c.running {
		f(s)
	}
	for _, s := range c.waiting {
		f(s)
	}
}

// Stats is a Core in numbers.
type Stats struct {
	llm.Load        // without Sequence
	Pins     int    // pinned hand-offs
	Evicted  uint64 // sequences that gave up their blocks, since the start
	Found    uint64 // prompt tokens whose KV was found, since the start
}

// Stats counts.
func (c *Core) Stats() Stats {
	st := Stats{Pins: len(c.pins), Evicted: c.evicted, Found: c.found}
	st.Running, st.Waiting = len(c.running), len(c.waiting)
	st.BlocksUsed, st.BlocksTotal, st.BlocksCached = c.kv.InUse(), c.kv.Total(), c.kv.Idle()
	c.Each(func(s *Seq) { st.PrefillTokens += max(0, s.Prompt-s.Computed) })
	return st
}
