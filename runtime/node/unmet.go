package node

import (
	"fmt"

	"github.com/dynamograph/dynamo/graph/kind"
)

// state is what a node last reported.
type state struct {
	state  kind.State
	reason string
}

// Unmet says what the first other node of this process that cannot serve waits for, or "": a frontend tells that to whoever asks whether
// it is ready. Callers are asked about before callees are.
func (h *host) Unmet() string {
	h.p.mu.Lock()
	defer h.p.mu.Unlock()
	for _, u := range h.p.group.Units {
		s, ok := h.p.states[u.Node]
		if u.Node == h.unit.Node || ok && (s.state == kind.Ready || s.state == kind.Degraded) {
			continue
		}
		if !ok {
			s.state = kind.Starting
		}
		if s.reason == "" {
			return fmt.Sprintf("node %s is %s", u.Node, s.state)
		}
		return fmt.Sprintf("node %s is %s: %s", u.Node, s.state, s.reason)
	}
	return ""
}
