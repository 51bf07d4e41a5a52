package docs

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/dynamograph/dynamo/graph/diag"
)

var update = flag.Bool("update", false, "rewrite the list of findings in docs/errors.md")

// TestErrors: docs/errors.md has every code that a finding may carry, as `dynamo explain` tells it.
func TestErrors(t *testing.T) {
	const file, head = "../../docs/errors.md", "## Findings by code\n"
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	text := string(b)
	if i := strings.Index(text, head); i >= 0 {
		text = text[:i]
	}
	var list strings.Builder
	list.WriteString(head + "\nWhat stands in brackets behind a finding; `dynamo explain CODE` tells the same.\n\n| code | it means | do |\n|---|---|---|\n")
	escape := strings.NewReplacer("|", `\|`, "\n", " ")
	for _, code := range slices.Sorted(maps.Keys(diag.Codes)) {
		c := diag.Codes[code]
		fmt.Fprintf(&list, "| `%s` | %s | %s |\n", code, escape.Replace(c.Meaning), escape.Replace(c.Do))
	}
	want := strings.TrimRight(text, "\n") + "\n\n" + list.String()
	if want == string(b) {
		return
	}
	if !*update {
		t.Fatalf("%s does not have the codes of graph/diag as they are: go test ./tests/docs -run TestErrors -update", file)
	}
	if err := os.WriteFile(file, []byte(want), 0o644); err != nil {
		t.Fatal(err)
	}
}
