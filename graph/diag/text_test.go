package diag_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/dynamograph/dynamo/graph/diag"
)

func reader(files map[string]string) diag.ReadFunc {
	return func(name string) ([]byte, error) {
		if s, ok := files[name]; ok {
			return []byte(s), nil
		}
		return nil, os.ErrNotExist
	}
}

func ExampleText() {
	src := "nodes: {\n\troute: spec.#Router & {policy: \"kvaware\"}\n}\n"
	_ = diag.Text(os.Stdout, diag.List{{
		Code: "bad-value", Pos: diag.Pos{File: "g.cue", Line: 2, Col: 33}, Len: 9,
		Msg:  `nodes.route.policy: "kvaware" is not one of kv-aware, random`,
		Hint: diag.Suggest("kvaware", []string{"kv-aware", "random"}),
	}}, func(string) ([]byte, error) { return []byte(src), nil }, false)
	// Output:
	// g.cue:2:33: error: nodes.route.policy: "kvaware" is not one of kv-aware, random [bad-value]
	//   2 |     route: spec.#Router & {policy: "kvaware"}
	//     |                                    ^^^^^^^^^ did you mean "kv-aware"?
}

func TestTextCaret(t *testing.T) {
	for _, c := range []struct {
		name, line string
		col, n     int
		want       string // the two lines of source
	}{
		{"tab", "\tx: 1", 2, 1, "  1 |     x: 1\n    |     ^\n"},
		{"tab inside", "a\tb", 3, 1, "  1 | a   b\n    |     ^\n"},
		{"multi-byte before", `"größe": 1`, 12, 1, "  1 | \"größe\": 1\n    |          ^\n"},
		{"multi-byte under", `"größe": 1`, 1, 9, "  1 | \"größe\": 1\n    | ^^^^^^^\n"},
		{"wide", "日本: 1", 1, 6, "  1 | 日本: 1\n    | ^^^^\n"},
		{"combining", "e\u0301: x", 6, 1, "  1 | e\u0301: x\n    |    ^\n"},
		{"within a letter", "aö: x", 3, 1, "  1 | aö: x\n    |  ^\n"},
		{"whole word", "policy: kvaware", 9, 0, "  1 | policy: kvaware\n    |         ^^^^^^^\n"},
		{"whole text", `p: "a b", q`, 4, 0, "  1 | p: \"a b\", q\n    |    ^^^^^\n"},
		{"past the end", "abc", 9, 5, "  1 | abc\n    |    ^\n"},
		{"carriage return", "abc\r", 1, 3, "  1 | abc\n    | ^^^\n"},
		{"escape", "a\x1b[31mb", 1, 1, "  1 | a�[31mb\n    | ^\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var b bytes.Buffer
			d := diag.Diagnostic{Code: "x", Msg: "m", Pos: diag.Pos{File: "f", Line: 1, Col: c.col}, Len: c.n}
			if err := diag.Text(&b, diag.List{d}, reader(map[string]string{"f": c.line + "\nnext"}), false); err != nil {
				t.Fatal(err)
			}
			if _, got, _ := strings.Cut(b.String(), "[x]\n"); got != c.want {
				t.Errorf("got\n%swant\n%s", got, c.want)
			}
		})
	}
}

func TestTextLongLine(t *testing.T) {
	line := strings.Repeat("ä", 1000) + "HERE" + strings.Repeat("z", 1000)
	var b bytes.Buffer
	d := diag.Diagnostic{Msg: "m", Pos: diag.Pos{File: "f", Line: 1, Col: 2001}, Len: 4}
	if err := diag.Text(&b, diag.List{d}, reader(map[string]string{"f": line}), false); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(b.String(), "\n")
	src, caret := []rune(lines[1]), []rune(lines[2])
	at := strings.IndexRune(string(caret), '^')
	if len(src) > 200 || string(src[at:at+4]) != "HERE" || string(caret[at:]) != "^^^^" {
		t.Errorf("got\n%s", &b)
	}
}

