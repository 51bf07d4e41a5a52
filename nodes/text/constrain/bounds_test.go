package constrain

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dynamograph/dynamo/graph/flow"
)

// TestMemory: what a program remembers is bounded however long its outputs are, and what was forgotten is held by no matcher.
func TestMemory(t *testing.T) {
	p := compile(t, Spec{Regex: `.*[a-m].{11}`})
	m, idle, r := p.New(), p.New(), rand.New(rand.NewPCG(1, 1))
	idle.Accept('a')
	for range 3000 {
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

// TestCacheKey: no two constraints are taken for each other.
func TestCacheKey(t *testing.T) {
	c := NewCache(tokens, 16)
	for _, s := range []Spec{{Choice: []string{"a\x00b"}}, {Choice: []string{"a", "b"}}, {Choice: []string{"a1:b"}}, {Regex: "a"}, {Choice: []string{"b"}, After: "a"}, {Choice: []string{"a", "b"}, After: "\x00"}} {
		p, err := c.Get(t.Context(), s)
		if err != nil {
			t.Fatal(err)
		}
		if fresh := compile(t, s); takes(p, "b") != takes(fresh, "b") || takes(p, "ab") != takes(fresh, "ab") {
			t.Errorf("%q: another's program", s)
		}
	}
	if c.order.Len() != 6 {
		t.Errorf("%d programs", c.order.Len())
	}
}

// TestOneAtATime: who waits for another's compilation waits no longer than its request, and gets what the other made.
func TestOneAtATime(t *testing.T) {
	c := NewCache(tokens, 16)
	c.turn <- struct{}{}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := c.Get(ctx, Spec{Regex: "a"}); flow.AsError(err).Class != flow.Cancelled {
		t.Errorf("%v", err)
	}
	<-c.turn
	var wg sync.WaitGroup
	var all [8]*Program
	for i := range all {
		wg.Go(func() { all[i], _ = c.Get(t.Context(), Spec{Regex: "a"}) })
	}
	wg.Wait()
	for _, p := range all {
		if p == nil || p != all[0] {
			t.Fatal("compiled more than once")
		}
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
	list := func(n int, format string) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, format+",", i)
		}
		return strings.TrimSuffix(b.String(), ",")
	}
	for name, s := range map[string]Spec{
		"a long name":              {JSONSchema: `{"properties":{"` + strings.Repeat("n", 100_000) + `":{}},"additionalProperties":true}`},
		"properties":               {JSONSchema: `{"properties":{` + list(40_000, `"p%d":{}`) + `},"additionalProperties":true}`},
		"enum":                     {JSONSchema: `{"allOf":[{"enum":[` + list(40_000, `"v%d"`) + `]},{"enum":[1,` + list(40_000, `"v%d"`) + `]}]}`},
		"oneOf":                    {JSONSchema: `{"oneOf":[` + list(20_000, `{"const":%d}`) + `]}`},
		"oneOf objects":            {JSONSchema: `{"oneOf":[` + list(5_000, `{"type":"object","properties":{"k":{"const":%d}},"required":["k"]}`) + `]}`},
		"allOf":                    {JSONSchema: `{"allOf":[` + list(30_000, `{"properties":{"a%d":{}}}`) + `]}`},
		"allOf required":           {JSONSchema: `{"allOf":[` + list(40_000, `{"required":["%d"]}`) + `]}`},
		"allOf in a circle":        {JSONSchema: `{"$defs":{"a":{"allOf":[{"$ref":"#/$defs/b"}],"minLength":1},"b":{"allOf":[{"$ref":"#/$defs/a"}],"minLength":2}},"$ref":"#/$defs/a"}`},
		"references":               {JSONSchema: `{"$defs":{` + list(30_000, `"a%[1]d":{"$ref":"#/$defs/a%[1]d0"}`) + `},"$ref":"#/$defs/a1"}`},
		"multiples":                {JSONSchema: `{"prefixItems":[` + list(300, `{"type":"integer","multipleOf":9%02d}`) + `]}`},
		"bounds":                   {JSONSchema: `{"prefixItems":[` + list(9_000, `{"type":"number","minimum":-123456789012345%[1]d,"maximum":987654321098765%[1]d}`) + `]}`},
		"formats":                  {JSONSchema: `{"prefixItems":[` + list(20_000, `{"type":"string","format":"uri","title":"%d"}`) + `]}`},
		"long names":               {JSONSchema: `{"properties":{"` + strings.Repeat("n", 400_000) + `":{"properties":{` + list(30_000, `"p%d":{}`) + `}}}}`},
		"equal deep values":        {JSONSchema: `{"allOf":[{"enum":[` + strings.Repeat("[", 150) + `"` + strings.Repeat("x", 400_000) + `"` + strings.Repeat("]", 150) + `]},{"enum":[1]}]}`},
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
