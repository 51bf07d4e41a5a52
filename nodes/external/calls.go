package external

import (
	"crypto/rand"

	"github.com/dynamograph/dynamo/graph/flow/llm"
)

// maxCalls is how many tool calls an answer may hold.
const maxCalls = 1024

// fragment is a piece of a tool call, as a stream has it.
type fragment struct {
	Index    *int
	ID       string
	Function struct {
		Name      string
		Arguments string
	}
}

// calls numbers the tool calls of an answer as they begin, whatever numbers the server gives them.
type calls struct {
	ids []string // by our number
	own []int    // the server's number, by ours; -1 where it gives none
}

// add takes the fragments of an event; what says what is wrong with them, else it is "".
func (c *calls) add(list []fragment) (out []llm.CallDelta, what string) {
	for _, f := range list {
		n := c.find(f)
		d := llm.CallDelta{Index: n, Arguments: f.Function.Arguments}
		if n == len(c.ids) {
			switch {
			case f.Function.Name == "":
				return nil, "without a name"
			case n == maxCalls:
				return nil, "too many"
			}
			if d.ID, d.Name = f.ID, f.Function.Name; d.ID == "" {
				d.ID = "call_" + rand.Text()
			}
			own := -1
			if f.Index != nil {
				own = *f.Index
			}
			c.ids, c.own = append(c.ids, f.ID), append(c.own, own)
		}
		out = append(out, d)
	}
	return out, ""
}

// find is the number of a fragment's call; that of the next where it begins one. Servers that number none begin each with an id.
func (c *calls) find(f fragment) int {
	last := len(c.ids) - 1
	for n := last; n >= 0; n-- {
		switch {
		case f.Index == nil && (f.ID == "" && f.Function.Name == "" || f.ID != "" && f.ID == c.ids[n]), f.Index != nil && *f.Index == c.own[n]:
			// One that counts every call as the first tells them apart by their ids.
			if f.ID != "" && c.ids[n] != "" && f.ID != c.ids[n] {
				continue
			}
			return n
		}
	}
	return last + 1
}
