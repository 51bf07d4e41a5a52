package table_test

import (
	"fmt"

	"github.com/dynamograph/dynamo/nodes/engine/table"
)

func ExampleEngine_Release() {
	r, ok := table.Find("vllm").Release("v0.32.0")
	fmt.Println(ok, r.Version, r.File)
	f, off, _ := r.Flag("--no-enable-prefix-caching")
	fmt.Println(f.Name, f.Type, off)
	fmt.Println(r.Has(table.Tools, "hermes"), r.Has(table.Tools, "qwen25"))
	// Output:
	// true 0.32.0 vllm-0.32.0-cp38-abi3-manylinux_2_28_x86_64.whl
	// enable-prefix-caching switch true
	// true false
}
