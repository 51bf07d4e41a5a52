package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/dynamograph/dynamo/cmd/dynamo/internal/cli"
	"github.com/dynamograph/dynamo/graph/diag"
)

// leaves lists the commands that do something, with the words that call them.
func leaves() map[string]*cli.Command {
	out := map[string]*cli.Command{}
	var walk func(prefix string, cs []*cli.Command)
	walk = func(prefix string, cs []*cli.Command) {
		for _, c := range cs {
			words := strings.TrimSpace(prefix + " " + c.Name)
			if len(c.Subcommands) == 0 && !c.Hidden {
				out[words] = c
			}
			walk(words, c.Subcommands)
		}
	}
	walk("", app(cli.Env{}).Commands)
	return out
}

func runArgs(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errb bytes.Buffer
	getenv := func(k string) string {
		if k == "DYNAMO_CACHE_DIR" {
			return filepath.Join(os.TempDir(), "nowhere")
		}
		return ""
	}
	e := cli.Env{Args: append([]string{"dynamo"}, args...), Stdin: strings.NewReader(""), Stdout: &out, Stderr: &errb, Getenv: getenv}
	code = cli.Run(context.Background(), app(e), e)
	return code, out.String(), errb.String()
}

// TestCommands walks every command: a flag that it does not have is status 2, a spec that cannot be read is 3, and each says what in one
// line. Each has a text, and a place in docs/cli.md or another page.
func TestCommands(t *testing.T) {
	docs := ""
	for _, page := range []string{"cli", "guide", "security", "kubernetes", "errors", "modules", "recipes", "observe"} {
		b, err := os.ReadFile(filepath.Join("../../docs", page+".md"))
		if err == nil {
			docs += string(b)
		}
	}
	all := leaves()
	if len(all) < 20 {
		t.Fatalf("%d commands", len(all))
	}
	for words, c := range all {
		args := strings.Fields(words)
		code, out, stderr := runArgs(t, append(args, "--no-such-flag")...)
		if code != cli.Usage || out != "" || !strings.HasPrefix(stderr, "error: ") || strings.Count(stderr, "\n") != 1 {
			t.Errorf("%s --no-such-flag: status %d, %q, %q", words, code, out, stderr)
		}
		if c.Usage == "" {
			t.Errorf("%s: no text", words)
		}
		if !strings.Contains(docs, words) {
			t.Errorf("%s: docs/cli.md does not name it", words)
		}
		want := strings.Fields(c.ArgsUsage)
		if len(want) > 0 && !strings.HasPrefix(want[0], "[") {
			if code, out, stderr := runArgs(t, args...); code != cli.Usage || out != "" || !strings.HasPrefix(stderr, "error: ") {
				t.Errorf("%s without %s: status %d, %q, %q", words, c.ArgsUsage, code, out, stderr)
			}
		}
		if len(want) > 0 && (want[0] == "SPEC" || want[0] == "SPEC…" || c.ArgsUsage == "A B") {
			spec := []string{"nowhere.cue"}
			if len(want) > 1 {
				spec = append(spec, "nowhere.cue")
			}
			if code, out, stderr := runArgs(t, append(args, spec...)...); code != cli.Unreachable || out != "" || !strings.HasPrefix(stderr, "error: ") {
				t.Errorf("%s nowhere.cue: status %d, %q, %q", words, code, out, stderr)
			}
		}
	}
}

// TestJSON: with --output json an error is one JSON object on standard error, and findings are one on standard output.
func TestJSON(t *testing.T) {
	wrong := filepath.Join(t.TempDir(), "wrong.cue")
	if err := os.WriteFile(wrong, []byte("name: \"w\"\nnodes: api: kind: \"front\"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	n := 0
	for words, c := range leaves() {
		has := false
		for _, f := range c.Flags {
			for _, name := range f.Names() {
				has = has || name == "output"
			}
		}
		want := strings.Fields(c.ArgsUsage)
		if !has || len(want) == 0 || want[0] != "SPEC" && want[0] != "SPEC…" && c.ArgsUsage != "A B" {
			continue
		}
		n++
		args := append(strings.Fields(words), "--output", "json")
		specs := func(file string) []string {
			if c.ArgsUsage == "A B" || c.ArgsUsage == "SPEC PATH" {
				return []string{file, file}
			}
			return []string{file}
		}
		code, out, stderr := runArgs(t, append(args, specs("nowhere.cue")...)...)
		var e cli.Report
		if err := json.Unmarshal([]byte(stderr), &e); err != nil || code != cli.Unreachable || e.Error.Status != code || e.Error.Message == "" || out != "" {
			t.Errorf("%s of a file that is not there: status %d, %q, %q", words, code, out, stderr)
		}
		switch words {
		case "graph export", "graph run", "graph fmt": // their output is a spec, events, files
			continue
		}
		code, out, stderr = runArgs(t, append(args, specs(wrong)...)...)
		var r diag.Report
		if err := json.Unmarshal([]byte(out), &r); err != nil || code != cli.Findings || r.Version != 1 || r.Errors == 0 || len(r.Diagnostics) == 0 || stderr != "" {
			t.Errorf("%s of a wrong spec: status %d, %q, %q", words, code, out, stderr)
		}
	}
	if n < 8 {
		t.Errorf("only %d commands", n)
	}
}

// TestExitStatuses holds the table of docs/cli.md to the constants.
func TestExitStatuses(t *testing.T) {
	b, err := os.ReadFile("../../docs/cli.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, ok := strings.Cut(string(b), "## Exit statuses")
	if !ok {
		t.Fatal("docs/cli.md has no table of exit statuses")
	}
	table, _, _ = strings.Cut(table, "\n## ")
	got := map[int]bool{}
	for _, m := range regexp.MustCompile(`(?m)^\| (\d+) \|`).FindAllStringSubmatch(table, -1) {
		n, err := strconv.Atoi(m[1])
		if err != nil {
			t.Fatal(err)
		}
		got[n] = true
	}
	for _, n := range []int{cli.OK, cli.Findings, cli.Usage, cli.Unreachable, cli.Changes, cli.Interrupted} {
		if !got[n] {
			t.Errorf("status %d is not in the table", n)
		}
		delete(got, n)
	}
	for n := range got {
		t.Errorf("status %d is in the table, and nothing ends with it", n)
	}
}
