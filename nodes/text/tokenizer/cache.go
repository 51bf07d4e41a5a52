package tokenizer

import (
	"container/list"
	"hash/maphash"
	"strings"
	"sync"
)

// Cache remembers the tokens of texts between special tokens, so that of a conversation that comes again, longer, only the new text is
// encoded: what stands before is looked up, at the speed of a hash. A text counts as the same if every byte of it is. One cache may
// serve several tokenizers. It is safe for concurrent use.
type Cache struct {
	seed   maphash.Seed
	shards [cacheShards]cacheShard
}

const (
	cacheShards = 16
	cacheLeast  = 32  // shorter texts are encoded as fast as they are found
	cacheCost   = 160 // bytes that an entry takes beside its text and tokens
)

type cacheShard struct {
	mu    sync.Mutex
	max   int // bytes
	used  int
	items map[cacheKey]*list.Element
	order list.List // of *cacheItem, the last used first
}

// cacheKey is all that the tokens depend on.
type cacheKey struct {
	t                   *Tokenizer
	set                 *tokenSet
	first, start, again bool
	text                string
}

type cacheItem struct {
	key cacheKey
	ids []uint32
}

func (i *cacheItem) size() int { return len(i.key.text) + 4*len(i.ids) + cacheCost }

// NewCache makes a cache that holds at most so many bytes, at least none.
func NewCache(bytes int) *Cache {
	c := &Cache{seed: maphash.MakeSeed()}
	for i := range c.shards {
		c.shards[i].max = bytes / cacheShards
		c.shards[i].items = map[cacheKey]*list.Element{}
	}
	return c
}

// Bytes is what c holds now.
func (c *Cache) Bytes() int {
	n := 0
	for i := range c.shards {
		s := &c.shards[i]
		s.mu.Lock()
		n += s.used
		s.mu.Unlock()
	}
	return n
}

// cached is run, from the cache where it can be.
func (w *work) cached(dst []uint32, s string) []uint32 {
	if s == "" {
		return dst
	}
	if w.cache == nil || len(s) < cacheLeast {
		return w.run(dst, s)
	}
	key := cacheKey{w.t, w.set, w.first, w.start, w.again, s}
	shard := &w.cache.shards[maphash.String(w.cache.seed, s)%cacheShards]
	if ids, ok := shard.get(key); ok {
		return append(dst, ids...)
	}
	n := len(dst)
	dst = w.run(dst, s)
	shard.put(key, dst[n:])
	return dst
}

// get gives ids that nobody may change.
func (s *cacheShard) get(key cacheKey) ([]uint32, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e, ok := s.items[key]
	if !ok {
		return nil, false
	}
	s.order.MoveToFront(e)
	return e.Value.(*cacheItem).ids, true
}

func (s *cacheShard) put(key cacheKey, ids []uint32) {
	item := &cacheItem{key: key}
	if size := len(key.text) + 4*len(ids) + cacheCost; size > s.max/4 {
		return // it would drive out all others
	}
	item.key.text = strings.Clone(key.text)
	item.ids = append([]uint32(nil), ids...)
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.items[key]; ok {
		return
	}
	for s.used += item.size(); s.used > s.max; {
		old := s.order.Remove(s.order.Back()).(*cacheItem)
		delete(s.items, old.key)
		s.used -= old.size()
	}
	s.items[item.key] = s.order.PushFront(item)
}
