package jinja

import (
	"context"
	"math/big"
	"strings"
	"sync"
	"time"
)

// Limits bound one render. Zero values are the defaults in brackets.
type Limits struct {
	Steps  int // loop turns, calls, items that filters see, and 4 KiB of text that they look at [1 million]
	Memory int // bytes of text, lists and dicts that are made, whether they are still used or not [256 MiB]
	Output int // bytes of the result [64 MiB]
}

// Limits that are the same for all templates. In brackets, the most that 72 popular ones need.
const (
	maxSource  = 128 << 10 // bytes of source (18 KiB)
	maxNesting = 200       // blocks and brackets inside each other
	maxChain   = 200       // operators, filters or subscripts in a row
	maxHeight  = 300       // of an expression's tree
	maxCalls   = 100       // macros and recursive loops inside each other
	maxRange   = 100_000   // items of a range, as in Jinja's sandbox
	maxDigits  = 4300      // of an integer, as in Python
)

// state is what one render knows.
type state struct {
	ctx     context.Context
	steps   int
	memory  int
	output  int
	checked int // steps when the context was last looked at
	work4k  int
	calls   int
	line    int
	out     []byte
	vars    []Value // of the context, by index
	mark    string  // "" or a mark that functions do not see
	hold    string  // "" or a mark that functions do not see, but strip keeps
	now     func() time.Time
	spare   [][]byte            // buffers
	text    func(string) string // may be nil
}

var states = sync.Pool{New: func() any { return new(state) }}

func limit(format string, args ...any) { fail(TypeLimit, format, args...) }

// step spends n steps.
func (st *state) step(n int) {
	if st == nil {
		return
	}
	if st.steps -= n; st.steps < 0 {
		limit("the template does not come to an end")
	}
	if st.checked-st.steps >= 256 {
		st.checked = st.steps
		if err := st.ctx.Err(); err != nil {
			panic(err)
		}
	}
}

// work tells that n bytes or so are looked at.
func (st *state) work(n int) {
	if st == nil {
		return
	}
	if st.work4k += n; st.work4k >= 4096 {
		st.step(st.work4k >> 12)
		st.work4k &= 4095
	}
}

// alloc tells that n bytes are about to be made.
func (st *state) alloc(n int) {
	if st == nil {
		return
	}
	if n < 0 || n > st.memory {
		limit("the template makes more than its share of memory")
	}
	st.memory -= n
	st.work(n)
}

const valueSize = 16 // bytes of an item in a list

func (st *state) write(s string) {
	if len(st.out)+len(s) > st.output {
		limit("the text has more than %d bytes", st.output)
	}
	st.out = append(st.out, s...)
}

// capture gives what f writes.
func (st *state) capture(f func()) string {
	outer := st.out
	if n := len(st.spare); n > 0 {
		st.out, st.spare = st.spare[n-1][:0], st.spare[:n-1]
	} else {
		st.out = nil
	}
	f()
	st.alloc(len(st.out))
	s := string(st.out)
	st.spare = append(st.spare, st.out)
	st.out = outer
	return s
}

// frame holds the variables of one run of a function.
type frame struct {
	vars   []Value
	parent *frame
}

func newFrame(n int, parent *frame) *frame {
	f := &frame{make([]Value, n), parent}
	for i := range f.vars {
		f.vars[i] = missing
	}
	return f
}

// plain is s without marks.
func (st *state) plain(s string) string {
	if st == nil || st.mark == "" && st.hold == "" {
		return s
	}
	if st.mark != "" && strings.Contains(s, st.mark) {
		s = strings.ReplaceAll(s, st.mark, "")
	}
	if st.hold != "" && strings.Contains(s, st.hold) {
		s = strings.ReplaceAll(s, st.hold, "")
	}
	return s
}

// cuts finds pieces of s without regard to marks: find gives their places in the plain text; a mark belongs to what stands before it.
func (st *state) cuts(s string, find func(plain string) [][2]int) []string {
	p := st.plain(s)
	places := find(p)
	out := make([]string, len(places))
	if len(p) == len(s) {
		for i, c := range places {
			out[i] = s[c[0]:c[1]]
		}
		return out
	}
	at := make([]int, len(p)+1) // where in s a byte of p begins
	j := 0
	skip := func() {
		for {
			switch {
			case st.mark != "" && strings.HasPrefix(s[j:], st.mark):
				j += len(st.mark)
			case st.hold != "" && strings.HasPrefix(s[j:], st.hold):
				j += len(st.hold)
			default:
				return
			}
		}
	}
	st.alloc(8 * len(p))
	for i := 0; i < len(p); i++ {
		skip()
		if i > 0 { // what stands before the first rune belongs to it
			at[i] = j
		}
		j++
	}
	at[len(p)] = len(s)
	for i, c := range places {
		out[i] = s[at[c[0]]:at[c[1]]]
	}
	return out
}

func normal(b *big.Int) Value {
	if b.IsInt64() {
		return int(b.Int64())
	}
	return b
}
