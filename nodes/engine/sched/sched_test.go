package sched_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dynamograph/dynamo/graph/flow"
	"github.com/dynamograph/dynamo/nodes/engine/sched"
	"pgregory.net/rapid"
)

var start = time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)

func tokens(seed, n int) []uint32 {
	out := make([]uint32, n)
	for i := range out {
		out[i] = uint32(seed*1000 + i)
	}
	return out
}

func seq(name string, seed, n int) *sched.Seq {
	return &sched.Seq{Tokens: tokens(seed, n), Data: name}
}

func submit(t *testing.T, c *sched.Core, seqs ...*sched.Seq) {
	t.Helper()
	for _, s := range seqs {
		if err := c.Submit(s); err != nil {
			t.Fatalf("%v: %v", s.Data, err)
		}
	}
}

// text shows a step: "a[0:5] b[7:8]!" where ! marks the last token.
func text(st *sched.Step) string {
	var out []string
	for _, w := range st.Run {
		s := fmt.Sprintf("%v[%d:%d]", w.Seq.Data, w.Pos, w.Pos+w.N)
		if w.Last {
			s += "!"
		}
		out = append(out, s)
	}
	for _, s := range st.Import {
		out = append(out, fmt.Sprintf("import %v", s.Data))
	}
	for _, s := range st.Expired {
		out = append(out, fmt.Sprintf("expired %v", s.Data))
	}
	return strings.Join(out, " ")
}

// step plans, checks, commits, and appends a token to whoever ended its tokens.
func step(t *testing.T, c *sched.Core, now time.Time, want string) {
	t.Helper()
	st := c.Plan(now)
	if got := text(st); got != want {
		t.Fatalf("step %q, want %q", got, want)
	}
	for _, w := range st.Run {
		c.Commit(w)
		if w.Last {
			c.Append(w.Seq, uint32(9_000_000+len(w.Seq.Tokens)))
		}
	}
}

func TestChunksAndBatch(t *testing.T) {
	c := sched.New(sched.Config{Blocks: 32, BlockSize: 4, Context: 100, Seqs: 3, Tokens: 8, Queue: 10})
	a, b, d, e := seq("a", 1, 5), seq("b", 2, 13), seq("d", 3, 2), seq("e", 4, 2)
	submit(t, c, a, b, d, e)
	step(t, c, start, "a[0:5]! b[0:3]")
	step(t, c, start, "a[5:6]! b[3:10]")
	step(t, c, start, "a[6:7]! b[10:13]! d[0:2]!")
	step(t, c, start, "a[7:8]! b[13:14]! d[2:3]!") // e waits: three run
	c.End(a)
	step(t, c, start, "b[14:15]! d[3:4]! e[0:2]!")
	if st := c.Stats(); st.Running != 3 || st.Waiting != 0 || st.PrefillTokens != 0 {
		t.Fatalf("stats %+v", st)
	}
}

func TestPriorityThenArrival(t *testing.T) {
	c := sched.New(sched.Config{Blocks: 32, BlockSize: 4, Context: 100, Seqs: 1, Tokens: 8, Queue: 10})
	a, b, d, e := seq("a", 1, 2), seq("b", 2, 2), seq("d", 3, 2), seq("e", 4, 2)
	d.Priority, e.Priority = 1, 1
	submit(t, c, a, b, d, e)
	for _, want := range []string{"d[0:2]!", "e[0:2]!", "a[0:2]!", "b[0:2]!"} {
		st := c.Plan(start)
		if text(st) != want {
			t.Fatalf("got %q, want %q", text(st), want)
		}
		c.End(st.Run[0].Seq)
	}
}

func TestPrefixIsReused(t *testing.T) {
	c := sched.New(sched.Config{Blocks: 16, BlockSize: 4, Context: 64, Seqs: 2, Tokens: 64, Queue: 10})
	a := seq("a", 1, 8)
	submit(t, c, a)
	step(t, c, start, "a[0:8]!")
	c.End(a)
	b, d := seq("b", 1, 8), seq("d", 1, 11)
	submit(t, c, b, d)
	step(t, c, start, "b[4:8]! d[8:11]!") // the last token of b is computed, with its block
	if b.Cached != 4 || d.Cached != 8 {
		t.Fatalf("cached %d and %d", b.Cached, d.Cached)
	}
	if b.Blocks[0] != d.Blocks[0] || b.Blocks[1] != d.Blocks[1] {
		t.Fatalf("equal blocks are held twice: %v and %v", b.Blocks, d.Blocks)
	}
	c.End(b)
	c.End(d)
	rows := seq("rows", 1, 20)
	rows.Rows = true
	submit(t, c, rows)
	step(t, c, start, "rows[0:16]")
	step(t, c, start, "rows[16:20]!")
}

