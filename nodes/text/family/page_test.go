package family

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write what is published")

// Unthought are published templates of models that think, which leave the thoughts of a turn with calls out of the history.
var Unthought = []string{
	"MiMo-VL", "Mistral-Small-3.2-24B-Instruct-2506", "Qwen-QwQ-32B", "deepseek-ai-DeepSeek-V3.1", "llm-jp-llm-jp-4.1-8b-thinking",
	"mistralai-Ministral-3-14B-Reasoning-2512", "mistralai-Mistral-Nemo-Instruct-2407", "unsloth-mistral-Devstral-Small-2507",
}

const path = "../../../docs/families.md"

// TestPage: docs/families.md is what the cards say. `make generate` writes it.
func TestPage(t *testing.T) {
	want := page()
	got, err := os.ReadFile(path)
	if err == nil && bytes.Equal(got, want) {
		return
	}
	if !*update {
		t.Fatalf("%s is not what the cards say: run make generate (%v)", path, err)
	}
	if err := os.WriteFile(path, want, 0o644); err != nil {
		t.Fatal(err)
	}
}

func page() []byte {
	var b bytes.Buffer
	b.WriteString(`# Families of models

<!-- Made from nodes/text/family/cards.go: run make generate. -->

A card says what the models of a family were trained to write and which switch of their template turns thinking on and off. A graph needs none
of it: the name of a model, or ` + "`models.*.family`" + `, finds the card, and ` + "`models.*.tools` and `models.*.reasoning`" + ` overrule it.

*Tool calls* and *reasoning* name the format first that the models were trained to write, then others whose parsers read the same
([parsers.md](parsers.md)); "none" is a family that writes none, "?" one of which it is not known. *Thinking* is the template's variable with
its values for on and off, the default in bold. *Tools shown*: the template puts the request's tools into the prompt.

*Checked* says how far a card is more than its authors' word:
- **real**: a history with reasoning and calls, rendered by the published template, was read back by the family's parsers with the same
  reasoning and calls (the templates are named below; the test is nodes/text/family/roundtrip_test.go). A template marked with * leaves
  reasoning out of such a history: there, calls and content were read back, and reasoning is by kind;
- **by kind**: the parsers were tested with outputs of the format, and that the models write it is what their authors and the documentation of
  engines say.

| family | tool calls | reasoning | thinking | tools shown | ids of calls | checked |
|---|---|---|---|---|---|---|
`)
	for _, c := range All() {
		checked := "by kind"
		if len(c.Real) > 0 {
			checked = "real"
		}
		ids := map[CallIDs]string{NineID: "nine of A–Z, a–z, 0–9", NumberID: "functions.NAME:N"}[c.CallIDs]
		shown := ""
		if c.ShowsTools {
			shown = "yes"
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s | %s | %s |\n", c.Name, formats(c.Tools), formats(c.Reasoning), thinking(c), shown, ids, checked)
	}
	b.WriteString("\n## Published templates that were read back\n\n| family | templates |\n|---|---|\n")
	for _, c := range All() {
		if len(c.Real) > 0 {
			list := strings.Join(c.Real, ", ")
			for _, name := range Unthought {
				list = strings.Replace(list, name, name+"*", 1)
			}
			fmt.Fprintf(&b, "| %s | %s |\n", c.Name, list)
		}
	}
	return b.Bytes()
}

func formats(names []string) string {
	switch {
	case names == nil:
		return "?"
	case len(names) == 0:
		return "none"
	}
	return strings.Join(names, ", ")
}

func thinking(c Card) string {
	s := c.Thinking
	out := ""
	switch {
	case s.Arg != "" && s.Default:
		out = fmt.Sprintf("`%s`: **%s**, %s", s.Arg, s.On, s.Off)
	case s.Arg != "":
		out = fmt.Sprintf("`%s`: %s, **%s**", s.Arg, s.On, s.Off)
	case s.Default:
		out = "always"
	}
	if s.Effort {
		out += ", `reasoning_effort`"
	}
	return strings.TrimPrefix(out, ", ")
}
