package native

import (
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/dynamograph/dynamo/graph/kind"
)

const (
	maxMappings = 64
	// avoidFor is how long a peer's blocks are fetched as bytes where its memory could not be mapped. It is not for ever: the peer may
	// just have died, and its successor's memory be fine.
	avoidFor = 30 * time.Second
)

// mappings are the KV regions of peers that this process has mapped: one for each peer, its last. The region of a peer that was started
// again holds memory for nothing until it is unmapped.
type mappings struct {
	open func(region string) (kind.Memory, error)

	mu      sync.Mutex
	all     []*mapping           // oldest first
	avoided map[string]time.Time // by peer: until when
}

type mapping struct {
	peer  string
	mem   kind.Memory
	users int
	old   bool // its peer has another one now
}

// get returns a mapping that stays until put.
func (m *mappings) get(peer, region string) (*mapping, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, x := range m.all {
		if x.mem.Region() == region {
			x.users++
			return x, nil
		}
	}
	mem, err := m.open(region)
	if err != nil {
		return nil, err
	}
	for _, x := range m.all {
		x.old = x.old || x.peer == peer
	}
	if err := m.sweep(); err != nil {
		return nil, errors.Join(err, mem.Close())
	}
	x := &mapping{peer: peer, mem: mem, users: 1}
	m.all = append(m.all, x)
	return x, nil
}

func (m *mappings) put(x *mapping) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	x.users--
	if x.users == 0 && x.old {
		return m.sweep()
	}
	return nil
}

// sweep unmaps what is old, and the oldest where there are too many, as far as nobody reads it. m.mu is held.
func (m *mappings) sweep() error {
	var errs []error
	surplus := len(m.all) - maxMappings + 1
	m.all = slices.DeleteFunc(m.all, func(x *mapping) bool {
		if x.users > 0 || !x.old && surplus <= 0 {
			return false
		}
		surplus--
		errs = append(errs, x.mem.Close())
		return true
	})
	return errors.Join(errs...)
}

// mappable reports whether peer's memory is worth a try.
func (m *mappings) mappable(peer string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return !time.Now().Before(m.avoided[peer])
}

func (m *mappings) avoid(peer string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := time.Now()
	maps.DeleteFunc(m.avoided, func(_ string, until time.Time) bool { return !now.Before(until) })
	if m.avoided == nil {
		m.avoided = map[string]time.Time{}
	}
	m.avoided[peer] = now.Add(avoidFor)
}

// close unmaps everything; nobody reads any more.
func (m *mappings) close() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	var errs []error
	for _, x := range m.all {
		errs = append(errs, x.mem.Close())
	}
	m.all = nil
	return errors.Join(errs...)
}
