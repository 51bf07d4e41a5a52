package router

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// The policies.
const (
	RoundRobin  = "round-robin"
	Random      = "random"
	PowerOfTwo  = "power-of-two"
	LeastLoaded = "least-loaded"
)

// resortShare: where every instance failed lately, one is tried again after this part of the time for which it would be passed over.
const resortShare = 10

// role is which pool of instances a call wants.
type role int

const (
	worker role = iota
	prefill
	decode
	roles
)

func (r role) String() string { return [...]string{"worker", "prefill", "decode"}[r] }

// core decides which instance takes a call. It is a step machine: every method takes the present time, none waits, and equal calls give
// equal answers. It is not safe for concurrent use.
type core struct {
	policy  string
	inhibit time.Duration // how long an instance gets nothing after it failed
	random  uint64        // state of the generator
	pools   [roles]pool

	free, resort []*instance // of one pick: kept for the next
}

type pool struct {
	list  []*instance // sorted by id
	turn  int         // calls so far
	empty time.Time   // since when list is empty; zero while it is not
}

// instance is one peer and what we gave it. Peers that leave and come back are new instances: they failed nothing yet.
type instance struct {
	id       string
	role     role
	requests int       // in flight
	tokens   int       // prompt tokens of those
	failed   time.Time // the last time; zero: never, or it answered since
}

// update takes the present set of instances, sorted by id.
func (c *core) update(now time.Time, r role, ids []string) {
	p := &c.pools[r]
	old := map[string]*instance{}
	for _, i := range p.list {
		old[i.id] = i
	}
	p.list = make([]*instance, 0, len(ids))
	for _, id := range ids {
		i := old[id]
		if i == nil {
			i = &instance{id: id, role: r}
		}
		p.list = append(p.list, i)
	}
	switch {
	case len(ids) > 0:
		p.empty = time.Time{}
	case p.empty.IsZero():
		p.empty = now
	}
}

// forget makes the next update treat an instance as new: it was started again.
func (c *core) forget(r role, id string) {
	p := &c.pools[r]
	p.list = slices.DeleteFunc(slices.Clone(p.list), func(i *instance) bool { return i.id == id })
}

// ask is what a call wants.
type ask struct {
	role    role
	pin     string   // "": any
	exclude []string // avoided while there is another
	strict  bool     // avoided in any case
}

// choice is an instance, or when to ask again: at once when the pool changes, and at wake if that is not zero.
type choice struct {
	instance *instance
	of       int // eligible instances
	wake     time.Time
}

// pick chooses an instance and counts the call to it.
func (c *core) pick(now time.Time, a ask) choice {
	p := &c.pools[a.role]
	if len(p.list) == 0 {
		return choice{}
	}
	free, resort := c.free[:0], c.resort[:0]
	var wake time.Time
	fresh := false // resort holds none that failed this request
	for _, i := range p.list {
		excluded := slices.Contains(a.exclude, i.id)
		switch again := i.failed.Add(c.inhibit / resortShare); {
		case a.pin != "" && i.id != a.pin:
		case !excluded && !now.Before(i.failed.Add(c.inhibit)):
			free = append(free, i)
		case a.strict || excluded && fresh:
		case now.Before(again):
			if wake.IsZero() || again.Before(wake) {
				wake = again
			}
		case !excluded && !fresh:
			resort, fresh = append(resort[:0], i), true
		default:
			resort = append(resort, i)
		}
	}
	c.free, c.resort = free, resort
	if len(free) == 0 && (fresh || wake.IsZero()) {
		free = resort // nobody else is to be expected, and one of them may be back
	}
	if len(free) == 0 {
		return choice{wake: wake}
	}
	p.turn++
	var i *instance
	switch c.policy {
	case RoundRobin:
		i = free[(p.turn-1)%len(free)]
	case Random:
		i = free[c.below(len(free))]
	case PowerOfTwo:
		x := c.below(len(free))
		i = free[x]
		if len(free) > 1 {
			i = lighter(i, free[(x+1+c.below(len(free)-1))%len(free)])
		}
	default:
		first := (p.turn - 1) % len(free) // another each time, so that equals take turns
		i = free[first]
		for _, part := range [][]*instance{free[first:], free[:first]} {
			for _, j := range part {
				i = lighter(i, j)
			}
		}
	}
	return choice{instance: i, of: len(free)}
}

// lighter returns the less loaded of two, the first of equals. A prefill instance computes prompts one after the other: tokens count. The
// others run sequences side by side: requests count.
func lighter(a, b *instance) *instance {
	x, y := b.requests-a.requests, b.tokens-a.tokens
	if a.role == prefill {
		x, y = y, x
	}
	if x < 0 || x == 0 && y < 0 {
		return b
	}
	return a
}

// below returns a number in [0, n) by xorshift.
func (c *core) below(n int) int {
	c.random ^= c.random << 13
	c.random ^= c.random >> 7
	c.random ^= c.random << 17
	return int(c.random % uint64(n))
}

// begin books a call of so many prompt tokens.
func (c *core) begin(i *instance, tokens int) {
	i.requests++
	i.tokens += tokens
}

// end undoes begin.
func (c *core) end(i *instance, tokens int) {
	i.requests--
	i.tokens -= tokens
}

// answered notes that an instance works.
func (c *core) answered(i *instance) {
	i.failed = time.Time{}
}

// failed notes that an instance could not be reached, lost the connection or stalled.
func (c *core) failed(now time.Time, i *instance) {
	i.failed = now
}

// has reports whether an instance is in a pool.
func (c *core) has(r role, id string) bool {
	return slices.ContainsFunc(c.pools[r].list, func(i *instance) bool { return i.id == id })
}

// status says for a pool why it cannot take calls, or "".
func (c *core) status(now time.Time, r role) string {
	p := &c.pools[r]
	if len(p.list) == 0 {
		s := "no instance of " + r.String()
		if !p.empty.IsZero() {
			s += " since " + now.Sub(p.empty).Truncate(100*time.Millisecond).String()
		}
		return s
	}
	var ids []string
	for _, i := range p.list {
		if !now.Before(i.failed.Add(c.inhibit)) {
			return ""
		}
		ids = append(ids, i.id)
	}
	return fmt.Sprintf("every instance of %s failed within the last %v: %s", r, c.inhibit, strings.Join(ids, ", "))
}