func TestOtherRootSharesNothing(t *testing.T) {
	c := sched.New(sched.Config{Blocks: 16, BlockSize: 4, Context: 64, Seqs: 2, Tokens: 64, Queue: 10})
	a, b := seq("a", 1, 9), seq("b", 1, 9)
	b.Root[0] = 1
	submit(t, c, a)
	step(t, c, start, "a[0:9]!")
	c.End(a)
	submit(t, c, b)
	step(t, c, start, "b[0:9]!")
}

func TestLowestGivesWay(t *testing.T) {
	c := sched.New(sched.Config{Blocks: 4, BlockSize: 4, Context: 16, Seqs: 2, Tokens: 64, Queue: 10})
	a, b := seq("a", 1, 6), seq("b", 2, 3)
	submit(t, c, a, b)
	step(t, c, start, "a[0:6]! b[0:3]!")
	step(t, c, start, "a[6:7]! b[3:4]!")
	step(t, c, start, "a[7:8]! b[4:5]!")
	step(t, c, start, "a[8:9]!") // the third block of a is one of b's
	if b.State != sched.Waiting || c.Stats().Evicted != 1 {
		t.Fatalf("b is %d, %+v", b.State, c.Stats())
	}
	step(t, c, start, "a[9:10]!")
	c.End(a)
	step(t, c, start, "b[4:6]!") // its complete block was still there
	if len(b.Tokens) != 7 || b.Cached != 0 {
		t.Fatalf("b has %d tokens, %d cached", len(b.Tokens), b.Cached)
	}
}

func TestRefusals(t *testing.T) {
	c := sched.New(sched.Config{Blocks: 4, BlockSize: 4, Context: 100, Seqs: 1, Tokens: 8, Queue: 1})
	err := c.Submit(seq("big", 1, 16))
	if err == nil || err.Class != flow.InvalidRequest || !strings.Contains(err.Error(), "16 tokens") || !strings.Contains(err.Error(), "kv.tokens) holds 16") {
		t.Fatalf("too long: %v", err)
	}
	if err := c.Submit(seq("none", 1, 0)); err == nil || err.Class != flow.InvalidRequest {
		t.Fatalf("empty: %v", err)
	}
	submit(t, c, seq("a", 1, 3), seq("b", 2, 3))
	err = c.Submit(seq("d", 3, 3))
	if err == nil || err.Class != flow.CapacityExhausted || !err.Retry || !strings.Contains(err.Error(), "batch.queue 1") {
		t.Fatalf("full: %v", err)
	}
	step(t, c, start, "a[0:3]!")
	if err := c.Submit(seq("d", 3, 3)); err == nil {
		t.Fatal("a second one waits where one may")
	}
}

func TestDeadlines(t *testing.T) {
	c := sched.New(sched.Config{Blocks: 8, BlockSize: 4, Context: 32, Seqs: 1, Tokens: 8, Queue: 4})
	a, b := seq("a", 1, 3), seq("b", 2, 3)
	a.Deadline, b.Deadline = start.Add(2*time.Second), start.Add(time.Second)
	submit(t, c, a, b)
	step(t, c, start, "a[0:3]!")
	step(t, c, start.Add(time.Second), "a[3:4]! expired b")
	step(t, c, start.Add(2*time.Second), "expired a")
	if st := c.Stats(); st.BlocksUsed != 0 || st.Running+st.Waiting != 0 {
		t.Fatalf("stats %+v", st)
	}
}

