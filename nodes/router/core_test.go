package router

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func at(d time.Duration) time.Time { return epoch.Add(d) }

func newCore(policy string, r role, ids ...string) *core {
	c := &core{policy: policy, inhibit: 5 * time.Second, random: 88172645463325252}
	c.update(epoch, r, ids)
	return c
}

// take picks and books, and returns the id or "-".
func take(c *core, now time.Time, a ask, tokens int) string {
	x := c.pick(now, a)
	if x.instance == nil {
		return "-"
	}
	c.begin(x.instance, tokens)
	return x.instance.id
}

func TestRoundRobin(t *testing.T) {
	c := newCore(RoundRobin, worker, "a", "b", "c")
	var got []string
	for range 7 {
		got = append(got, take(c, epoch, ask{role: worker}, 1))
	}
	if s := strings.Join(got, ""); s != "abcabca" {
		t.Error(s)
	}
}

// TestEven checks that every policy spreads equal requests that never end: none gets more than its share allows.
func TestEven(t *testing.T) {
	for policy, slack := range map[string]int{RoundRobin: 0, LeastLoaded: 0, PowerOfTwo: 8, Random: 80} {
		t.Run(policy, func(t *testing.T) {
			c := newCore(policy, worker, "a", "b", "c", "d")
			n := map[string]int{}
			for range 1000 {
				n[take(c, epoch, ask{role: worker}, 10)]++
			}
			for id, k := range n {
				if k < 250-slack || k > 250+slack {
					t.Errorf("%s got %d of 1000: %v", id, k, n)
				}
			}
		})
	}
}

func TestLeastLoaded(t *testing.T) {
	// A decode instance is as busy as it has sequences, a prefill instance as it has prompt tokens.
	for r, want := range map[role]string{decode: "b", prefill: "a"} {
		c := newCore(LeastLoaded, r, "a", "b")
		c.begin(c.pools[r].list[0], 10)
		c.begin(c.pools[r].list[0], 10)
		c.begin(c.pools[r].list[1], 5000)
		if got := take(c, epoch, ask{role: r}, 1); got != want {
			t.Errorf("%v: %s, want %s", r, got, want)
		}
	}
	c := newCore(LeastLoaded, worker, "a", "b")
	take(c, epoch, ask{role: worker}, 7)
	i := c.pools[worker].list[0]
	c.end(i, 7)
	if i.requests != 0 || i.tokens != 0 {
		t.Errorf("%+v after its only call", i)
	}
}

