package frontend

import (
	"slices"
	"strings"
	"testing"

	"github.com/dynamograph/dynamo/graph"
	"github.com/dynamograph/dynamo/graph/diag"
	"github.com/dynamograph/dynamo/graph/flow"
	"github.com/dynamograph/dynamo/graph/flow/llm"
	"github.com/dynamograph/dynamo/graph/kind"
	"github.com/dynamograph/dynamo/graph/kind/kindtest"
)

func TestMatches(t *testing.T) {
	for _, c := range []struct {
		pattern, s string
		want       bool
	}{
		{"a", "a", true}, {"a", "ab", false}, {"a*", "a", true}, {"a*", "abc", true}, {"*", "", true}, {"*b", "ab", true}, {"*b", "ba", false},
		{"a*c*e", "abcde", true}, {"a*c*e", "abde", false}, {"ab*", "a*", false}, {"a*", "ab*", true}, {"a*", "a*c", true}, {"*c", "a*", false},
		{"**", "x", true},
	} {
		if got := matches(c.pattern, c.s); got != c.want {
			t.Errorf("%q takes %q: %v", c.pattern, c.s, got)
		}
	}
}

func TestRouteChecks(t *testing.T) {
	g := &graph.Graph{
		Models: map[string]*graph.Model{
			"small": {Name: "small", Names: []string{"small", "tiny"}, Adapters: map[string]*graph.Adapter{"fr": {Name: "fr"}}}, "big": {Name: "big", Names: []string{"big"}},
		},
		Nodes: map[string]*graph.Node{
			"api": {Name: "api"}, "pre": {Name: "pre", Inserted: true}, "a": {Name: "a"}, "wa": {Name: "wa", Model: "small"},
			"b": {Name: "b"}, "wb": {Name: "wb", Model: "big"}, "far": {Name: "far"},
		},
	}
	for _, e := range []string{"api pre", "pre a", "a wa", "api b", "b wb", "api far"} {
		f := strings.Fields(e)
		g.Edges = append(g.Edges, &graph.Edge{From: graph.End{Node: f[0]}, To: graph.End{Node: f[1]}, Type: "chat"})
	}
	at := diag.Pos{File: "s", Line: 4, Col: 1}
	g.Nodes["api"].Fields = map[string]diag.Pos{"routes.0.model": at}
	for _, tt := range []struct {
		name   string
		routes []Route
		want   []string
	}{
		{"right", []Route{{Model: "small", To: "a", Fallbacks: []string{"far"}}, {Model: "b*", To: "b"}, {Model: "*", To: "far"}}, nil},
		{"an adapter", []Route{{Model: "fr", To: "a"}}, nil},
		{"any name elsewhere", []Route{{Model: "gpt-5", To: "far"}}, nil},
		{"unknown", []Route{{Model: "small", To: "aa"}}, []string{`unknown-node nodes.api.routes.0.to: no node "aa"`}},
		{"not led to", []Route{{Model: "small", To: "wa"}}, []string{`missing-edge nodes.api.routes.0.to: no edge leads from api to "wa"`}},
		{"not served", []Route{{Model: "smal", To: "a"}}, []string{`unknown-model nodes.api.routes.0.model: a serves no model "smal"`}},
		{"served elsewhere", []Route{{Model: "big*", To: "a"}}, []string{"unknown-model"}},
		{"shadowed", []Route{{Model: "*", To: "far"}, {Model: "small", To: "a"}}, []string{`shadowed-route nodes.api.routes.1.model: no request takes it: all for "small" take the route for "*"`}},
		{"shadowed pattern", []Route{{Model: "s*", To: "a"}, {Model: "sm*", To: "a"}}, []string{"shadowed-route"}},
		{"not shadowed", []Route{{Model: "sm*", To: "a"}, {Model: "s*", To: "a"}}, nil},
		{"fallback to itself", []Route{{Model: "small", To: "a", Fallbacks: []string{"a"}}}, []string{"shadowed-route nodes.api.routes.0.fallbacks.0"}},
		{"fallback twice", []Route{{Model: "small", To: "a", Fallbacks: []string{"far", "b", "far"}}}, []string{"shadowed-route nodes.api.routes.0.fallbacks.2"}},
		{"unknown fallback", []Route{{Model: "small", To: "a", Fallbacks: []string{"fer"}}}, []string{"unknown-node nodes.api.routes.0.fallbacks.0"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := DefaultConfig()
			c.Routes = tt.routes
			l := check(c, kind.Site{Graph: g, Node: g.Nodes["api"]})
			if len(l) != len(tt.want) {
				t.Fatalf("got %v, want %v", l, tt.want)
			}
			for i, w := range tt.want {
				if !strings.HasPrefix(l[i].Code+" "+l[i].Msg, w) || diag.Codes[l[i].Code].Meaning == "" {
					t.Errorf("got %s %s, want %s", l[i].Code, l[i].Msg, w)
				}
			}
			if tt.name == "shadowed" && (len(l[0].Related) != 1 || l[0].Related[0].Pos != at) {
				t.Errorf("the route that takes them is not shown: %+v", l[0])
			}
		})
	}
}

