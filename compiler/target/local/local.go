// Package local is the target of one machine: the plan itself, which `dynamo graph run` and its children read.
package local

import (
	"context"

	"github.com/dynamograph/dynamo/compiler/target"
	"github.com/dynamograph/dynamo/graph/diag"
	"github.com/dynamograph/dynamo/graph/plan"
)

// Target writes plan.json. The zero Target is ready to use.
type Target struct{}

var _ target.Target = Target{}

// Name returns "local".
func (Target) Name() string { return "local" }

// Lower returns the plan as JSON.
func (Target) Lower(_ context.Context, p *plan.Plan) ([]target.File, diag.List) {
	b, err := plan.Encode(p)
	if err != nil {
		return nil, diag.List{{Code: "internal", Msg: err.Error()}}
	}
	return []target.File{{Path: "plan.json", Data: b}}, nil
}
