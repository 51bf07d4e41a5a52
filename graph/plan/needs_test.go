package plan_test

import (
	"fmt"
	"testing"

	"github.com/dynamograph/dynamo/graph/plan"
)

func ExampleNeeds_Add() {
	var n plan.Needs
	n.Add(
		plan.Part{Name: "weights", Place: plan.OnDevice, Bytes: 70 << 30},
		plan.Part{Name: "KV cache", Place: plan.OnDevice, Bytes: 4 << 30, Each: 131072, Unit: "token", Field: "kv.tokens"},
		plan.Part{Name: "process", Place: plan.InMemory, Bytes: 4 << 30, Guess: true},
	)
	fmt.Println(plan.Bytes(n.DeviceBytes), "on each device")
	for _, p := range n.Parts {
		fmt.Println(p)
	}
	// Output:
	// 74.00 GiB on each device
	// weights 70.00 GiB
	// KV cache 4.00 GiB (32768 tokens of 128.00 KiB)
	// process 4.00 GiB (estimate)
}

// The sums are those of the parts, place by place.
func TestAdd(t *testing.T) {
	var n plan.Needs
	for i, p := range []plan.Place{plan.InMemory, plan.Shared, plan.OnDevice, plan.OnDisk, plan.DiskCache, plan.ModelFile} {
		n.Add(plan.Part{Name: "x", Place: p, Bytes: 1 << i}, plan.Part{Name: "nothing", Place: p}, plan.Part{Name: "less", Place: p, Bytes: -1})
	}
	if n.MemoryBytes != 1 || n.SharedBytes != 2 || n.DeviceBytes != 4 || n.DiskBytes != 56 || len(n.Parts) != 6 {
		t.Errorf("%+v", n)
	}
}
