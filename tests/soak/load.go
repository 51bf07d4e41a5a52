package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// patience is how long a request may take, faults and queues included.
const patience = 4 * time.Minute

// profile is a graph and the load that suits it.
type profile struct {
	name, spec, model string
	named             bool // other names than model are refused
	args              []string
	share             float64 // of the time
	probes            int
	clients           int
	words             int // of the longest prompt
	tokens            int // of the longest answer
	burst             int // requests at once that overflow a queue
	calm              [2]time.Duration
}

func profiles(o options) []profile {
	llama := profile{
		name: "llama", spec: "specs/llama-disagg.cue", model: "smollm2", named: true, share: 0.45, probes: 28, clients: 5, words: 500, tokens: 64,
		burst: 300, calm: [2]time.Duration{2 * time.Second, 8 * time.Second},
	}
	if o.model != "" {
		llama.args = []string{"-t", "model=file:" + o.model}
	}
	tight := llama // preemptions, pinned blocks in the way, full queues
	tight.name, tight.spec, tight.share, tight.words, tight.burst = "tight", "tests/soak/testdata/tight.cue", 0.25, 400, 60
	mock := profile{
		name: "mock", spec: "specs/mock-disagg.cue", model: "mock", share: 0.2, probes: 40, clients: 48, words: 150, tokens: 120, burst: 1300,
		calm: [2]time.Duration{time.Second, 5 * time.Second},
	}
	beside := mock
	beside.name, beside.spec, beside.share, beside.clients, beside.burst = "beside", "tests/soak/testdata/beside.cue", 0.1, 24, 400
	return []profile{llama, tight, mock, beside}
}

// probe is a request whose answer is known.
type probe struct {
	path string
	q    map[string]any
	want answer
	code int // what it is refused with; 0: it is answered
}

// load asks, checks answers, and cancels some.
type load struct {
	g       *graph
	p       profile
	j       *journal
	probes  []probe
	refused []probe
	bursts  atomic.Int32 // going on
	quiet   atomic.Int64 // when the last one ended, in Unix nanoseconds
}

var words = strings.Fields("river mill stone count the a of sack under bridge old seven boats quietly turns and then while some people carry grain home before winter comes again")

func prose(r *rand.Rand, n int) string {
	var b strings.Builder
	for range n {
		b.WriteString(words[r.IntN(len(words))])
		b.WriteByte(' ')
	}
	return b.String()
}

// newLoad makes the probes and lets each be answered once, alone.
func newLoad(ctx context.Context, g *graph, p profile, r *rand.Rand, j *journal) (*load, error) {
	l := &load{g: g, p: p, j: j}
	prefixes := []string{"", "", prose(r, p.words/10), prose(r, p.words/3), prose(r, p.words)}
	for i := range p.probes {
		prefix := prefixes[r.IntN(len(prefixes))]
		text := prefix[:len(prefix)*(1+r.IntN(3))/3] + fmt.Sprintf("Number %d: tell me about %s", i, prose(r, 1+r.IntN(6)))
		q := map[string]any{"model": p.model, "max_tokens": 1 + r.IntN(p.tokens), "temperature": 0}
		if r.IntN(3) > 0 {
			q["max_tokens"] = p.tokens/2 + r.IntN(p.tokens/2)
		}
		if r.IntN(2) == 0 {
			q["temperature"], q["top_p"], q["seed"] = 0.7+r.Float64()/2, 0.95, r.IntN(1000)
		}
		if r.IntN(3) > 0 {
			q["ignore_eos"] = true
		}
		if r.IntN(6) == 0 {
			q["n"] = 2
		}
		if r.IntN(4) == 0 {
			q["stop"] = []string{[]string{" the", ".", "ra"}[r.IntN(3)], "\n\n"}
		}
		path := "/v1/chat/completions"
		if r.IntN(4) == 0 {
			path = "/v1/completions"
			q["prompt"] = text
		} else {
			q["messages"] = []map[string]any{{"role": "user", "content": text}}
			if r.IntN(3) == 0 {
				q["logprobs"], q["top_logprobs"] = true, 2
			}
		}
		l.probes = append(l.probes, probe{path: path, q: q})
	}
	chat := func(change map[string]any) map[string]any {
		q := map[string]any{"model": p.model, "messages": []map[string]any{{"role": "user", "content": "Hello."}}, "max_tokens": 4}
		for k, v := range change {
			q[k] = v
		}
		return q
	}
	l.refused = []probe{
		{path: "/v1/chat/completions", q: chat(map[string]any{"messages": []map[string]any{{"role": "user", "content": strings.Repeat("too long ", 9000)}}}), code: 400},
		{path: "/v1/chat/completions", q: chat(map[string]any{"temperature": 9}), code: 400},
		{path: "/v1/completions", q: map[string]any{"model": p.model, "prompt": prose(r, 20000), "max_tokens": 4}, code: 400},
	}
	if p.named {
		l.refused = append(l.refused, probe{path: "/v1/chat/completions", q: chat(map[string]any{"model": "none"}), code: 404})
	}
	j.note("%d probes are answered alone", len(l.probes))
	for i := range l.probes {
		x := &l.probes[i]
		one, cancel := context.WithTimeout(ctx, patience)
		a, err := g.ask(one, x.path, x.q, false, nil)
		cancel()
		if err != nil {
			return nil, fmt.Errorf("undisturbed: %s %v: %w", x.path, x.q, err)
		}
		if x.want = a.answer; a.completion == 0 || a.finish[0] == "" {
			return nil, fmt.Errorf("undisturbed: %s %v: %+v", x.path, x.q, a)
		}
	}
	return l, nil
}

