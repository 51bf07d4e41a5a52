package load

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/dynamograph/dynamo/graph/diag"
)

// cueSays are words of CUE's own that no finding may hold, unless the author wrote them.
var cueSays = []string{
	"conflicting values", "field not allowed", "incomplete value", "_|_", "empty disjunction", "non-concrete", "structural cycle", "cycle error", "#Kinds",
	"cannot find package", "out of bound", "does not satisfy", "mismatched types", "explicit error", "invalid operands", "undefined field", "reference \"",
	"closed struct", "conjunct", "unresolved", "BottomKind", "%!", "disjunct", "unsupported", "requires concrete", "preference mark", "dynamo.graph/spec/",
	"invalid interpolation", "errors in", "cannot convert", "and not used: \"dynamo", "alias", "dynamo.graph/spec/real", "adt.", "ast.", "cue:",
}

func noRawCUE(t *testing.T, text string, list diag.List) {
	t.Helper()
	for _, d := range list {
		all := d.Msg + "\n" + d.Hint + "\n" + strings.Join(d.Notes, "\n")
		for _, r := range d.Related {
			all += "\n" + r.Msg
		}
		for _, raw := range cueSays {
			if strings.Contains(all, raw) && !strings.Contains(text, raw) {
				t.Errorf("[%s] %q is CUE's own text: %q\nof %.1500s", d.Code, raw, all, text)
			}
		}
		if d.Code == "internal" {
			t.Errorf("%s %v\nof %s", d.Msg, d.Notes, text)
		}
		if d.Pos.File == "" || !d.Pos.IsValid() && d.Code != "too-slow" {
			t.Errorf("[%s] %q has no place\nof %s", d.Code, d.Msg, text)
		}
		if _, ok := diag.Codes[d.Code]; !ok {
			t.Errorf("code %q is not in diag.Codes", d.Code)
		}
	}
}

