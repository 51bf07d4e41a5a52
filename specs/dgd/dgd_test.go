package dgd

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dynamograph/dynamo/graph/diag"
	"github.com/dynamograph/dynamo/graph/kind"
)

func TestLabel(t *testing.T) {
	for in, want := range map[string]string{
		"Frontend": "frontend", "VllmDecodeWorker": "vllm-decode-worker", "TRTLLMWorker": "trtllm-worker", "prefill": "prefill", "a_b.c": "a-b-c",
		"9lives": "lives", "--": "", "GPU2Worker": "gpu2-worker", "Ünder": "nder", strings.Repeat("x", 80): strings.Repeat("x", 40),
	} {
		if got := label(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

func TestSplit(t *testing.T) {
	for in, want := range map[string]string{
		"a b\tc":                        "a|b|c",
		"exec x \\\n  --a 'b c' \\\n d": "exec|x|--a|b c|d",
		`--j '{"a":"b"}' "q\"r" x\ y`:   `--j|{"a":"b"}|q"r|x y`,
		"a # no\nb":                     "a|;|b",
		"a && b;c|d & e":                "a|&&|b|;|c|||d|&|e",
		"\n\na\n\n":                     "a|;",
		"'open":                         "open",
		"":                              "",
	} {
		var got []string
		for _, w := range split(word{text: in}) {
			got = append(got, w.text)
		}
		if s := strings.Join(got, "|"); s != want {
			t.Errorf("%q: %q, want %q", in, s, want)
		}
	}
}

func TestTyped(t *testing.T) {
	for _, s := range []string{"1", "-0.5", "1e3", "true", "False", "1x", "", "0x10", "01", "1 2", "-", "abc"} {
		got := typed(s)
		if want := map[string]string{"1": "number", "-0.5": "number", "1e3": "number", "true": "bool", "False": "bool"}[s]; kindOf(got) != want {
			t.Errorf("%q: %v (%T)", s, got, got)
		}
	}
}

func kindOf(v any) string {
	switch v.(type) {
	case bool:
		return "bool"
	case string:
		return ""
	}
	return "number"
}

func TestRefused(t *testing.T) {
	for in, want := range map[string]string{
		"":          "wrong-kind x.yaml:1:1",
		"a: [":      "syntax x.yaml:",
		"kind: Pod": "wrong-kind x.yaml:1:7",
		"apiVersion: nvidia.com/v2\nkind: DynamoGraphDeployment":                                                                        "wrong-kind x.yaml:1:13",
		"apiVersion: nvidia.com/v1beta1\nkind: DynamoGraphDeployment":                                                                   "missing-field x.yaml:2:7",
		"apiVersion: nvidia.com/v1beta1\nkind: DynamoGraphDeployment\nspec: {components: []}":                                           "missing-field x.yaml:3:7",
		"apiVersion: nvidia.com/v1beta1\nkind: DynamoGraphDeployment\nspec: {components: [{type: worker}]}":                             "missing-field x.yaml:3:21",
		"apiVersion: nvidia.com/v1beta1\nkind: DynamoGraphDeployment\nspec: {components: [{name: a, replicas: x}]}":                     "bad-type x.yaml:3:41",
		"apiVersion: nvidia.com/v1beta1\nkind: DynamoGraphDeployment\n---\napiVersion: nvidia.com/v1beta1\nkind: DynamoGraphDeployment": "wrong-kind x.yaml:5:7",
		strings.Repeat("#", maxBytes+1): "too-large x.yaml",
	} {
		g, list := Import("x.yaml", []byte(in), Options{Registry: &kind.Registry{}})
		if g != nil || len(list) != 1 || !strings.HasPrefix(list[0].Code+" "+list[0].Pos.String(), want) {
			t.Errorf("%.200q: %v, %v, want %s", in, g, list, want)
		}
	}
}

// A build without a kind says so.
func TestNoKind(t *testing.T) {
	g, list := Import("x.yaml", []byte("apiVersion: nvidia.com/v1beta1\nkind: DynamoGraphDeployment\nmetadata: {name: n}\nspec: {components: [{name: F, type: frontend}]}"),
		Options{Registry: &kind.Registry{}})
	if g == nil || len(g.Nodes) != 0 || len(list) != 1 || list[0].Code != "not-mapped" || list[0].Severity != diag.Warning || !strings.Contains(list[0].Msg, `no kind "frontend"`) {
		t.Errorf("%v %v", g, list)
	}
}

// Two models have a router each.
func TestTwoModels(t *testing.T) {
	r := &kind.Registry{}
	for _, k := range []string{"frontend", "router", "worker"} {
		kind.Add(r, kind.Kind[map[string]any]{Name: k, Schema: "#" + k + ": _", Default: func() map[string]any { return map[string]any{} }, Ports: func(map[string]any) []kind.Port { return nil }})
	}
	g, list := Import("x.yaml", []byte(`apiVersion: nvidia.com/v1alpha1
kind: DynamoGraphDeployment
spec:
  services:
    F: {componentType: frontend}
    A: {componentType: worker, extraPodSpec: {mainContainer: {args: [-m, dynamo.vllm, --model, o/a]}}}
    B: {componentType: worker, extraPodSpec: {mainContainer: {args: [-m, dynamo.vllm, --model, o/b]}}}
`), Options{Registry: r})
	if g == nil {
		t.Fatal(list)
	}
	var edges []string
	for _, e := range g.Edges {
		edges = append(edges, e.String())
	}
	want := []string{"f -> route-a", "route-a.worker -> a", "f -> route-b", "route-b.worker -> b"}
	if d := cmp.Diff(want, edges); d != "" || g.Name != "x" || g.Nodes["a"].Model != "a" || g.Nodes["b"].Model != "b" {
		t.Errorf("%s\n%+v", d, g)
	}
}

// FuzzImport: whatever the file holds, there is a graph or a finding, and no panic.
func FuzzImport(f *testing.F) {
	f.Add("apiVersion: nvidia.com/v1beta1\nkind: DynamoGraphDeployment\nspec:\n  components:\n  - &a {name: F, type: frontend, <<: *a}\n")
	f.Add("apiVersion: nvidia.com/v1alpha1\nkind: DynamoGraphDeployment\nspec:\n  services:\n    W:\n      componentType: worker\n      extraPodSpec: {mainContainer: {command: [sh, -c], args: [\"python -m dynamo.trtllm --extra-engine-args a.yaml \\\"\"]}}\n---\nkind: ConfigMap\ndata: {a.yaml: \"a: {b: [1]}\"}\n")
	r := &kind.Registry{}
	for _, k := range []string{"frontend", "router", "worker", "prefill", "decode", "encode", "planner"} {
		kind.Add(r, kind.Kind[map[string]any]{Name: k, Schema: "#" + k + ": _", Default: func() map[string]any { return map[string]any{} }, Ports: func(map[string]any) []kind.Port { return nil }})
	}
	f.Fuzz(func(t *testing.T, s string) {
		g, list := Import("x.yaml", []byte(s), Options{Registry: r})
		if g == nil && !list.Failed() || g != nil && list.Failed() {
			t.Errorf("%v, %v", g, list)
		}
		for _, d := range list {
			if d.Msg == "" || d.Pos.File != "x.yaml" || diag.Codes[d.Code].Meaning == "" {
				t.Errorf("%+v", d)
			}
		}
	})
}
