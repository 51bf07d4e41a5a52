package parse

import (
	"bufio"
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// elsewhere are the cases of groups B and C that are no matter of a parser alone: the folder whose tests name them.
var elsewhere = map[string]string{
	"B-011": "nodes/preprocess", // ids that the template of Mistral's models accepts
	"B-051": "tests/chat",       // that the parser is asked at all
	"B-057": "tests/chat",       // finish_reason by tool_choice
	"B-060": "tests/chat",       // one finish_reason a choice
	"B-061": "tests/chat",       // finish_reason of auto
	"B-062": "nodes/frontend",   // order of the last fragment and finish_reason
	"B-064": "tests/chat",       // form of the fragments on the wire
	"B-071": "tests/chat",       // tool_choice none
	"B-072": "nodes/frontend",   // requests that are refused
	"C-012": "nodes/frontend",   // stop strings come before the parser
	"C-021": "nodes/frontend",   // name of the field
	"C-022": "tests/chat",       // usage
}

// TestCases holds the recorded cases of tool calls and reasoning to their tests: each must be named by one.
func TestCases(t *testing.T) {
	dir := os.Getenv("DYNAMO_SHARED")
	if dir == "" {
		t.Skip("NOT RUN: set DYNAMO_SHARED to the folder with the recorded cases")
	}
	b, err := os.ReadFile(filepath.Join(dir, "cases", "open.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	here, n := tests(t, "."), 0
	sc := bufio.NewScanner(bytes.NewReader(b))
	sc.Buffer(nil, 4<<20)
	for sc.Scan() {
		var c struct{ ID, Group string }
		if err := json.Unmarshal(sc.Bytes(), &c); err != nil {
			t.Fatal(err)
		}
		if c.Group != "B" && c.Group != "C" {
			continue
		}
		n++
		where := here
		if folder, ok := elsewhere[c.ID]; ok {
			where = tests(t, "../../../"+folder)
		}
		if !strings.Contains(where, c.ID) {
			t.Errorf("%s: no test names it", c.ID)
		}
	}
	if n < 60 {
		t.Errorf("only %d cases", n)
	}
}

// tests are the sources of a folder's tests but this one.
func tests(t *testing.T, dir string) string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	for _, name := range names {
		if dir == "." && filepath.Base(name) == "cases_test.go" {
			continue
		}
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		all.Write(b)
	}
	return all.String()
}
