package tokenizer

import "fmt"

// rx is a compiled regular expression. It finds the leftmost match and of those the first in the order of Perl, by backtracking. After a
// number of steps that ordinary text does not need it remembers what led nowhere, so that the time for a text is at most proportional to
// its length times that of the expression.
type rx struct {
	insts  []rxInst
	splits int // instructions that may be remembered
}

type rxInst struct {
	op   rxOp
	set  *rxSet
	x, y int  // where to go on; rxSplit: x is tried first
	n    int  // rxSplit: its number; rxRun: fewest runes, with x the most, < 0: no bound
	neg  bool // rxIf
}

type rxOp uint8

const (
	rxOne   rxOp = iota // one rune of the set
	rxRun               // as many runes of the set as there are, none given back
	rxSplit             // x, else y
	rxJump              // x
	rxIf                // goes on at x if the instructions behind match here (or, neg, do not)
	rxEnd               // at the end of a line
	rxDone
)

func rxCompile(src string) (*rx, error) {
	n, err := rxParse(src)
	if err != nil {
		return nil, err
	}
	if least, _ := n.least(); least == 0 {
		return nil, fmt.Errorf("regular expression %q can match nothing", src)
	}
	c := &rx{}
	if !c.emit(n) {
		return nil, fmt.Errorf("regular expression %q is too large: more than %d instructions", src, rxMaxInsts)
	}
	c.add(rxInst{op: rxDone})
	return c, nil
}

func (c *rx) add(i rxInst) int {
	if i.op == rxSplit {
		i.n = c.splits
		c.splits++
	}
	c.insts = append(c.insts, i)
	return len(c.insts) - 1
}

func (c *rx) emit(n *rxNode) bool {
	if len(c.insts) > rxMaxInsts {
		return false
	}
	switch n.kind {
	case rxClass:
		c.add(rxInst{op: rxOne, set: n.set})
	case rxLineEnd:
		c.add(rxInst{op: rxEnd})
	case rxCat:
		for _, s := range n.subs {
			if !c.emit(s) {
				return false
			}
		}
	case rxAlt:
		var jumps []int
		for i, s := range n.subs {
			split := -1
			if i < len(n.subs)-1 {
				split = c.add(rxInst{op: rxSplit, x: len(c.insts) + 1})
			}
			if !c.emit(s) {
				return false
			}
			if split >= 0 {
				jumps = append(jumps, c.add(rxInst{op: rxJump}))
				c.insts[split].y = len(c.insts)
			}
		}
		for _, j := range jumps {
			c.insts[j].x = len(c.insts)
		}
	case rxLook:
		at := c.add(rxInst{op: rxIf, neg: n.neg})
		if !c.emit(n.subs[0]) {
			return false
		}
		c.add(rxInst{op: rxDone})
		c.insts[at].x = len(c.insts)
	case rxLoop:
		return c.loop(n)
	}
	return true
}

func (c *rx) loop(n *rxNode) bool {
	sub := n.subs[0]
	if n.held {
		c.add(rxInst{op: rxRun, set: sub.set, n: n.min, x: n.max})
		return true
	}
	for range n.min {
		if !c.emit(sub) {
			return false
		}
	}
	split := func() int {
		at := c.add(rxInst{op: rxSplit})
		c.insts[at].x = at + 1
		return at
	}
	leave := func(at, to int) {
		if c.insts[at].y = to; n.lazy {
			c.insts[at].x, c.insts[at].y = to, at+1
		}
	}
	if n.max < 0 {
		at := split()
		if !c.emit(sub) {
			return false
		}
		c.add(rxInst{op: rxJump, x: at})
		leave(at, len(c.insts))
		return true
	}
	var ats []int
	for range n.max - n.min {
		ats = append(ats, split())
		if !c.emit(sub) {
			return false
		}
	}
	for _, at := range ats {
		leave(at, len(c.insts))
	}
	return true
}

// rxState is the scratch of one text.
type rxState struct {
	stack []rxFrame
	steps int
	seen  []uint64 // splits × positions that led nowhere; nil: not remembered
	n     int      // positions
}

type rxFrame struct{ pc, at int }

// begin makes x ready for a text of n bytes.
func (x *rxState) begin(n int) { x.steps, x.n, x.seen = 0, n+1, x.seen[:0] }

// find is the leftmost match of c in s that is not empty and starts at from or later; ok is false where there is none.
func (c *rx) find(x *rxState, s string, from int) (start, end int, ok bool) {
	for at := from; at < len(s); at += runeLen(s[at:]) {
		if end := c.match(x, s, at, 0, true); end > at {
			if len(x.seen) > 0 { // what led to this match is no failure for the next
				for k := range c.splits {
					bit := k*x.n + end
					x.seen[bit>>6] &^= 1 << (bit & 63)
				}
			}
			return at, end, true
		}
	}
	return 0, 0, false
}

// match is where the instructions from pc on end when they begin at position at; -1: nowhere.
func (c *rx) match(x *rxState, s string, at, pc int, remember bool) int {
	base := len(x.stack)
	for {
		x.steps++
		in := &c.insts[pc]
		ok := true
		switch in.op {
		case rxOne:
			n := in.set.at(s[at:])
			ok = n > 0
			at, pc = at+n, pc+1
		case rxRun:
			k := 0
			for in.x < 0 || k < in.x {
				n := in.set.at(s[at:])
				if n == 0 {
					break
				}
				at += n
				k++
			}
			x.steps += k
			ok, pc = k >= in.n, pc+1
		case rxSplit:
			if remember && x.steps > 32*(x.n+64) && c.failed(x, in.n, at) {
				ok = false
				break
			}
			x.stack = append(x.stack, rxFrame{in.y, at})
			pc = in.x
		case rxJump:
			pc = in.x
		case rxIf:
			ok = (c.match(x, s, at, pc+1, false) >= 0) != in.neg
			pc = in.x
		case rxEnd:
			ok, pc = at == len(s) || s[at] == '\n', pc+1
		case rxDone:
			x.stack = x.stack[:base]
			return at
		}
		if !ok {
			if len(x.stack) == base {
				return -1
			}
			f := x.stack[len(x.stack)-1]
			x.stack = x.stack[:len(x.stack)-1]
			pc, at = f.pc, f.at
		}
	}
}

// failed reports whether the split was come upon at this position before, and remembers that it was.
func (c *rx) failed(x *rxState, split, at int) bool {
	if len(x.seen) == 0 {
		words := (c.splits*x.n + 63) / 64
		if cap(x.seen) < words {
			x.seen = make([]uint64, words)
		} else {
			x.seen = x.seen[:words]
			clear(x.seen)
		}
	}
	bit := split*x.n + at
	was := x.seen[bit>>6]&(1<<(bit&63)) != 0
	x.seen[bit>>6] |= 1 << (bit & 63)
	return was
}
