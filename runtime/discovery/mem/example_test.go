package mem_test

import (
	"context"
	"fmt"

	"github.com/dynamograph/dynamo/runtime/discovery"
	"github.com/dynamograph/dynamo/runtime/discovery/mem"
)

func Example() {
	r := mem.New()
	defer r.Close()
	lease, err := r.Register(context.Background(), discovery.Instance{ID: "decode-1", Node: "decode", Addr: "unix:/run/d1"})
	if err != nil {
		panic(err)
	}
	for table, err := range r.Watch(context.Background()) {
		if err != nil {
			panic(err)
		}
		fmt.Println(len(table))
		if len(table) == 0 {
			break
		}
		if err := lease.Close(context.Background()); err != nil {
			panic(err)
		}
	}
	// Output:
	// 1
	// 0
}
