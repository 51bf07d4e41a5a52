package external

import (
	"strings"
	"testing"

	"github.com/dynamograph/dynamo/graph"
	"github.com/dynamograph/dynamo/graph/kind"
)

func TestCheck(t *testing.T) {
	for url, want := range map[string]string{
		"https://api.example.com/v1":                  "",
		"http://127.0.0.1:8000/v1":                    "",
		"http://localhost:8000/v1":                    "",
		"http://[::1]:8000/v1":                        "",
		"https://api.example.com":                     "",
		"http://api.example.com/v1":                   "plain-http nodes.far.url: api.example.com is another machine",
		"https://":                                    "bad-value",
		"ftp://example.com":                           "bad-value",
		"https://me:hunter2@[bad/v1":                  `bad-value nodes.far.url: "…@[bad/v1"`,
		"https://api.example.com/v1/chat/completions": "bad-value",
	} {
		l := check(Config{URL: url}, kind.Site{Graph: &graph.Graph{}, Node: &graph.Node{Name: "far"}})
		if want == "" && len(l) > 0 || want != "" && (len(l) != 1 || !strings.HasPrefix(l[0].Code+" "+l[0].Msg, want)) {
			t.Errorf("%s: got %v, want %q", url, l, want)
		}
		for _, d := range l {
			if strings.Contains(d.Msg+d.Hint, "hunter2") {
				t.Errorf("%s: a finding shows the secret: %v", url, d)
			}
		}
	}
	if l := check(Config{URL: "https://x/v1", Timeout: -1}, kind.Site{Graph: &graph.Graph{}, Node: &graph.Node{Name: "far"}}); len(l) != 1 {
		t.Errorf("timeout below zero: %v", l)
	}
}
