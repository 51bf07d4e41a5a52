package ingo_test

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dynamograph/dynamo/examples/ingo"
	"github.com/dynamograph/dynamo/graph/diag"
	"github.com/dynamograph/dynamo/specs/write"
)

func Example() {
	g, _ := ingo.Disagg(2)
	spec, err := write.Spec(g, "cue", write.Options{})
	if err != nil {
		panic(err)
	}
	fmt.Print(string(spec))
	p, _, err := ingo.Compile(context.Background(), g)
	if err != nil {
		panic(err)
	}
	for _, group := range p.Groups {
		fmt.Println(group.Name, group.Replicas.Want)
	}
	// Output:
	// package disagg
	//
	// import "dynamo.graph/spec"
	//
	// spec.#Graph & {
	// 	name: "disagg"
	// 	slo: {ttft: "500ms", itl: "25ms"}
	//
	// 	nodes: {
	// 		api: spec.#Frontend & {listen: "127.0.0.1:8000"}
	// 		route: spec.#Router & {policy: "least-loaded"}
	// 		prefill: spec.#Prefill & {engine: "mock", mock: {itl: "5ms", ttft: "20ms"}}
	// 		decode: spec.#Decode & {replicas: 2, engine: "mock", mock: {itl: "5ms", ttft: "20ms"}}
	// 	}
	//
	// 	edges: {
	// 		"api -> route": {}
	// 		"route.prefill -> prefill": {}
	// 		"route.decode -> decode": {}
	// 		"prefill.kv -> decode.kv": {transport: "shm"}
	// 	}
	// }
	// api 1
	// decode 2
	// prefill 1
}

// A mistake is found at the line of Go that made it.
func TestMistake(t *testing.T) {
	g, list := ingo.Disagg(-1)
	if g == nil {
		t.Fatal(list)
	}
	p, list, err := ingo.Compile(t.Context(), g)
	if err != nil {
		t.Fatal(err)
	}
	var d diag.Diagnostic
	for _, x := range list {
		if x.Path == "nodes.decode.replicas" {
			d = x
		}
	}
	if p != nil || filepath.Base(d.Pos.File) != "ingo.go" || d.Pos.Line == 0 || !strings.Contains(d.Msg, "-1") {
		t.Errorf("%v %+v", p, list)
	}
}
