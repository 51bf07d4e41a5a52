// Package decode registers the kind of node "decode". The component is nodes/engine/serve; this package only says which ports it has.
package decode

import (
	"github.com/dynamograph/dynamo/graph/kind"
	"github.com/dynamograph/dynamo/nodes/engine"
	"github.com/dynamograph/dynamo/nodes/engine/check"
	"github.com/dynamograph/dynamo/nodes/engine/serve"
)

const schema = `
// #Decode continues prompts that prefill computed, and computes them itself where that fails.
#Decode: {
	#worker
	#engine
	kind: "decode"
}
`

func init() {
	kind.Register(kind.Kind[engine.Config]{
		Name:       "decode",
		Summary:    "Continues prompts that prefill computed, and computes them itself where that fails.",
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
			return serve.New(serve.Options{Config: c, Host: h, FetchKV: true})
		},
	})
}

var kv = kind.Port{Name: "kv", Type: "kv", Dir: kind.In, Need: true, Many: true}
