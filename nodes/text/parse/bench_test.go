package parse

import "testing"

// BenchmarkFeed is a delta of one token: content, content next to blanks, content with what may begin a mark, and arguments.
func BenchmarkFeed(b *testing.B) {
	for _, c := range []struct {
		name, lead string
		deltas     []string
	}{
		{"content", "", []string{" the", " quick", " brown"}},
		{"blanks", "", []string{" the\n", " quick ", " brown"}},
		{"marks", "", []string{" a<", " b", "<too", "x"}},
		{"arguments", `<tool_call>{"name":"f","arguments":{"a":"`, []string{" the", " quick", " brown"}},
	} {
		b.Run(c.name, func(b *testing.B) {
			p, err := New(Options{Tools: "hermes", Reasoning: "qwen3"})
			if err != nil {
				b.Fatal(err)
			}
			defer p.Close()
			p.Feed(c.lead)
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				p.Feed(c.deltas[i%len(c.deltas)])
			}
		})
	}
}
