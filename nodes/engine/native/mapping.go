package native

import (
	"errors"
	"sync"

	"github.com/dynamograph/dynamo/graph/kind"
)

const maxMappings = 64

// mappings are the KV regions of peers that this process has mapped. A region that nobody reads is unmapped when there are too many.
type mappings struct {
	open func(region string) (kind.Memory, error)

	mu     sync.Mutex
	all    []*mapping // oldest first
	remote []string   // peers whose memory cannot be mapped here
}

type mapping struct {
	mem   kind.Memory
	users int
}

// get returns a mapping that stays until put.
func (m *mappings) get(region string) (*mapping, error) {
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
	for i := 0; len(m.all) >= maxMappings && i < len(m.all); {
		if x := m.all[i]; x.users == 0 {
			m.all = append(m.all[:i], m.all[i+1:]...)
			if err := x.mem.Close(); err != nil {
				return nil, errors.Join(err, mem.Close())
			}
			continue
		}
		i++
	}
	x := &mapping{mem, 1}
	m.all = append(m.all, x)
	return x, nil
}

func (m *mappings) put(x *mapping) {
	m.mu.Lock()
	defer m.mu.Unlock()
	x.users--
}

// mappable reports whether peer's memory is worth a try.
func (m *mappings) mappable(peer string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, p := range m.remote {
		if p == peer {
			return false
		}
	}
	return true
}

func (m *mappings) avoid(peer string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.remote) >= maxMappings {
		m.remote = m.remote[1:]
	}
	m.remote = append(m.remote, peer)
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