func TestPins(t *testing.T) {
	c := sched.New(sched.Config{Blocks: 4, BlockSize: 4, Context: 16, Seqs: 2, Tokens: 64, Queue: 4, Pins: 2})
	a := seq("a", 1, 10)
	submit(t, c, a)
	st := c.Plan(start)
	c.Commit(st.Run[0])
	if !c.Pin(a, "h1", start, start.Add(30*time.Second)) {
		t.Fatal("no pin")
	}
	p, ok := c.Lease("h1")
	if !ok || p.Tokens != 10 || len(p.Blocks) != 3 || len(p.IDs) != 2 {
		t.Fatalf("pin %+v", p)
	}
	b := seq("b", 2, 8) // needs two blocks, one is left
	submit(t, c, b)
	st = c.Plan(start.Add(time.Millisecond))
	if text(st) != "" || !st.Wake.Equal(start.Add(sched.PinGrace)) {
		t.Fatalf("step %q, wake %v", text(st), st.Wake)
	}
	st = c.Plan(start.Add(sched.PinGrace)) // the pin gives way, but it is being read
	if text(st) != "" || c.Stats().BlocksUsed != 3 {
		t.Fatalf("step %q, %d blocks used", text(st), c.Stats().BlocksUsed)
	}
	c.Return(p)
	step(t, c, start.Add(sched.PinGrace), "b[0:8]!")
	if _, ok := c.Lease("h1"); ok {
		t.Fatal("a dropped pin can be read")
	}
	c.End(b)
	for i := range 3 {
		s := seq("s", 10+i, 2)
		submit(t, c, s)
		st := c.Plan(start)
		c.Commit(st.Run[0])
		c.Pin(s, fmt.Sprint("p", i), start, start.Add(time.Second))
	}
	if _, ok := c.Lease("p0"); ok || c.Stats().Pins != 2 {
		t.Fatalf("%d pins, the oldest there: %v", c.Stats().Pins, ok)
	}
	if st := c.Plan(start.Add(time.Second)); text(st) != "" || c.Stats().Pins != 0 || c.Stats().BlocksUsed != 0 {
		t.Fatalf("pins outlive their deadline: %+v", c.Stats())
	}
}

func TestImport(t *testing.T) {
	c := sched.New(sched.Config{Blocks: 16, BlockSize: 4, Context: 64, Seqs: 3, Tokens: 64, Queue: 4})
	a := seq("a", 1, 8)
	submit(t, c, a)
	step(t, c, start, "a[0:8]!")
	b, d, e := seq("b", 1, 11), seq("d", 2, 8), seq("e", 1, 9)
	b.Import, d.Import, e.Import = 10, 8, 8
	submit(t, c, b, d)
	step(t, c, start, "a[8:9]! import b import d")
	if b.Computed != 8 || len(b.Blocks) != 3 || d.Computed != 0 {
		t.Fatalf("b %d of %v, d %d", b.Computed, b.Blocks, d.Computed)
	}
	c.Imported(b, 10)
	step(t, c, start, "a[9:10]! b[10:11]!")
	c.Imported(d, 8)
	step(t, c, start, "a[10:11]! b[11:12]! d[7:8]!") // the last token's logits
	c.End(d)
	submit(t, c, e)
	step(t, c, start, "a[11:12]! b[12:13]! e[8:9]!") // all that could be fetched is here
	f := seq("f", 5, 9)
	f.Import = 9
	submit(t, c, f)
	c.End(e)
	step(t, c, start, "a[12:13]! b[13:14]! import f")
	used := c.Stats().BlocksUsed
	c.End(f)
	if c.Stats().BlocksUsed != used {
		t.Fatal("blocks of a running import were freed")
	}
	c.Imported(f, 9)
	if c.Stats().BlocksUsed != used-3 {
		t.Fatal("blocks of an ended import were kept")
	}
}

