package compiler_test

import (
	"fmt"
	"strings"

	"github.com/dynamograph/dynamo/compiler"
	"github.com/dynamograph/dynamo/compiler/compilertest"
	"github.com/dynamograph/dynamo/graph"
	"github.com/dynamograph/dynamo/graph/plan"
)

func ExampleCompile() {
	g := &graph.Graph{
		Name: "hello",
		Nodes: map[string]*graph.Node{
			"api":  {Name: "api", Kind: "frontend"},
			"echo": {Name: "echo", Kind: "echo"},
		},
		Edges: []*graph.Edge{{From: graph.End{Node: "api"}, To: graph.End{Node: "echo"}}},
	}
	p, list := compiler.Compile(g, compiler.Options{
		Registry: compilertest.Registry(),
		Trace:    func(pass string, _ *graph.Graph, _ *plan.Plan) { fmt.Println("changed by", pass) },
	})
	fmt.Println(len(list), "findings")
	for _, group := range p.Groups {
		var nodes []string
		for _, u := range group.Units {
			nodes = append(nodes, u.Node)
		}
		fmt.Println(group.Name+":", strings.Join(nodes, ", "))
	}
	// Output:
	// changed by resolve
	// changed by default
	// changed by insert
	// changed by size
	// changed by place
	// changed by lower
	// 0 findings
	// api: api, api-preprocess, api-migrate, echo
}

// What is sound of a spec with mistakes has edges that can be judged all the same.
func ExampleEdges() {
	g := &graph.Graph{
		Name: "half",
		Nodes: map[string]*graph.Node{
			"prefill": {Name: "prefill", Kind: "prefill"},
			"echo":    {Name: "echo", Kind: "echo"},
		},
		Edges: []*graph.Edge{{From: graph.End{Node: "prefill", Port: "kv"}, To: graph.End{Node: "echo"}}},
	}
	for _, d := range compiler.Edges(g, compilertest.Registry()) {
		fmt.Println(d.Msg)
	}
	// Output:
	// edge "prefill.kv -> echo": prefill.kv sends "kv", but echo.in takes "tokens"
}
