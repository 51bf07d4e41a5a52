package native

import (
	"sync"
	"testing"

	"github.com/dynamograph/dynamo/graph/flow/llm"
	"github.com/dynamograph/dynamo/nodes/engine/native/llama"
)

// idle is a model that costs nothing: what is left is the engine.
type idle struct{ *fake }

func (i idle) Forward([]byte, []llama.Seq) error { return nil }

// BenchmarkToken is the cost of an output token outside of the model, from the scheduler to the reader, with 1 and 16 streams.
func BenchmarkToken(b *testing.B) {
	for name, streams := range map[string]int{"1 stream": 1, "16 streams": 16} {
		b.Run(name, func(b *testing.B) {
			f := newFake()
			f.info.Context = 8192
			c := config()
			c.KV.Tokens = 16 * 8192
			e, _ := open(b, setup{model: idle{f}, conf: c})
			b.ReportAllocs()
			b.ResetTimer()
			var wg sync.WaitGroup
			for i := range streams {
				n := b.N/streams + 1
				wg.Go(func() {
					for n > 0 {
						take := min(n, 8000)
						n -= take
						r := &llm.TokensRequest{Tokens: prompt(i, 20, fakeVocab), Logprobs: -1, Stop: llm.Stop{MaxTokens: take, IgnoreEOS: true}}
						for _, err := range e.Generate(b.Context(), r) {
							if err != nil {
								b.Error(err)
							}
						}
					}
				})
			}
			wg.Wait()
		})
	}
}
