package sched

import (
	"slices"
	"time"
)

// Plan says what to compute at now. Time never runs back between calls.
func (c *Core) Plan(now time.Time) *Step {
	st := &c.step
	st.Run, st.Import, st.Expired, st.Fresh, st.Wake = st.Run[:0], st.Import[:0], st.Expired[:0], st.Fresh[:0], time.Time{}
	c.expire(now)
	left := c.c.Tokens
	for i := 0; i < len(c.running); i++ { // output first; the list may lose its tail on the way
		s := c.running[i]
		if s.State != Running || len(s.Tokens)-s.Computed != 1 {
			continue
		}
		if c.grow(s) {
			st.Run = append(st.Run, Work{Seq: s, Pos: s.Computed, N: 1, Last: true})
			left--
		}
	}
	for _, s := range c.running {
		if s.State == Running && len(s.Tokens)-s.Computed > 1 {
			left = c.chunk(s, left)
		}
	}
	c.admit(left)
	for len(st.Run) == 0 && len(c.running) == 0 && len(c.waiting) > 0 && len(c.pins) > 0 {
		p := c.pins[0] // only pins are in the way
		if now.Before(p.at.Add(PinGrace)) {
			break
		}
		c.Unpin(p.ID)
		c.admit(left)
	}
	if len(st.Run) == 0 {
		c.wake()
	}
	return st
}

// admit starts waiting sequences, in rank.
func (c *Core) admit(left int) {
	for len(c.waiting) > 0 && len(c.running) < c.c.Seqs && left > 0 && c.start(c.waiting[0]) {
		s := c.waiting[0]
		c.waiting = slices.Delete(c.waiting, 0, 1)
		c.running = insert(c.running, s)
		if s.State == Importing {
			c.step.Import = append(c.step.Import, s)
		} else {
			left = c.chunk(s, left)
		}
	}
}

// chunk adds as many tokens of s as fit and returns what is left.
func (c *Core) chunk(s *Seq, left int) int {
	n := min(left, len(s.Tokens)-s.Computed)
	if s.Rows && s.rowsEnd < s.Prompt {
		n = min(n, rowChunk)
	}
	if n > 0 {
		c.step.Run = append(c.step.Run, Work{Seq: s, Pos: s.Computed, N: n, Last: s.Computed+n == len(s.Tokens)})
	}
	return left - n
}

// grow makes sure that s has a block for its last token. Where none is left, sequences give way from the lowest rank up; s itself may be
// the one, and then grow is false.
func (c *Core) grow(s *Seq) bool {
	for len(s.Blocks)*c.c.BlockSize < len(s.Tokens) {
		if b, ok := c.kv.Alloc(); ok {
			s.Blocks = append(s.Blocks, b)
			c.step.Fresh = append(c.step.Fresh, b)
			continue
		}
		v := s
		for i := len(c.running) - 1; i >= 0; i-- {
			if c.running[i].State == Running {
				v = c.running[i]
				break
			}
		}
		c.evicted++
		c.running = remove(c.running, v)
		c.free(v)
		v.State = Waiting
		c.waiting = insert(c.waiting, v)
		if v == s {
			return false
		}
	}
	return true
}

// start gives a waiting sequence all blocks that its tokens need, those found first; false where there are not enough.
func (c *Core) start(s *Seq) bool {
	size := c.c.BlockSize
	s.Name(size)
	reuse := (len(s.Tokens) - 1) / size // the last token is computed for its logits
	if s.Rows && s.rowsEnd < s.Prompt {
		reuse = 0
	}
	s.Blocks = c.kv.Acquire(s.Blocks[:0], s.ids[:min(reuse, len(s.ids))])
	found := len(s.Blocks)
	need := (len(s.Tokens)+size-1)/size - found
	if c.kv.Available() < need+len(c.running) { // a block for the next turn of each that runs
		c.kv.ReleaseAll(s.Blocks)
		s.Blocks = s.Blocks[:0]
		return false
	}
	for range need {
		b, _ := c.kv.Alloc()
		s.Blocks = append(s.Blocks, b)
		c.step.Fresh = append(c.step.Fresh, b)
	}
	s.Computed, s.named = found*size, found
	if !s.started {
		s.started = true
		s.Cached = min(s.Computed, s.Prompt)
		c.found += uint64(s.Cached)
	}
	s.State = Running
	if !s.Rows && min(s.Import, len(s.Tokens)-1) > s.Computed {
		s.State = Importing
	} else {
		s.Import = 0
	}
	return true
}

// expire ends what is past its deadline.
func (c *Core) expire(now time.Time) {
	past := func(t time.Time) bool { return !t.IsZero() && !now.Before(t) }
	for _, list := range [][]*Seq{c.running, c.waiting} {
		for _, s := range list {
			if past(s.Deadline) {
				c.step.Expired = append(c.step.Expired, s)
			}
		}
	}
	for _, s := range c.step.Expired {
		c.End(s)
	}
	for i := 0; i < len(c.pins); {
		if p := c.pins[i]; past(p.Deadline) {
			c.Unpin(p.ID)
			continue
		}
		i++
	}
}

// wake finds the next moment at which something happens by itself.
func (c *Core) wake() {
	w := &c.step.Wake
	at := func(t time.Time) {
		if !t.IsZero() && (w.IsZero() || t.Before(*w)) {
			*w = t
		}
	}
	c.Each(func(s *Seq) { at(s.Deadline) })
	for _, p := range c.pins {
		at(p.Deadline)
		if len(c.running) == 0 && len(c.waiting) > 0 {
			at(p.at.Add(PinGrace))
		}
	}
}
