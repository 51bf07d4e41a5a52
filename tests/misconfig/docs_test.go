package misconfig

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"
)

var update = flag.Bool("update", false, "rewrite the table in docs/misconfig.md")

// classes are the sorts of mistakes, by the code of the first finding that a graph wants.
var classes = []struct {
	name  string
	codes string
}{
	{"names, ports and edges; what nobody reaches or serves", "unknown-kind unknown-node unknown-port unknown-model port-mismatch ambiguous-port duplicate-edge bad-edge " +
		"missing-edge too-many-edges cycle unreachable no-entry missing-model unused-model several-models no-replicas mixed-roles two-homes missing-kv " +
		"lone-prefill lone-decode split-pair"},
	{"contracts: what both ends of an edge must agree on", "contract-mismatch model-mismatch bad-transport"},
	{"signals, thresholds, bounds and routes", "missing-signal dead-threshold crossed-thresholds two-writers shadowed-route duplicate-name"},
	{"engines: flags, parsers, features", "unknown-flag bad-flag unknown-parser parser-misfit unsupported-feature unchecked-version"},
	{"memory, devices, tiers", "memory-fit bad-parallelism device-count disk-fit tier-order kv-too-small context-too-long unknown-device facts-mismatch thread-fit"},
	{"limits and times as a chain", "limit-chain body-limit limit-below"},
	{"names and ports of clusters, open listeners, secrets, tenants", "bad-name long-name listen-conflict open-listener secret-in-spec plain-http shared-kv"},
	{"what has no effect", "no-effect"},
	{"values: of another type, beyond what a field takes, missing, twice", "bad-value bad-type bad-duration bad-size missing-field unknown-field conflict duplicate-field"},
	{"the language: files, packages, tags, overlays", "syntax no-graph incomplete self-reference unknown-definition unknown-reference unknown-import unused-import import-cycle " +
		"package-mismatch unknown-tag bad-tag bad-set newer-schema"},
}

// TestDocs: docs/misconfig.md counts what lies here.
func TestDocs(t *testing.T) {
	counts := make([]int, len(classes))
	threads := map[string]bool{}
	for _, path := range corpus(t, "wrong") {
		a := must(txtar.ParseFile(path))(t)
		code := wants(t, a)[0].code
		i := slices.IndexFunc(classes, func(c struct{ name, codes string }) bool { return slices.Contains(strings.Fields(c.codes), code) })
		if i < 0 {
			t.Errorf("%s: %q is in no class", filepath.Base(path), code)
			continue
		}
		counts[i]++
		threads[string(source.Find(a.Comment))] = true
	}
	var b strings.Builder
	total := 0
	b.WriteString("| what is wrong | graphs |\n|---|---|\n")
	for i, c := range classes {
		fmt.Fprintf(&b, "| %s | %d |\n", c.name, counts[i])
		if total += counts[i]; counts[i] == 0 {
			t.Errorf("%s: no graph", c.name)
		}
	}
	fmt.Fprintf(&b, "| **together**, of %d threads and cases | **%d** |\n| right graphs | **%d** |\n", len(threads), total, len(corpus(t, "right")))
	const file, from, to = "../../docs/misconfig.md", "<!-- counted -->\n", "<!-- end -->\n"
	text := string(must(os.ReadFile(file))(t))
	head, rest, ok := strings.Cut(text, from)
	_, tail, ok2 := strings.Cut(rest, to)
	if !ok || !ok2 {
		t.Fatalf("%s lacks %q or %q", file, from, to)
	}
	want := head + from + b.String() + to + tail
	if want == text {
		return
	}
	if !*update {
		t.Fatalf("%s counts other than what lies here: go test ./tests/misconfig -run TestDocs -update", file)
	}
	if err := os.WriteFile(file, []byte(want), 0o644); err != nil {
		t.Fatal(err)
	}
}
