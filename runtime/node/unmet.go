package node

import "github.com/dynamograph/dynamo/graph/kind"

// state is what a node last reported.
type state struct {
	state  kind.State
	reason string
}

// Unmet says what the first other node of this process that cannot serve waits for, or "": a frontend tells that to whoever asks whether
// it is ready.
func (h *host) Unmet() string { return h.p.unmet(h.unit.Node) }
