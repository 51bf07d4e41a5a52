package sched

import (
	"slices"
	"time"

	"github.com/dynamograph/dynamo/nodes/kv/hash"
)

// Pin is a set of blocks kept as they are for somebody else. Its fields are constant.
type Pin struct {
	ID       string
	Deadline time.Time // never zero
	Tokens   int       // whose KV the blocks hold
	Blocks   []int32
	IDs      []hash.ID // of the complete blocks

	at      time.Time
	readers int
	gone    bool
}

// Pin ends s and keeps its blocks until Unpin or deadline. With too many pins the oldest goes; false means that none are allowed.
func (c *Core) Pin(s *Seq, id string, now, deadline time.Time) bool {
	if c.c.Pins == 0 || s.State != Running {
		return false
	}
	full := s.Computed / c.c.BlockSize
	p := &Pin{
		ID: id, Deadline: deadline, Tokens: s.Computed, at: now,
		Blocks: slices.Clone(s.Blocks[:(s.Computed+c.c.BlockSize-1)/c.c.BlockSize]), IDs: slices.Clone(s.ids[:full]),
	}
	for _, b := range p.Blocks {
		c.kv.Ref(b)
	}
	c.End(s)
	if len(c.pins) >= c.c.Pins {
		c.Unpin(c.pins[0].ID)
	}
	c.pins = append(c.pins, p)
	return true
}

// Unpin ends a pin; unknown ones are nothing. Blocks that somebody reads are freed by the last Return.
func (c *Core) Unpin(id string) {
	i := slices.IndexFunc(c.pins, func(p *Pin) bool { return p.ID == id })
	if i < 0 {
		return
	}
	p := c.pins[i]
	c.pins = slices.Delete(c.pins, i, i+1)
	p.gone = true
	c.drop(p)
}

// Lease returns a pin for reading: its blocks stay until Return, even past Unpin.
func (c *Core) Lease(id string) (*Pin, bool) {
	for _, p := range c.pins {
		if p.ID == id {
			p.readers++
			return p, true
		}
	}
	return nil, false
}

// Return ends a Lease.
func (c *Core) Return(p *Pin) {
	p.readers--
	c.drop(p)
}

func (c *Core) drop(p *Pin) {
	if p.gone && p.readers == 0 {
		c.kv.ReleaseAll(p.Blocks)
	}
}
