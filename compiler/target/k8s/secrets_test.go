package k8s_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/dynamograph/dynamo/compiler/target/k8s"
	"github.com/dynamograph/dynamo/graph/plan"
)

// Each group gets the keys that its own config refers to; what is a secret itself never shows.
func TestSecretsByReference(t *testing.T) {
	unit := func(node, config string) *plan.Group {
		return &plan.Group{Name: node, Replicas: plan.Replicas{Min: 1, Want: 1, Max: 1},
			Units: []*plan.Unit{{Node: node, Kind: "k", Config: json.RawMessage(config)}}}
	}
	p := &plan.Plan{Version: plan.Version, Graph: "g", Store: plan.Store{Kind: "embedded"}, Groups: []*plan.Group{
		unit("api", `{"keys": "file:/etc/dynamo-secrets/keys", "tls": {"cert": "/etc/dynamo-secrets/tls.crt", "key": "env:API_KEY"}}`),
		unit("work", `{"token": "env:UP_TOKEN", "note": "set env:NOT this"}`),
	}}
	files, list := k8s.Target{}.Lower(t.Context(), p)
	if len(list) != 1 || list.Failed() || list[0].Code != "needs-secret" || !strings.Contains(list[0].Msg, "g-secrets with the keys API_KEY, UP_TOKEN, keys, tls.crt") {
		t.Fatal(list)
	}
	text := map[string]string{}
	for _, f := range files {
		text[f.Path] = string(f.Data)
	}
	for path, want := range map[string]map[string]bool{
		"30-api.yaml":  {"key: API_KEY": true, "key: keys": true, "path: tls.crt": true, "mountPath: /etc/dynamo-secrets": true, "UP_TOKEN": false},
		"30-work.yaml": {"key: UP_TOKEN": true, "API_KEY": false, "/etc/dynamo-secrets": false, "name: NOT": false},
	} {
		for s, there := range want {
			if strings.Contains(text[path], s) != there {
				t.Errorf("%s: %q is there: %v, want %v\n%s", path, s, !there, there, text[path])
			}
		}
	}
	p.Groups[0] = unit("api", `{"keys": "file:keys.txt"}`)
	if _, list := (k8s.Target{}).Lower(t.Context(), p); !list.Failed() || list[0].Code != "local-source" || !strings.Contains(list[0].Hint, "file:/etc/dynamo-secrets/keys.txt") {
		t.Errorf("a file of this machine: %v", list)
	}
}
