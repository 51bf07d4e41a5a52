package constrain

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
)

// TestMemory: what a program remembers is bounded however long its outputs are, and what was forgotten is held by no matcher.
func TestMemory(t *testing.T) {
	p := compile(t, Spec{Regex: `.*[a-m].{11}`})
	m, idle, r := p.New(), p.New(), rand.New(rand.NewPCG(1, 1))
	idle.Accept('a')
	for range 6000 {
		if _, err := m.Mask(); err != nil {
			t.Fatal(err)
		}
		if !m.Accept(uint32('a' + r.IntN(26))) {
			t.Fatal("a letter may follow")
		}
		if p.m.size > cacheBytes {
			t.Fatalf("%d bytes are kept", p.m.size)
		}
	}
	if p.m.age < 2 {
		t.Fatal("nothing was forgotten")
	}
	for _, m := range []*Matcher{m, idle, p.New()} {
		seen := map[*dstate]bool{}
		for queue := []*dstate{m.at}; len(queue) > 0; queue = queue[1:] {
			for _, to := range queue[0].next {
				if to != nil && !seen[to] {
					seen[to] = true
					queue = append(queue, to)
				}
			}
		}
		if len(seen) > cacheBytes/2200 {
			t.Errorf("a matcher holds %d states", len(seen))
		}
	}
	if !idle.Accept('b') || idle.MayEnd() {
		t.Error("a matcher of before goes on")
	}
	for range 10 {
		idle.Accept('x')
	}
	if !idle.MayEnd() {
		t.Error("a matcher of before comes to its end")
	}
}

// TestCacheBound: large grammars leave less room for others.
func TestCacheBound(t *testing.T) {
	c := NewCache(tokens, 16)
	for i := range 6 {
		if _, err := c.Get(context.Background(), Spec{Grammar: fmt.Sprintf(`root ::= "%s%d"`, strings.Repeat("a", maxStates*3/4), i)}); err != nil {
			t.Fatal(err)
		}
	}
	if c.order.Len() != 2 || len(c.by) != 2 || c.kept > maxKept {
		t.Errorf("%d programs of %d states", c.order.Len(), c.kept)
	}
}

// TestSoon: what a client sends is compiled or refused soon, whatever it is. The time is a hundred times what it takes.
func TestSoon(t *testing.T) {
	var rules strings.Builder
	rules.WriteString("root ::= a0\n")
	for i := range 30_000 {
		fmt.Fprintf(&rules, "a%d ::= a%d\n", i, i+1)
	}
	rules.WriteString(`a30000 ::= "x"?`)
	for name, s := range map[string]Spec{
		"rules that call the next": {Grammar: rules.String()},
	} {
		t.Run(name, func(t *testing.T) {
			begin := time.Now()
			_, err := Compile(context.Background(), s, tokens)
			if took := time.Since(begin); took > 20*time.Second {
				t.Errorf("%v: %.200v", took, err)
			}
		})
	}
}
