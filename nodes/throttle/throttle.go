// Package throttle keeps what goes wrong with each of many requests from filling a log: of messages about the same thing it lets one a
// second pass, and counts the others.
package throttle

import (
	"sync"
	"time"
)

const (
	every   = time.Second
	maxKeys = 64 // reasons and instances are few; beyond it those that were silent longest are forgotten
)

// Throttle decides which messages are written. The zero value is ready to use. It is safe for concurrent use.
type Throttle struct {
	mu   sync.Mutex
	keys map[string]*state
}

type state struct {
	last       time.Time // when one passed
	suppressed int       // since then
}

// Pass reports whether a message about key may be written, and how many about it were not since the last one that was. What follows the
// last message of a burst is told by the next burst's first.
func (t *Throttle) Pass(key string) (suppressed int, ok bool) {
	now := time.Now()
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.keys[key]
	switch {
	case s == nil:
		t.room()
		t.keys[key] = &state{last: now}
		return 0, true
	case now.Sub(s.last) < every:
		s.suppressed++
		return 0, false
	}
	suppressed = s.suppressed
	*s = state{last: now}
	return suppressed, true
}

// room makes room for one key more. t.mu is held.
func (t *Throttle) room() {
	if t.keys == nil {
		t.keys = map[string]*state{}
	}
	if len(t.keys) < maxKeys {
		return
	}
	oldest := ""
	for k, s := range t.keys {
		if oldest == "" || s.last.Before(t.keys[oldest].last) {
			oldest = k
		}
	}
	delete(t.keys, oldest)
}