// mistakes is one spec for each thing that CUE complains of. A line that begins with "!" is one that stands outside of the graph.
var mistakes = []struct{ name, node, code, says string }{
	{"cycle", "replicas: _n.a\n!_n: {a: _n.b, b: _n.a}", "incomplete", ""},
	{"cycle sum", "replicas: _n.a\n!_n: {a: _n.b+1, b: _n.a+1}", "", ""},
	{"structural cycle", "kv: _n\n!#n: {tokens: 1, x: #n}\n!_n: #n", "self-reference", "refers to itself"},
	{"interpolation of a map", `engine: "\(_n)"` + "\n!_n: {a: 1}", "", ""},
	{"interpolation open", `engine: "\(_n)"` + "\n!_n: string", "", ""},
	{"regexp in a constraint", `engine: =~"[" & "mock"`, "bad-expression", "regular expression"},
	{"regexp in a pattern", `engine: "mock", kv: {[=~"("]: 1}`, "", ""},
	{"division", "replicas: 1/0", "bad-expression", "division by zero"},
	{"integer division", "replicas: div(1, 0)", "bad-expression", ""},
	{"modulo", "replicas: mod(1, 0)", "bad-expression", ""},
	{"list index", "replicas: _n[3]\n!_n: [1, 2]", "bad-expression", "no such item"},
	{"negative index", "replicas: _n[-1]\n!_n: [1, 2]", "bad-expression", "no such item"},
	{"index of a map", `replicas: _n["x"]` + "\n!_n: {a: 1}", "", ""},
	{"index by text", `replicas: _n["x"]` + "\n!_n: [1]", "", ""},
	{"slice", "mock: script: _n[1:9]\n!_n: [\"a\"]", "", ""},
	{"comprehension over a number", "mock: script: [for x in 3 {x}]", "", ""},
	{"comprehension over nothing", "mock: script: [for x in _n {x}]\n!_n: _", "incomplete", ""},
	{"condition that is no bool", "if 3 {replicas: 1}", "", ""},
	{"condition open", "if _n {replicas: 1}\n!_n: bool", "incomplete", ""},
	{"let unused", "let x = 3\nreplicas: 1", "unused-name", "x"},
	{"let cycle", "let x = y\nlet y = x\nreplicas: x", "", ""},
	{"closed by a definition", "#w & {threads: 1}\n!#w: {kind: \"worker\", replicas: 1}", "unknown-field", "does not allow"},
	{"closed by embedding", "#w & {threads: 1}\n!#w: {kind: \"worker\", close({replicas: 1})}", "unknown-field", ""},
	{"close", "kv: close({tokens: 1}) & {block: 3}", "unknown-field", "does not allow"},
	{"bounds", "replicas: >5 & <3", "conflict", ""},
	{"text bounds", "engine: >\"b\" & <\"a\"", "", ""},
	{"bound", "replicas: >5 & 3", "conflict", ">5"},
	{"two types", "replicas: 3 & \"x\"", "conflict", ""},
	{"choice", "replicas: (1 | 2) & 3", "conflict", ""},
	{"choice of maps", "kv: ({tokens: 1} | {tokens: 2}) & {tokens: 3}", "conflict", ""},
	{"choice of three", "engine: (\"a\" | \"b\" | *\"c\") & \"d\"", "conflict", "\"d\""},
	{"bottom", "replicas: _|_", "bad-expression", "error"},
	{"error", `replicas: error("mind the gap")`, "bad-expression", "mind the gap"},
	{"required", "#w\n!#w: {replicas!: int, threads: replicas, ...}", "incomplete", "replicas"},
	{"validator", "replicas: _n\n!_n: 3 & list.MaxItems(2)", "", ""},
	{"validator of a list", "mock: script: list.MaxItems(1) & [\"a\", \"b\"]", "", ""},
	{"unique items", "mock: script: list.UniqueItems & [\"a\", \"a\"]", "", ""},
	{"validator of text", "engine: strings.MinRunes(9) & \"mock\"", "conflict", ""},
	{"call of no function", "replicas: _n(3)\n!_n: 4", "", ""},
	{"arguments too few", "replicas: len()", "", ""},
	{"arguments too many", "replicas: len([], [])", "", ""},
	{"argument type", "replicas: len(3)", "", ""},
	{"call fails", "replicas: strconv.Atoi(\"x\")", "bad-expression", "strconv.Atoi"},
	{"or of nothing", "engine: or([])", "", ""},
	{"no function", "replicas: strings.Nope(\"x\")", "bad-expression", "strings.Nope"},
	{"sum of text and number", "replicas: \"a\" + 1", "bad-expression", ""},
	{"sum of lists", "mock: script: [\"a\"] + [\"b\"]", "bad-expression", "functions"},
	{"product of lists", "mock: script: 2 * [\"a\"]", "bad-expression", "functions"},
	{"negative text", "engine: -\"a\"", "", ""},
	{"not a number", "replicas: !3", "", ""},
	{"comparison", "if \"a\" < 1 {replicas: 1}", "", ""},
	{"list lengths", "mock: script: [\"a\"] & [\"a\", \"b\"]", "conflict", ""},
	{"list and map", "kv: [] & {a: 1}", "conflict", ""},
	{"default mark alone", "replicas: *1", "", ""},
	{"null", "replicas: null", "bad-type", "null"},
	{"bytes", "engine: 'mock'", "bad-type", "bytes"},
	{"huge number", "replicas: 1e400", "", ""},
	{"huge integer", "mock: seed: 123456789012345678901234567890", "", "out of range"},
	{"fraction", "replicas: 1.5", "bad-type", ""},
	{"undefined field", "replicas: _n.b\n!_n: {a: 1}", "unknown-reference", "\"b\""},
	{"undefined in a definition", "replicas: #n.b\n!#n: {a: 1}", "unknown-reference", "\"b\""},
	{"field of a number", "replicas: _n.b\n!_n: 1", "", ""},
	{"reference", "replicas: nope", "unknown-reference", "nope"},
	{"field alias unused", "X=replicas: 1", "", ""},
	{"value alias unused", "replicas: X={a: 1}", "", ""},
	{"dynamic label", "(_n): 1\n!_n: 3", "", ""},
	{"dynamic label open", "(_n): 1\n!_n: string", "", ""},
	{"label of no text", `"\(1/0)": 1`, "", ""},
	{"definition twice", "#w\n!#w: {kind: \"worker\", replicas: 1}\n!#w: replicas: 2", "conflict", ""},
	{"ambiguous default", "replicas: (*1 | int) & (*2 | int)", "incomplete", ""},
	{"ambiguous in a sum", "replicas: _n + 1\n!_n: (*1 | int) & (*2 | int)", "", ""},
	{"open type", "replicas: int", "incomplete", ""},
	{"open sum", "replicas: _n + 1\n!_n: int", "incomplete", ""},
	{"tag malformed", "replicas: int @tag(", "syntax", ""},
	{"tag of no name", "replicas: int @tag()", "bad-tag", "name"},
	{"tag of no type", "replicas: int @tag(n,type=loud)", "bad-tag", "type=loud"},
	{"tag of a var", "replicas: int @tag(n,var=now)", "bad-tag", ""},
	{"attribute", "replicas: 1 @foo(a,b", "syntax", ""},
	{"if attribute", "replicas: 1 @if(x)", "unsupported-cue", ""},
	{"condition on itself", "if replicas == _|_ {replicas: 1}", "", ""},
	{"negative repeat", "engine: strings.Repeat(\"a\", -1)", "", ""},
	{"field not in pattern", "kv: _n\n!_n: {[=~\"^a\"]: int, a: \"x\"}", "", ""},
	{"number not in pattern", "kv: _n\n!_n: {[string]: <3} & {tokens: 5}", "conflict", ""},
	{"ellipsis typed", "kv: {tokens: 1, ...string}", "", ""},
	{"ellipsis in the middle", "mock: script: [..., \"a\"]", "", ""},
	{"duplicate let", "let x = 1\nlet x = 2\nreplicas: x", "", ""},
	{"old list", "mock: script: 3*[string]", "", ""},
	{"and of conflict", "replicas: and([1, 2])", "", ""},
	{"matchN", "replicas: matchN(1, [>5, >3]) & 9", "", ""},
	{"matchIf", "replicas: matchIf(>5, <3, >9) & 7", "", ""},
	{"time", "mock: ttft: time.Duration & \"x\"", "", ""},
	{"json", "replicas: json.Unmarshal(\"{\")", "", ""},
	{"struct min", "kv: struct.MinFields(3) & {tokens: 1}", "", ""},
}

