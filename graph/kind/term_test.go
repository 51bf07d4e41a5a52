package kind_test

import (
	"testing"

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