func TestTextParts(t *testing.T) {
	files := reader(map[string]string{"a": "x: 1\ny: 2\n"})
	list := diag.List{
		{Code: "conflict", Msg: "1 conflicts\nwith 2", Pos: diag.Pos{File: "a", Line: 2, Col: 4}, Hint: "keep one", Notes: []string{"why"},
			Related: []diag.Related{{Pos: diag.Pos{File: "a", Line: 1, Col: 4}, Msg: "first"}}},
		{Code: "gone", Severity: diag.Warning, Msg: "m", Pos: diag.Pos{File: "b", Line: 2, Col: 4}, Hint: "look"},
		{Code: "nowhere", Severity: diag.Note, Msg: "m"},
	}
	want := `a:2:4: error: 1 conflicts with 2 [conflict]
  2 | y: 2
    |    ^ keep one
a:1:4: note: first
  1 | x: 1
    |    ^
  = why
b:2:4: warning: m [gone]
  = look
note: m [nowhere]
`
	var b bytes.Buffer
	if err := diag.Text(&b, list, files, false); err != nil {
		t.Fatal(err)
	}
	if b.String() != want {
		t.Errorf("got\n%swant\n%s", &b, want)
	}
	b.Reset()
	if err := diag.Text(&b, list[:1], files, true); err != nil || !strings.Contains(b.String(), "\x1b[1;31merror:\x1b[0m") {
		t.Errorf("colour: %v %q", err, &b)
	}
}

func TestTextLimit(t *testing.T) {
	var list diag.List
	for i := range 23 {
		list.Add(diag.Diagnostic{Code: "x", Msg: fmt.Sprint("m", i)})
	}
	var b bytes.Buffer
	if err := diag.Text(&b, list, nil, false); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(b.String(), "error:"); n != diag.Limit || !strings.HasSuffix(b.String(), "… and 3 more findings\n") {
		t.Errorf("%d findings, end %q", n, b.String()[b.Len()-40:])
	}
	b.Reset()
	_ = diag.Text(&b, list[:21], nil, false)
	if !strings.HasSuffix(b.String(), "… and 1 more finding\n") {
		t.Errorf("end %q", b.String()[b.Len()-40:])
	}
}

// TestLimits holds which formats carry all findings: those for programs do.
func TestLimits(t *testing.T) {
	var list diag.List
	for i := range 57 {
		list.Add(diag.Diagnostic{Code: "x", Msg: fmt.Sprint("m", i)})
	}
	for _, c := range []struct {
		name, one, end string
		n              int
		write          func(*bytes.Buffer) error
	}{
		{"text", "error: m", "… and 37 more findings\n", 20, func(b *bytes.Buffer) error { return diag.Text(b, list, nil, false) }},
		{"github", "::error", "::notice title=more::… and 37 more findings\n", 20, func(b *bytes.Buffer) error { return diag.GitHub(b, list) }},
		{"json", `"severity": "error"`, "}\n", 57, func(b *bytes.Buffer) error { return diag.JSON(b, list) }},
		{"sarif", `"level": "error"`, "}\n", 57, func(b *bytes.Buffer) error { return diag.SARIF(b, list, "", nil) }},
	} {
		var b bytes.Buffer
		if err := c.write(&b); err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(b.String(), c.one); n != c.n || !strings.HasSuffix(b.String(), c.end) {
			t.Errorf("%s: %d findings, want %d; end %q", c.name, n, c.n, b.String()[max(0, b.Len()-60):])
		}
	}
}

type brokenWriter struct{}

func (brokenWriter) Write([]byte) (int, error) { return 0, errors.New("full") }

func TestWriteErrors(t *testing.T) {
	list := diag.List{{Code: "x", Msg: "m"}}
	for name, err := range map[string]error{
		"text": diag.Text(brokenWriter{}, list, nil, false), "json": diag.JSON(brokenWriter{}, list),
		"sarif": diag.SARIF(brokenWriter{}, list, "", nil), "github": diag.GitHub(brokenWriter{}, list),
	} {
		if err == nil {
			t.Errorf("%s: a failed write is no error", name)
		}
	}
}

