package diag_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/dynamograph/dynamo/graph/diag"
)

func TestNearest(t *testing.T) {
	kinds := []string{"decode", "frontend", "kvtier", "migrate", "prefill", "preprocess", "router", "worker"}
	for _, c := range []struct {
		got  string
		from []string
		want string
	}{
		{"prefil", kinds, "prefill"},
		{"ruoter", kinds, "router"},
		{"Router", kinds, "router"},
		{"decoder", kinds, "decode"},
		{"kvaware", []string{"round-robin", "kv-aware", "random"}, "kv-aware"},
		{"round_robin", []string{"round-robin", "random"}, "round-robin"},
		{"gpu", []string{"engine", "kind", "gpus"}, "gpus"},
		{"tok", []string{"seqs", "tokens"}, "tokens"},
		{"tier", []string{"tiers", "kind"}, "tiers"},
		{"zz", kinds, ""},
		{"x", []string{"y"}, ""},
		{"", kinds, ""},
		{"planet", kinds, ""},
		{"größe", []string{"grösse", "name"}, "grösse"},
		{strings.Repeat("a", 300), []string{strings.Repeat("a", 299)}, ""},
		{"same", []string{"same"}, ""},
	} {
		if got := diag.Nearest(c.got, c.from); got != c.want {
			t.Errorf("Nearest(%q) = %q, want %q", c.got, got, c.want)
		}
	}
}

func ExampleSuggest() {
	fmt.Println(diag.Suggest("prefil", []string{"decode", "prefill"}))
	// Output: did you mean "prefill"?
}

func TestCodes(t *testing.T) {
	kebab := regexp.MustCompile(`^[a-z]+(-[a-z]+)*$`)
	for name, c := range diag.Codes {
		if !kebab.MatchString(name) {
			t.Errorf("code %q: not kebab-case", name)
		}
		if c.Meaning == "" || strings.HasSuffix(c.Meaning, ".") || !strings.HasSuffix(c.Do, ".") {
			t.Errorf("code %q: Meaning %q must be one line without full stop, Do %q whole sentences", name, c.Meaning, c.Do)
		}
	}
}
