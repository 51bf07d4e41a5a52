package gguf_test

import (
	"bytes"
	"fmt"

	"github.com/dynamograph/dynamo/graph/model/gguf"
	"github.com/dynamograph/dynamo/graph/model/gguf/gguftest"
)

func ExampleRead() {
	file := gguftest.Build([]gguftest.KV{
		gguftest.K("general.architecture", "llama"),
		gguftest.K("llama.block_count", uint32(30)),
		gguftest.K("tokenizer.ggml.tokens", []string{"<s>", "</s>", "hello"}),
	}, []gguftest.Tensor{
		{Name: "token_embd.weight", Type: gguf.Q4_0, Dims: []int64{64, 3}, Data: make([]byte, 3*2*18)},
	})
	f, err := gguf.Read(bytes.NewReader(file), int64(len(file)))
	if err != nil {
		fmt.Println(err)
		return
	}
	layers, _ := f.Uint("llama.block_count")
	tokens, _ := f.Strings("tokenizer.ggml.tokens")
	for _, t := range f.Tensors {
		fmt.Println(t.Name, t.Type, t.Dims, t.Size, "bytes")
	}
	fmt.Println(layers, "layers,", len(tokens), "tokens")
	_, err = gguf.Read(bytes.NewReader(file[:80]), 80)
	fmt.Println(err)
	// Output:
	// token_embd.weight Q4_0 [64 3] 108 bytes
	// 30 layers, 3 tokens
	// gguf: key 2 of 3 at byte 77: key needs 17 bytes, the file has 3 left
}
