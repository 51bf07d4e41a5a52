package llama_test

import (
	"fmt"

	"github.com/dynamograph/dynamo/nodes/engine/native/llama"
)

// A file that is not there, as any other fault of the input, is one error that names it.
func ExampleOpen() {
	_, err := llama.Open(llama.Options{Path: "testdata/absent.gguf"})
	fmt.Println(err)
	// Output: model: open testdata/absent.gguf: no such file or directory
}
