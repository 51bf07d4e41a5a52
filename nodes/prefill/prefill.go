// Package prefill registers the kind of node "prefill". The component is nodes/engine/serve; this package only says which ports it has.
package prefill

import (
	"github.com/dynamograph/dynamo/graph/kind"
	"github.com/dynamograph/dynamo/nodes/engine"
	"github.com/dynamograph/dynamo/nodes/engine/check"
	"github.com/dynamograph/dynamo/nodes/engine/serve"
)

const schema = `
// #Prefill computes prompts and hands their KV to decode.
#Prefill: {
	#worker
	#engine
	kind: "prefill"
}
`

func init() {
	kind.Register(kind.Kind[engine.Config]{
		Name:       "prefill",
		Summary:    "Computes prompts and hands their KV to decode.",
		Schema:     schema,
		NeedsModel: true,
		Default:    engine.DefaultConfig,
		Ports:      func(c engine.Config) []kind.Port { return serve.Ports(c, kv) },
		Check:      serve.Check,
		Size:       serve.Size,
		Contract:   serve.Contract,
		Lacks:      serve.Lacks,
		Limits:     serve.Limits,
		Features:   check.Features,
		New: func(c engine.Config, h kind.Host) (kind.Component, error) {
			return serve.New(serve.Options{Config: c, Host: h, ServeKV: true})
		},
	})
}

var kv = kind.Port{Name: "kv", Type: "kv", Dir: kind.Out, Need: true, Many: true}
