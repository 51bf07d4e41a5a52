package diag_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/dynamograph/dynamo/graph/diag"
)

func TestNoWriterShowsASecret(t *testing.T) {
	const secret = "hf_abcdefghijklmnop"
	read := reader(map[string]string{"g.cue": `source: "hf:a/b/c#token=` + secret + `", name: "X"` + "\n"})
	list := diag.List{
		{Code: "unreadable-model", Pos: diag.Pos{File: "g.cue", Line: 1, Col: 1}, Msg: "cannot fetch " + secret, Hint: secret,
			Notes: []string{secret}, Related: []diag.Related{{Pos: diag.Pos{File: "g.cue", Line: 1, Col: 1}, Msg: secret}}},
		{Code: "secret-in-spec", Pos: diag.Pos{File: "g.cue", Line: 1, Col: 1}, Secret: secret, Msg: "a secret"},
		{Code: "bad-name", Pos: diag.Pos{File: "g.cue", Line: 1, Col: 53}, Len: 3, Msg: "a name", Hint: `write "x"`},
	}
	for name, write := range map[string]func(*bytes.Buffer) error{
		"text":   func(b *bytes.Buffer) error { return diag.Text(b, list, read, false) },
		"json":   func(b *bytes.Buffer) error { return diag.JSON(b, list) },
		"github": func(b *bytes.Buffer) error { return diag.GitHub(b, list) },
		"sarif":  func(b *bytes.Buffer) error { return diag.SARIF(b, list, "", read) },
	} {
		var b bytes.Buffer
		if err := write(&b); err != nil {
			t.Fatal(err)
		}
		if strings.Contains(b.String(), "abcdef") {
			t.Errorf("%s shows the secret:\n%s", name, b.String())
		}
		if !strings.Contains(b.String(), "hf_****************") {
			t.Errorf("%s: want the start and the length to stay:\n%s", name, b.String())
		}
		// The caret of a place behind the secret is where it was.
		if name == "text" && !strings.Contains(b.String(), `"hf:a/b/c#token=hf_****************", name: "X"`+"\n    | "+strings.Repeat(" ", 52)+"^^^ ") {
			t.Errorf("text: the caret moved:\n%s", b.String())
		}
	}
	if list[0].Msg != "cannot fetch "+secret {
		t.Error("writing changed the list")
	}
}
