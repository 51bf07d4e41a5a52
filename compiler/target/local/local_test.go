package local_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/dynamograph/dynamo/compiler/target/local"
	"github.com/dynamograph/dynamo/graph/plan"
)

func Example() {
	files, list := local.Target{}.Lower(context.Background(), &plan.Plan{Version: plan.Version, Graph: "g"})
	fmt.Println(len(list), files[0].Path)
	// Output: 0 plan.json
}

func TestReadBack(t *testing.T) {
	files, list := local.Target{}.Lower(t.Context(), &plan.Plan{Version: plan.Version, Graph: "g"})
	if list.Failed() {
		t.Fatal(list)
	}
	p, err := plan.Decode(files[0].Data)
	if err != nil || p.Graph != "g" {
		t.Errorf("got %v, %v", p, err)
	}
}