func mistake(node string) string {
	var out, in strings.Builder
	for line := range strings.Lines(node + "\n") {
		if l, ok := strings.CutPrefix(line, "!"); ok {
			out.WriteString(l)
		} else {
			in.WriteString("\t\t\t" + line)
		}
	}
	text := "package p\n\nimport (\n\t\"dynamo.graph/spec\"\n"
	for _, std := range []string{"list", "strings", "strconv", "time", "struct", "encoding/json"} {
		if name := filepath.Base(std); strings.Contains(node, name+".") {
			text += fmt.Sprintf("\t%q\n", std)
		}
	}
	return text + ")\n\n" + out.String() + "\nspec.#Graph & {\n\tname: \"p\"\n\tnodes: {\n\t\tw: spec.#Worker & {\n" + in.String() + "\t\t}\n\t}\n}\n"
}

// TestMistakes wants each of CUE's complaints in the author's words, at a place of the author's file.
func TestMistakes(t *testing.T) {
	for _, c := range mistakes {
		t.Run(c.name, func(t *testing.T) {
			text := mistake(c.node)
			list := loadText(t, "a.cue", text)
			if !list.Failed() {
				t.Fatal("it was loaded")
			}
			noRawCUE(t, text, list)
			if !slices.ContainsFunc(list, func(d diag.Diagnostic) bool {
				return (c.code == "" || d.Code == c.code) && strings.Contains(d.Msg, c.says)
			}) {
				t.Errorf("no finding [%s] that says %q", c.code, c.says)
			}
			for _, d := range list {
				t.Logf("%d:%d [%s] %s | %s", d.Pos.Line, d.Pos.Col, d.Code, d.Msg, d.Hint)
			}
		})
	}
}

// TestMutated changes specs at random, though always the same way, and wants no word of CUE's in what comes out.
func TestMutated(t *testing.T) {
	words := []string{"{", "}", "[", "]", "&", "|", "*", ":", "_", "_|_", "int", "\"x\"", "3", "-1", "null", "'b'", "1/0", "n.x", "#W", "spec.#Worker", "...", "!", "?", "=~\"[\"",
		"<2", "if x {a: 1}", "for x in 3 {b: x}", "let y = 4", "X=", "strings.Repeat(\"a\", 3)", "\\(x)", "@tag(q)", ",", "\n", "len(3)", "true", "1e9", "(a)"}
	var texts []string
	for _, pattern := range []string{"../*.cue", "testdata/ok/*.txtar"} {
		files, _ := filepath.Glob(pattern)
		for _, f := range files {
			b, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			s := string(b)
			if _, after, ok := strings.Cut(s, "-- spec.cue --\n"); ok {
				s, _, _ = strings.Cut(after, "\n-- ")
			}
			if strings.Contains(s, "package ") {
				texts = append(texts, s)
			}
		}
	}
	if len(texts) < 5 {
		t.Fatalf("%d specs to change", len(texts))
	}
	r := rand.New(rand.NewPCG(1, 2))
	rounds := 400
	if testing.Short() {
		rounds = 60
	}
	for range rounds {
		text := texts[r.IntN(len(texts))]
		fields := strings.SplitAfter(text, " ")
		for range 1 + r.IntN(3) {
			i := r.IntN(len(fields))
			switch r.IntN(4) {
			case 0:
				fields[i] = ""
			case 1:
				fields[i] = words[r.IntN(len(words))] + " "
			case 2:
				fields[i] += words[r.IntN(len(words))] + " "
			case 3:
				fields[i] = fields[r.IntN(len(fields))]
			}
		}
		text = strings.Join(fields, "")
		noRawCUE(t, text, loadText(t, "a.cue", text))
	}
}
