package cue

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/dynamograph/dynamo/graph/diag"
	"github.com/dynamograph/dynamo/graph/kind"
	"github.com/dynamograph/dynamo/specs/load"
)

// TestProblemMatcher reads a finding as VS Code does by the task that a project has, and as docs/editor.md has it.
func TestProblemMatcher(t *testing.T) {
	dir := project(t, "")
	edit(t, filepath.Join(dir, "graph.cue"), "least-loaded", "least")
	_, list, err := load.File(context.Background(), "graph.cue", load.Options{Registry: kind.Default, Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := diag.Text(&out, list, os.ReadFile, false); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(filepath.Join(dir, ".vscode/tasks.json"))
	if err != nil {
		t.Fatal(err)
	}
	var tasks struct {
		Tasks []struct {
			ProblemMatcher json.RawMessage
		}
	}
	var matcher struct {
		Pattern struct {
			Regexp                                      string
			File, Line, Column, Severity, Message, Code int
		}
	}
	if err := json.Unmarshal(b, &tasks); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(tasks.Tasks[0].ProblemMatcher, &matcher); err != nil {
		t.Fatal(err)
	}
	p := matcher.Pattern
	line, _, _ := bytes.Cut(out.Bytes(), []byte("\n"))
	m := regexp.MustCompile(p.Regexp).FindStringSubmatch(string(line))
	if m == nil || m[p.File] != "graph.cue" || m[p.Line] != "16" || m[p.Column] != "34" || m[p.Severity] != "error" || m[p.Code] != "bad-value" || m[p.Message] == "" {
		t.Errorf("%s\nis read as %q", out.Bytes(), m)
	}
	page, err := os.ReadFile("../../docs/editor.md")
	if err != nil {
		t.Fatal(err)
	}
	inJSON, err := json.Marshal(p.Regexp)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Contains(page, inJSON) {
		t.Errorf("docs/editor.md has another pattern than %s", inJSON)
	}
}