func TestEligible(t *testing.T) {
	for _, c := range []struct {
		name   string
		ask    ask
		failed []string
		after  time.Duration
		want   string // of three picks
		wake   time.Duration
	}{
		{"all", ask{}, nil, 0, "abc", 0},
		{"pin", ask{pin: "b"}, nil, 0, "bbb", 0},
		{"unknown pin", ask{pin: "x"}, nil, 0, "---", 0},
		{"excluded", ask{exclude: []string{"a"}}, nil, 0, "bcb", 0},
		{"all excluded: better than nobody", ask{exclude: []string{"a", "b", "c"}}, nil, 0, "abc", 0},
		{"all excluded, strictly", ask{exclude: []string{"a", "b", "c"}, strict: true}, nil, 0, "---", 0},
		{"failed", ask{}, []string{"a"}, 4 * time.Second, "bcb", 0},
		{"failed long ago", ask{}, []string{"a"}, 5 * time.Second, "abc", 0},
		{"all failed just now", ask{}, []string{"a", "b", "c"}, 200 * time.Millisecond, "---", 500 * time.Millisecond},
		{"all failed lately: one may be back", ask{}, []string{"a", "b", "c"}, 500 * time.Millisecond, "abc", 0},
		{"all failed, strictly", ask{strict: true}, []string{"a", "b", "c"}, 2 * time.Second, "---", 0},
		{"one failed just now, others excluded", ask{exclude: []string{"b", "c"}}, []string{"a"}, 200 * time.Millisecond, "---", 500 * time.Millisecond},
		{"one failed lately, others excluded", ask{exclude: []string{"b", "c"}}, []string{"a"}, time.Second, "aaa", 0},
		{"one failed lately, another excluded", ask{exclude: []string{"a"}}, []string{"b"}, time.Second, "ccc", 0},
		{"excluded failed just now, others excluded", ask{exclude: []string{"a", "b", "c"}}, []string{"a"}, 200 * time.Millisecond, "---", 500 * time.Millisecond},
		{"pinned failed just now", ask{pin: "a"}, []string{"a"}, 200 * time.Millisecond, "---", 500 * time.Millisecond},
		{"pinned failed lately", ask{pin: "a"}, []string{"a"}, time.Second, "aaa", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := newCore(RoundRobin, worker, "a", "b", "c")
			for _, id := range c.failed {
				i := slices.IndexFunc(m.pools[worker].list, func(i *instance) bool { return i.id == id })
				m.failed(epoch, m.pools[worker].list[i])
			}
			got := ""
			for range 3 {
				got += take(m, at(c.after), c.ask, 1)
			}
			if got != c.want {
				t.Errorf("%s, want %s", got, c.want)
			}
			if x := m.pick(at(c.after), c.ask); c.wake != 0 && !x.wake.Equal(at(c.wake)) || c.wake == 0 && !x.wake.IsZero() {
				t.Errorf("wake %v", x.wake)
			}
		})
	}
}

func TestUpdateKeepsBookings(t *testing.T) {
	c := newCore(LeastLoaded, worker, "a", "b")
	a := c.pools[worker].list[0]
	c.begin(a, 5)
	c.failed(epoch, a)
	c.update(at(1), worker, []string{"a", "b", "c"})
	if c.pools[worker].list[0] != a {
		t.Fatal("an instance that stayed was replaced")
	}
	c.update(at(2), worker, nil)
	if s := c.status(at(2+2*time.Second), worker); s != "no instance of worker since 2s" {
		t.Errorf("status %q", s)
	}
	c.update(at(3), worker, []string{"a"})
	if n := c.pools[worker].list[0]; n == a || n.requests != 0 || !n.failed.IsZero() {
		t.Errorf("an instance that came back is not new: %+v", n)
	}
	c.forget(worker, "a")
	c.end(a, 5) // of a call to the one before: hurts nobody
	if s := c.status(at(4), worker); !strings.HasPrefix(s, "no instance") {
		t.Errorf("status %q", s)
	}
}

// TestDeterministic checks that equal inputs give equal outputs: a simulation can replay a router.
func TestDeterministic(t *testing.T) {
	for _, policy := range []string{RoundRobin, Random, PowerOfTwo, LeastLoaded} {
		run := func() string {
			c := newCore(policy, decode, "a", "b", "c", "d", "e")
			var s strings.Builder
			var live []*instance
			for i := range 300 {
				now := at(time.Duration(i) * 100 * time.Millisecond)
				x := c.pick(now, ask{role: decode})
				if x.instance == nil {
					s.WriteByte('-')
					continue
				}
				c.begin(x.instance, i)
				live = append(live, x.instance)
				if i%7 == 3 {
					c.failed(now, x.instance)
				}
				if i%2 == 1 {
					c.end(live[0], i)
					live = live[1:]
				}
				s.WriteString(x.instance.id)
			}
			return s.String()
		}
		if a, b := run(), run(); a != b {
			t.Errorf("%s: %s then %s", policy, a, b)
		}
	}
}

func BenchmarkPick1000(b *testing.B) {
	ids := make([]string, 1000)
	for i := range ids {
		ids[i] = fmt.Sprintf("decode-%04d", i)
	}
	c := newCore(LeastLoaded, decode, ids...)
	for b.Loop() {
		c.pick(epoch, ask{role: decode})
	}
}
