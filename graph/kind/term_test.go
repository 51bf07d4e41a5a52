package kind_test

import (
	"reflect"
	"testing"

	"github.com/dynamograph/dynamo/graph"
	"github.com/dynamograph/dynamo/graph/diag"
	"github.com/dynamograph/dynamo/graph/kind"
)

func TestTermFits(t *testing.T) {
	for _, c := range []struct {
		rule kind.Rule
		a, b []string
		want bool
	}{
		{kind.Same, []string{"16"}, []string{"16"}, true},
		{kind.Same, []string{"16"}, []string{"64"}, false},
		{kind.Divides, []string{"2"}, []string{"4"}, true},
		{kind.Divides, []string{"4"}, []string{"2"}, true},
		{kind.Divides, []string{"3"}, []string{"4"}, false},
		{kind.Divides, []string{"any"}, []string{"4"}, true},
		{kind.Divides, []string{"0"}, []string{"4"}, true},
		{kind.Meet, []string{"rdma", "tcp"}, []string{"shm", "tcp"}, true},
		{kind.Meet, []string{"rdma"}, []string{"shm"}, false},
		{kind.Meet, nil, []string{"shm"}, false},
	} {
		x, y := kind.Term{Rule: c.rule, Values: c.a}, kind.Term{Rule: c.rule, Values: c.b}
		if x.Fits(y) != c.want || y.Fits(x) != c.want {
			t.Errorf("rule %v: %v and %v: want %v", c.rule, c.a, c.b, c.want)
		}
	}
}

func TestFinding(t *testing.T) {
	at := func(line int) diag.Pos { return diag.Pos{File: "g.cue", Line: line, Col: 3} }
	s := kind.Site{Node: &graph.Node{Name: "w", Pos: at(1), Fields: map[string]diag.Pos{"kv.block": at(2), "tiers.0": at(3)}}}
	for _, c := range []struct {
		field     string
		line, len int
	}{
		{"kv.block", 2, len("block")},
		{"tiers.0", 3, 0},      // an item has no label
		{"tiers.0.size", 3, 0}, // the nearest above it
		{"device", 1, 0},       // not set: the node
	} {
		d := s.Finding("bad-value", c.field, "write 16", "%d is odd", 15)
		want := diag.Diagnostic{
			Code: "bad-value", Pos: at(c.line), Len: c.len, Path: "nodes.w." + c.field, Msg: "nodes.w." + c.field + ": 15 is odd", Hint: "write 16",
		}
		if !reflect.DeepEqual(d, want) {
			t.Errorf("%s: %+v, want %+v", c.field, d, want)
		}
	}
}