func TestJSON(t *testing.T) {
	var b bytes.Buffer
	list := diag.List{{Code: "a", Msg: "<m>", Pos: diag.Pos{File: "f", Line: 1, Col: 2}}, {Code: "b", Severity: diag.Warning, Msg: "n"}}
	if err := diag.JSON(&b, list); err != nil {
		t.Fatal(err)
	}
	var r diag.Report
	if err := json.Unmarshal(b.Bytes(), &r); err != nil {
		t.Fatal(err)
	}
	if r.Version != 1 || r.Errors != 1 || r.Warnings != 1 || len(r.Diagnostics) != 2 || r.Diagnostics[0].Severity != "error" ||
		r.Diagnostics[0].Pos != list[0].Pos || r.Diagnostics[1].Severity != "warning" || !strings.Contains(b.String(), "<m>") {
		t.Errorf("got %s", &b)
	}
	b.Reset()
	if err := diag.JSON(&b, nil); err != nil || !strings.Contains(b.String(), `"diagnostics": []`) {
		t.Errorf("empty list: %v %s", err, &b)
	}
}

func TestGitHub(t *testing.T) {
	var b bytes.Buffer
	err := diag.GitHub(&b, diag.List{{Code: "a", Msg: "100% of a: b, c", Hint: "try", Pos: diag.Pos{File: "d,e:f.cue", Line: 3, Col: 2}, Len: 4},
		{Code: "b", Severity: diag.Note, Msg: "n"}})
	want := "::error file=d%2Ce%3Af.cue,line=3,col=2,endColumn=6,title=a::100%25 of a: b, c%0Atry\n::notice title=b::n\n"
	if err != nil || b.String() != want {
		t.Errorf("%v, got %s, want %s", err, &b, want)
	}
}

func TestSARIF(t *testing.T) {
	var b bytes.Buffer
	list := diag.List{{Code: "bad-value", Msg: "m", Pos: diag.Pos{File: "./a b.cue", Line: 1, Col: 5}, Len: 2,
		Related: []diag.Related{{Pos: diag.Pos{File: "/x.cue", Line: 2, Col: 1}, Msg: "there"}}}, {Code: "no-graph", Msg: "n"}}
	if err := diag.SARIF(&b, list, "1.0", reader(map[string]string{"./a b.cue": "ä: ö1"})); err != nil {
		t.Fatal(err)
	}
	var got struct {
		Version string
		Runs    []struct {
			Tool struct {
				Driver struct{ Rules []struct{ ID string } }
			}
			Results []struct {
				RuleID, Level string
				Locations     []struct {
					PhysicalLocation struct {
						ArtifactLocation struct{ URI string }
						Region           struct{ StartLine, StartColumn, EndColumn int }
					}
				}
				RelatedLocations []struct {
					ID               int
					PhysicalLocation struct{ ArtifactLocation struct{ URI string } }
				}
			}
		}
	}
	if err := json.Unmarshal(b.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	run := got.Runs[0]
	loc := run.Results[0].Locations[0].PhysicalLocation
	if got.Version != "2.1.0" || len(run.Results) != 2 || len(run.Tool.Driver.Rules) != 2 || loc.ArtifactLocation.URI != "a%20b.cue" ||
		loc.Region.StartColumn != 4 || loc.Region.EndColumn != 5 || run.Results[0].RelatedLocations[0].PhysicalLocation.ArtifactLocation.URI != "file:///x.cue" {
		t.Errorf("got %s", &b)
	}
	if len(run.Results[1].Locations) != 0 {
		t.Errorf("a finding without a place has one: %s", &b)
	}
}

func TestPosString(t *testing.T) {
	for want, p := range map[string]diag.Pos{"f:1:2": {File: "f", Line: 1, Col: 2}, "f:1": {File: "f", Line: 1}, "f": {File: "f"}, "": {}} {
		if p.String() != want {
			t.Errorf("%+v prints %q, want %q", p, p, want)
		}
	}
}
