package family_test

import (
	"fmt"

	"github.com/dynamograph/dynamo/nodes/text/family"
)

func ExampleNamed() {
	c, ok := family.Named("Qwen/Qwen3-8B")
	fmt.Println(ok, c.Name, c.Tools, c.Reasoning, c.Thinking.Arg, c.Thinking.Default)
	// Output:
	// true qwen3 [hermes] [qwen3 deepseek_r1] enable_thinking true
}