// Random loads on few blocks: every sequence ends with all of its tokens, no step exceeds its bounds, blocks are never shared but by
// equal prefixes, and nothing stays referenced.
func TestEverySequenceEnds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		seed := rapid.Uint64().Draw(t, "seed")
		r := rand.New(rand.NewPCG(seed, 0))
		conf := sched.Config{BlockSize: 4, Context: 40, Seqs: 1 + r.IntN(5), Queue: 100, Pins: r.IntN(3)}
		conf.Blocks, conf.Tokens = 3+r.IntN(12), conf.Seqs+r.IntN(20)
		c := sched.New(conf)
		want := map[*sched.Seq]int{}
		limit := c.Limit()
		for range 1 + r.IntN(20) {
			n := 1 + r.IntN(limit-1)
			s := seq("s", r.IntN(3), n)
			s.Priority, s.Rows = r.IntN(2), r.IntN(4) == 0
			if r.IntN(3) == 0 {
				s.Import = n
			}
			if err := c.Submit(s); err != nil {
				t.Fatal(err)
			}
			want[s] = min(limit, n+1+r.IntN(20))
		}
		now, pins := start, 0
		var importing []*sched.Seq
		for turn := 0; len(want) > 0; turn++ {
			if turn > 5000 {
				t.Fatalf("no end: %d left, %+v", len(want), c.Stats())
			}
			st := c.Plan(now)
			importing = append(importing, st.Import...)
			total, content := 0, map[int32]string{}
			for _, w := range st.Run {
				total += w.N
				s := w.Seq
				if s.Computed != w.Pos || w.Pos+w.N > len(s.Tokens) || len(s.Blocks)*4 < w.Pos+w.N {
					t.Fatalf("work %+v of %+v", w, s)
				}
				for i, b := range s.Blocks {
					k := fmt.Sprint(s.Tokens[:min(len(s.Tokens), (i+1)*4)])
					if o, ok := content[b]; ok && o != k {
						t.Fatalf("block %d holds %s and %s", b, o, k)
					}
					content[b] = k
				}
			}
			if total > conf.Tokens || c.Stats().Running > conf.Seqs {
				t.Fatalf("%d tokens, %d run: over %+v", total, c.Stats().Running, conf)
			}
			if total == 0 && len(importing) == 0 {
				if st.Wake.IsZero() {
					t.Fatalf("stuck: %+v", c.Stats())
				}
				now = st.Wake
			}
			for _, w := range slices.Clone(st.Run) {
				s := w.Seq
				c.Commit(w)
				if !w.Last {
					continue
				}
				if r.IntN(10) == 0 && c.Pin(s, fmt.Sprint(pins), now, now.Add(30*time.Second)) {
					pins++
					delete(want, s)
					continue
				}
				c.Append(s, uint32(len(s.Tokens)))
				if len(s.Tokens) >= want[s] {
					c.End(s)
					delete(want, s)
				}
			}
			if len(importing) > 0 && r.IntN(2) == 0 {
				s := importing[0]
				importing = importing[1:]
				if r.IntN(4) == 0 {
					c.End(s)
					delete(want, s)
				}
				c.Imported(s, r.IntN(s.Prompt+1)/4*4)
			}
		}
		for _, s := range importing {
			c.Imported(s, 0)
		}
		c.Plan(now.Add(time.Hour))
		if st := c.Stats(); st.BlocksUsed != 0 || st.Running+st.Waiting+st.Pins != 0 {
			t.Fatalf("left behind: %+v", st)
		}
	})
}

func ExampleCore() {
	c := sched.New(sched.Config{Blocks: 8, BlockSize: 4, Context: 32, Seqs: 2, Tokens: 4, Queue: 4})
	s := &sched.Seq{Tokens: []uint32{1, 2, 3, 4, 5, 6}}
	if err := c.Submit(s); err != nil {
		fmt.Println(err)
	}
	for len(s.Tokens) < 8 {
		for _, w := range c.Plan(time.Time{}).Run {
			fmt.Println("compute", w.Seq.Tokens[w.Pos:w.Pos+w.N])
			c.Commit(w)
			if w.Last {
				c.Append(s, 7)
			}
		}
	}
	// Output:
	// compute [1 2 3 4]
	// compute [5 6]
	// compute [7]
}

func BenchmarkStep(b *testing.B) {
	c := sched.New(sched.Config{Blocks: 4096, BlockSize: 16, Context: 8192, Seqs: 16, Tokens: 256, Queue: 16})
	for i := range 16 {
		s := seq("s", i, 100)
		s.Tokens = append(make([]uint32, 0, 8192), s.Tokens...)
		if err := c.Submit(s); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportAllocs()
	for b.Loop() {
		st := c.Plan(start)
		for _, w := range st.Run {
			c.Commit(w)
			if w.Last {
				c.Append(w.Seq, 7)
				if len(w.Seq.Tokens) > 4000 { // start anew
					c.End(w.Seq)
					*w.Seq = sched.Seq{Tokens: w.Seq.Tokens[:100]}
					if err := c.Submit(w.Seq); err != nil {
						b.Fatal(err)
					}
				}
			}
		}
		c.Events()
	}
}
