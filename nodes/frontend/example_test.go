package frontend_test

import (
	"fmt"

	"github.com/dynamograph/dynamo/graph/flow"
	"github.com/dynamograph/dynamo/nodes/frontend"
)

func ExampleStatusOf() {
	for _, c := range []flow.Class{flow.InvalidRequest, flow.CapacityExhausted, flow.Unavailable, flow.DeadlineExceeded, flow.Internal} {
		fmt.Println(frontend.StatusOf(c), c)
	}
	// Output:
	// 400 invalid_request
	// 429 capacity_exhausted
	// 503 unavailable
	// 504 deadline_exceeded
	// 500 internal
}
