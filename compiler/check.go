package compiler

import (
	"github.com/dynamograph/dynamo/graph/diag"
)

// checkFunc finds one sort of mistake on the graph as it will run.
type checkFunc struct {
	code string // of diag.Codes; a check may use others beside
	run  func(*state) diag.List
}

// checks is the list of checks, in no order that matters.
var checks = []checkFunc{}

func check(s *state) diag.List {
	var list diag.List
	for _, c := range checks {
		list = append(list, c.run(s)...)
	}
	return list
}
