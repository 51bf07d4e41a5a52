package constrain

import (
	"container/list"
	"context"
	"strings"
	"sync"
)

// maxKept bounds the states of all grammars in a cache, of which each takes about 100 bytes.
const maxKept = 2 * maxStates

// Cache keeps programs for one vocabulary, which requests of one client mostly share. It is safe for concurrent use.
type Cache struct {
	t   *Tokens
	max int

	mu    sync.Mutex
	kept  int        // states of all grammars
	order *list.List // of *cached, the last used first
	by    map[string]*list.Element
}

type cached struct {
	key string
	p   *Program
}

// NewCache returns a cache of at most programs programs. Each holds up to about 16 MiB once it was used, beside its grammar; their grammars are
// at most 80 MiB together.
func NewCache(t *Tokens, programs int) *Cache {
	return &Cache{t: t, max: programs, order: list.New(), by: map[string]*list.Element{}}
}

// Get returns the program of s, compiled if it is not there: errors are Compile's. Two that ask for one at once may both compile it.
func (c *Cache) Get(ctx context.Context, s Spec) (*Program, error) {
	key := strings.Join(append([]string{s.JSONSchema, s.Regex, s.Grammar, s.Tags, s.After}, s.Choice...), "\x00")
	c.mu.Lock()
	if e := c.by[key]; e != nil {
		c.order.MoveToFront(e)
		c.mu.Unlock()
		return e.Value.(*cached).p, nil
	}
	c.mu.Unlock()
	p, err := Compile(ctx, s, c.t)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if e := c.by[key]; e != nil {
		return e.Value.(*cached).p, nil
	}
	c.by[key] = c.order.PushFront(&cached{key, p})
	c.kept += len(p.m.n.states)
	for c.order.Len() > c.max || c.kept > maxKept && c.order.Len() > 1 {
		last := c.order.Remove(c.order.Back()).(*cached)
		delete(c.by, last.key)
		c.kept -= len(last.p.m.n.states)
	}
	return p, nil
}
