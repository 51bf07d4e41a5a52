package constrain

import (
	"container/list"
	"context"
	"strings"
	"sync"
)

// Cache keeps programs for one vocabulary, which requests of one client mostly share. It is safe for concurrent use.
type Cache struct {
	t   *Tokens
	max int

	mu    sync.Mutex
	order *list.List // of *cached, the last used first
	by    map[string]*list.Element
}

type cached struct {
	key string
	p   *Program
}

// NewCache returns a cache of at most programs programs. Each holds up to about 16 MiB once it was used.
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
	for c.order.Len() > c.max {
		last := c.order.Back()
		c.order.Remove(last)
		delete(c.by, last.Value.(*cached).key)
	}
	return p, nil
}
