package serve_test

import (
	"fmt"

	"github.com/dynamograph/dynamo/graph/flow/llm"
	"github.com/dynamograph/dynamo/graph/model"
	"github.com/dynamograph/dynamo/nodes/engine"
	"github.com/dynamograph/dynamo/nodes/engine/serve"
)

func ExampleDescribe() {
	m := serve.Describe(engine.Info{Engine: "native", ModelID: "b179c952", Context: 8192, HandOff: []llm.Mode{llm.ModeAfter}})
	fmt.Println(m[serve.InfoEngine], m[serve.InfoModel], m[serve.InfoContext], m[serve.InfoHandOff])
	// Output: native b179c952 8192 after
}

func ExampleSize() {
	smol := model.Facts{FileBytes: 98 << 20, KV: model.Plain(30, 3, 64), Context: 8192}
	n := serve.Size(engine.DefaultConfig(), smol)
	fmt.Printf("%d MiB resident, %d MiB shared\n", n.MemoryBytes>>20, n.SharedBytes>>20)
	// Output: 784 MiB resident, 98 MiB shared
}