func TestTenantsNeedKeys(t *testing.T) {
	c := DefaultConfig()
	c.Tenants = "key"
	s := kind.Site{Graph: &graph.Graph{}, Node: &graph.Node{Name: "api"}}
	if l := check(c, s); len(l) != 1 || l[0].Path != "nodes.api.tenants" {
		t.Errorf("got %v", l)
	}
	c.Keys = "env:KEYS"
	if l := check(c, s); len(l) > 0 {
		t.Errorf("got %v", l)
	}
	e := kind.Default.Lookup("frontend")
	if does, field := e.Tenants([]byte(`{"tenants":"key"}`)); does != "tells" || field != "tenants" {
		t.Errorf("it %s by %q", does, field)
	}
	if l := e.Lacks([]byte(`{"routes":[{"model":"*","to":"a"}]}`)); !slices.ContainsFunc(l, func(l kind.Lack) bool { return l.Field == "routes" }) {
		t.Errorf("routes are not lacked: %v", l)
	}
}

// Requests go where their model is served.
func TestSeveralModels(t *testing.T) {
	one, two := &fake{answer: words("one")}, &fake{answer: words("two")}
	s := serve(t, words("hello"), func(f *Frontend) {
		f.models["other"] = f.models["tiny"]
		f.host.(*kindtest.Host).Dialled["out"] = flow.Static[*llm.ChatRequest, *llm.ChatDelta]{
			{ID: "preprocess-0", AsyncEngine: one, Info: map[string]string{InfoModels: "org/tiny\ntiny"}},
			{ID: "preprocess-1", AsyncEngine: two, Info: map[string]string{InfoModels: "other"}},
		}
	})
	for range 3 {
		for model, want := range map[string]string{"tiny": `"one"`, "other": `"two"`} {
			status, _, body := s.get("POST", pathChat, strings.Replace(okBody, "tiny", model, 1))
			if status != 200 || !strings.Contains(body, want) {
				t.Errorf("%s: %d %s, want %s", model, status, body, want)
			}
		}
	}
	if status, _, body := s.get("POST", pathChat, strings.Replace(okBody, "tiny", "org/tiny", 1)); status != 200 || !strings.Contains(body, `"one"`) {
		t.Errorf("%d %s", status, body)
	}
}

// A key's name is the tenant, where the graph says so; a key without a name is one of its own.
func TestTenants(t *testing.T) {
	for tenants, want := range map[string][]string{"none": {"", ""}, "key": {"alice", "sha256:"}} {
		s := serve(t, words("hello"), with(map[string]string{"env:KEYS": "alice a-long-key-of-alice\na-long-key-of-nobody\n"},
			func(c *Config) { c.Keys, c.Tenants = "env:KEYS", tenants }))
		for i, key := range []string{"a-long-key-of-alice", "a-long-key-of-nobody"} {
			if status, _, body := s.get("POST", pathChat, okBody, "Authorization", "Bearer "+key); status != 200 {
				t.Fatalf("%d %s", status, body)
			}
			q := s.e.requests()[i]
			if got := q.Tenant; got != want[i] && (want[i] != "sha256:" || !strings.HasPrefix(got, want[i]) || len(got) != len(want[i])+16) {
				t.Errorf("tenants %q: key %d is tenant %q, want %q", tenants, i, got, want[i])
			}
		}
	}
}
