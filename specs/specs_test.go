package specs_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/dynamograph/dynamo/specs"
)

func ExampleNames() {
	fmt.Println(strings.Join(specs.Names(), " "))
	// Output: llama-agg llama-disagg mock-agg mock-disagg
}

func TestRead(t *testing.T) {
	for _, n := range specs.Names() {
		b, err := specs.Read(n)
		if err != nil || !strings.Contains(string(b), fmt.Sprintf("name: %q", n)) {
			t.Errorf("%s: %v, %.60s", n, err, b)
		}
		if lines := strings.Count(string(b), "\n"); lines > 37 {
			t.Errorf("%s: %d lines; a ready spec has at most 37", n, lines)
		}
	}
	for _, n := range []string{"", "llama", "../llama-agg", "llama-agg.cue"} {
		if _, err := specs.Read(n); err == nil || !strings.Contains(err.Error(), "llama-agg, llama-disagg") {
			t.Errorf("%q: %v", n, err)
		}
	}
}
