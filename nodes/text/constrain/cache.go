package constrain

import (
	"container/list"
	"context"
	"strconv"
	"strings"
	"sync"

	"github.com/dynamograph/dynamo/graph/flow"
)

// maxKept bounds the states of all grammars in a cache, of which each takes about 100 bytes.
const maxKept = 2 * maxStates

// Cache keeps programs for one vocabulary, which requests of one client mostly share. It is safe for concurrent use.
type Cache struct {
	t    *Tokens
	max  int
	turn chan struct{} // one compiles at a time: what clients send may take 100 MiB and half a second

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
	return &Cache{t: t, max: programs, turn: make(chan struct{}, 1), order: list.New(), by: map[string]*list.Element{}}
}

// Get returns the program of s, compiled if it is not there: errors are Compile's. It waits for others that compile, as long as ctx lets it.
func (c *Cache) Get(ctx context.Context, s Spec) (*Program, error) {
	key := s.key()
	if p := c.find(key); p != nil {
		return p, nil
	}
	select {
	case c.turn <- struct{}{}:
		defer func() { <-c.turn }()
	case <-ctx.Done():
		return nil, flow.AsError(ctx.Err())
	}
	if p := c.find(key); p != nil {
		return p, nil
	}
	p, err := Compile(ctx, s, c.t)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.by[key] = c.order.PushFront(&cached{key, p})
	c.kept += len(p.m.n.states)
	for c.order.Len() > c.max || c.kept > maxKept && c.order.Len() > 1 {
		last := c.order.Remove(c.order.Back()).(*cached)
		delete(c.by, last.key)
		c.kept -= len(last.p.m.n.states)
	}
	return p, nil
}

// find is the program of a key, or nil.
func (c *Cache) find(key string) *Program {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.by[key]
	if e == nil {
		return nil
	}
	c.order.MoveToFront(e)
	return e.Value.(*cached).p
}

// key is a text that no other Spec has.
func (s Spec) key() string {
	var b strings.Builder
	for _, part := range append([]string{s.JSONSchema, s.Regex, s.Grammar, s.Tags, s.After}, s.Choice...) {
		b.WriteString(strconv.Itoa(len(part)) + ":" + part)
	}
	return b.String()
}
