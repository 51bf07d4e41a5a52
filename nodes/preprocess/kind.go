// Package preprocess registers the kind of node "preprocess": chat on the way down becomes tokens (chat template, tokenizer, limits), tokens
// on the way up become text (runes, stop strings, usage). It runs in the process of its caller. Where the node names no model it handles all
// models of the graph, each by the names that clients use. It chooses no instance beyond taking turns, and knows no HTTP.
package preprocess

import (
	"github.com/dynamograph/dynamo/graph/diag"
	"github.com/dynamograph/dynamo/graph/kind"
	"github.com/dynamograph/dynamo/nodes/text/template"
)

// Config is what a spec may set.
type Config struct {
	Template string `json:"template,omitempty"` // Jinja source; "": each model's own
}

const schema = `
// #Preprocess turns chats into tokens and tokens into text. The compiler puts one between a chat port and a tokens port by itself.
#Preprocess: {
	kind: "preprocess"
	// template is the source of a chat template in Jinja, for models that carry none or a broken one. Default: the model's own.
	template?: string
}
`

var ports = []kind.Port{
	{Name: "in", Type: "chat", Dir: kind.In, Need: true},
	{Name: "out", Type: "tokens", Dir: kind.Out, Need: true},
}

func init() {
	kind.Register(kind.Kind[Config]{
		Name:       "preprocess",
		Summary:    "Turns chats into tokens and tokens into text.",
		Schema:     schema,
		Colocate:   true,
		NeedsModel: true, // its tokenizer and template
		Converts:   [2]string{"chat", "tokens"},
		Default:    func() Config { return Config{} },
		Ports:      func(Config) []kind.Port { return ports },
		Check:      check,
		Parses:     parses,
		New:        func(c Config, h kind.Host) (kind.Component, error) { return New(c, h), nil },
	})
}

func check(c Config, s kind.Site) diag.List {
	if c.Template == "" {
		return nil
	}
	if _, err := template.Compile(c.Template, template.Options{}); err != nil {
		return diag.List{s.Finding("bad-value", "template",
			"give Jinja as a model's tokenizer_config.json holds it, or leave the field out to use the model's own", "%v", err)}
	}
	return nil
}