// during keeps the load up for d, with faults unless f is nil. It returns when the last request has ended.
func (l *load) during(ctx context.Context, d time.Duration, seed uint64, f *faults) {
	asking, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	var wg sync.WaitGroup
	for i := range l.p.clients {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(seed, uint64(i)))
			for asking.Err() == nil && !l.j.full() {
				l.one(ctx, r)
			}
		})
	}
	if f != nil {
		wg.Go(func() { f.run(asking) })
		wg.Go(func() { l.burst(ctx, asking, d, seed, f) })
	}
	wg.Wait()
	l.g.http.CloseIdleConnections()
}

// one sends one request and judges what comes.
func (l *load) one(ctx context.Context, r *rand.Rand) {
	x, streamed := &l.probes[r.IntN(len(l.probes))], r.IntN(3) > 0
	if r.IntN(12) == 0 {
		x = &l.refused[r.IntN(len(l.refused))]
	}
	cut, slow := 0, time.Duration(0)
	if streamed && r.IntN(4) == 0 {
		cut = 1 + r.IntN(20)
	} else if r.IntN(8) == 0 {
		slow = time.Duration(r.IntN(40)) * time.Millisecond
	}
	life := patience
	if r.IntN(12) == 0 { // leaves before anything was said, perhaps
		life = time.Duration(r.IntN(1500)) * time.Millisecond
	}
	l.judge(ctx, x, streamed, life, func(frames int) error {
		if frames == cut {
			return errCancel
		}
		if slow > 0 {
			return pause(ctx, slow)
		}
		return nil
	})
}

func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (l *load) judge(ctx context.Context, x *probe, streamed bool, life time.Duration, heard func(int) error) {
	own, cancel := context.WithTimeout(ctx, life)
	defer cancel()
	began := time.Now()
	a, err := l.g.ask(own, x.path, x.q, streamed, heard)
	q := fmt.Sprint(x.q)
	what := fmt.Sprintf("%s %s, streamed %v, after %.1f s", x.path, q[:min(len(q), 300)], streamed, time.Since(began).Seconds())
	crowded := l.bursts.Load() > 0 || l.quiet.Load() > began.UnixNano()
	switch {
	case ctx.Err() != nil:
	case x.code != 0 && a.status == x.code:
		l.j.add("refused as they must be")
	case (a.status == 429 || a.status == 503) && a.retry != "" && crowded:
		l.j.add(fmt.Sprintf("told to come back (%d)", a.status))
	case errors.Is(err, errCancel) || life < patience && own.Err() != nil:
		l.j.add("cancelled")
		for i, t := range a.text {
			if !strings.HasPrefix(x.want.text[i], t) {
				l.j.fail("%s, cancelled: choice %d: %q, of %q", what, i, t, x.want.text[i])
			}
		}
	case err != nil:
		l.j.fail("%s: %v", what, err)
	case x.code != 0:
		l.j.fail("%s: status %d, want %d", what, a.status, x.code)
	case !a.whole || a.answer != x.want:
		l.j.fail("%s: the answer differs\n got %+v\nwant %+v", what, a.answer, x.want)
	default:
		l.j.add("answers")
	}
}

// burst overflows the queues once in d, by short answers all at once, and kills a decode process while they are full.
func (l *load) burst(ctx, asking context.Context, d time.Duration, seed uint64, f *faults) {
	r := rand.New(rand.NewPCG(seed, 1<<40))
	if pause(asking, time.Duration(r.Int64N(int64(d)))) != nil {
		return
	}
	x := &l.probes[0]
	for i := range l.probes { // the least work
		if y := &l.probes[i]; y.want.prompt+20*y.want.completion < x.want.prompt+20*x.want.completion {
			x = y
		}
	}
	l.j.add("bursts")
	l.bursts.Add(1)
	defer func() { l.quiet.Store(time.Now().UnixNano()); l.bursts.Add(-1) }()
	var wg sync.WaitGroup
	for i := range l.p.burst {
		wg.Go(func() { l.judge(ctx, x, i%2 == 0, patience, func(int) error { return nil }) })
	}
	wg.Go(func() {
		if pause(asking, time.Duration(r.IntN(1500))*time.Millisecond) == nil {
			f.strike(asking, fmt.Sprint("decode-", r.IntN(2)), 0)
		}
	})
	wg.Wait()
}

// parting sends a few requests and returns when they are under way: Ctrl-C that comes now lets them end. wait waits for them.
func (l *load) parting(ctx context.Context) (wait func()) {
	var wg sync.WaitGroup
	began := make(chan struct{}, 8)
	for i := range cap(began) {
		wg.Go(func() {
			var once sync.Once
			begin := func(int) error { once.Do(func() { began <- struct{}{} }); return nil }
			defer begin(0)
			l.judge(ctx, &l.probes[i], true, patience, begin)
		})
	}
	for range cap(began) {
		<-began
	}
	return wg.Wait
}
