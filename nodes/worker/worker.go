// Package worker registers the kind of node "worker". The component is nodes/engine/serve; this package only says which ports it has.
package worker

import (
	"github.com/dynamograph/dynamo/graph/kind"
	"github.com/dynamograph/dynamo/nodes/engine"
	"github.com/dynamograph/dynamo/nodes/engine/check"
	"github.com/dynamograph/dynamo/nodes/engine/serve"
)

const schema = `
// #Worker computes prompts and answers: prefill and decode in one.
#Worker: {
	#worker
	#engine
	kind: "worker"
}
`

func init() {
	kind.Register(kind.Kind[engine.Config]{
		Name:       "worker",
		Summary:    "Computes prompts and answers: prefill and decode in one.",
		Schema:     schema,
		NeedsModel: true,
		Default:    engine.DefaultConfig,
		Ports:      func(c engine.Config) []kind.Port { return serve.Ports(c) },
		Check:      serve.Check,
		Size:       serve.Size,
		Contract:   serve.Contract,
		Lacks:      serve.Lacks,
		Limits:     serve.Limits,
		Features:   check.Features,
		New: func(c engine.Config, h kind.Host) (kind.Component, error) {
			return serve.New(serve.Options{Config: c, Host: h})
		},
	})
}
