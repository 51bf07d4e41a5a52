// Package target turns plans into files: one folder below it a target. A target does no I/O; the caller writes the files.
package target

import (
	"context"

	"github.com/dynamograph/dynamo/graph/diag"
	"github.com/dynamograph/dynamo/graph/plan"
)

// File is one file that a target makes.
type File struct {
	Path string // slash-separated, below the output folder
	Data []byte
}

// Target lowers plans. Equal plans give equal files, sorted by path. Lower does not change the plan and is safe for concurrent use; with
// an error in the list the files are nil.
type Target interface {
	Name() string
	Lower(ctx context.Context, p *plan.Plan) ([]File, diag.List)
}
