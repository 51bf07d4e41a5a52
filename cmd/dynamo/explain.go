package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/dynamograph/dynamo/cmd/dynamo/internal/cli"
	"github.com/dynamograph/dynamo/graph/diag"
	"github.com/dynamograph/dynamo/graph/kind"
	"github.com/dynamograph/dynamo/specs/schema"
)

// explainedCode is what explain --output json says of a code.
type explainedCode struct {
	Code    string `json:"code"`
	Meaning string `json:"meaning"`
	Do      string `json:"do"`
}

// explainedKind is what explain --output json says of a kind.
type explainedKind struct {
	Kind    string          `json:"kind"`
	Summary string          `json:"summary"`
	Ports   []explainedPort `json:"ports"`
	Schema  string          `json:"schema,omitempty"` // its fields in CUE, with what it shares with other kinds
}

// explainedPort is a port of a kind or node.
type explainedPort struct {
	Name  string   `json:"name"`
	Type  string   `json:"type"`
	Dir   kind.Dir `json:"dir"`
	Need  bool     `json:"need,omitempty"`
	Many  bool     `json:"many,omitempty"`
	Doc   string   `json:"doc,omitempty"`
	Edges []string `json:"edges,omitempty"` // of a node: what is joined there, "prefill.kv"
}

// explainedAll is what explain --output json says without an argument.
type explainedAll struct {
	Codes []explainedCode `json:"codes"`
	Kinds []explainedKind `json:"kinds"`
}

func (p *program) explain() *cli.Command {
	return &cli.Command{
		Name: "explain", Usage: "say what a diagnostic's code means and what to do, or what a kind of node is; without an argument list both",
		ArgsUsage: "[CODE | KIND]", Flags: []cli.Flag{outputFlag("text or json")},
		Action: p.runExplain,
	}
}

func (p *program) runExplain(c *cli.Context) error {
	if c.NArg() > 1 {
		return cli.Fail(cli.Usage, "want one CODE or KIND; try: dynamo explain unknown-field")
	}
	if err := textOrJSON(c); err != nil {
		return err
	}
	asJSON := c.String("output") == "json"
	if c.NArg() == 0 {
		all := explainedAll{Kinds: []explainedKind{}}
		for _, code := range sortedKeys(diag.Codes) {
			all.Codes = append(all.Codes, explainedCode{code, diag.Codes[code].Meaning, diag.Codes[code].Do})
		}
		var names []string
		for _, k := range kind.Default.All() {
			all.Kinds = append(all.Kinds, explainKind(k, false))
			names = append(names, k.Name)
		}
		if asJSON {
			return p.encode(all)
		}
		var b strings.Builder
		width := 0
		for _, n := range append(sortedKeys(diag.Codes), names...) {
			width = max(width, len(n))
		}
		b.WriteString("Kinds of node:\n")
		for _, k := range all.Kinds {
			fmt.Fprintf(&b, "  %-*s  %s\n", width, k.Kind, k.Summary)
		}
		b.WriteString("\nCodes of findings:\n")
		for _, x := range all.Codes {
			fmt.Fprintf(&b, "  %-*s  %s\n", width, x.Code, x.Meaning)
		}
		_, err := fmt.Fprint(p.Stdout, b.String())
		return err
	}
	name := c.Args().First()
	if k, ok := diag.Codes[name]; ok {
		if asJSON {
			return p.encode(explainedCode{name, k.Meaning, k.Do})
		}
		_, err := fmt.Fprintf(p.Stdout, "%s: %s\n\n%s\n", name, k.Meaning, k.Do)
		return err
	}
	if k := kind.Default.Lookup(name); k != nil {
		e := explainKind(k, true)
		if asJSON {
			return p.encode(e)
		}
		_, err := fmt.Fprintf(p.Stdout, "%s: %s\n\nPorts:\n%s\nFields, as the schema has them:\n\n%s", e.Kind, e.Summary, portLines(e.Ports), e.Schema)
		return err
	}
	known := sortedKeys(diag.Codes)
	for _, k := range kind.Default.All() {
		known = append(known, k.Name)
	}
	msg := fmt.Sprintf("no code or kind %q", name)
	if s := diag.Suggest(name, known); s != "" {
		msg += "; " + s
	}
	return cli.Fail(cli.Findings, "%s", msg)
}

func explainKind(k *kind.Entry, fields bool) explainedKind {
	e := explainedKind{Kind: k.Name, Summary: k.Summary, Ports: []explainedPort{}}
	ports, err := k.Ports(nil)
	if err == nil {
		for _, x := range ports {
			e.Ports = append(e.Ports, explainedPort{Name: x.Name, Type: x.Type, Dir: x.Dir, Need: x.Need, Many: x.Many, Doc: x.Doc})
		}
	}
	if fields {
		e.Schema = kindSchema(k.Name)
	}
	return e
}

// portLines writes ports for people.
func portLines(ports []explainedPort) string {
	var b strings.Builder
	width := 0
	for _, x := range ports {
		width = max(width, len(x.Name))
	}
	for _, x := range ports {
		line := fmt.Sprintf("  %-*s  %s of %s", width, x.Name, x.Dir.Word(), x.Type)
		if x.Need {
			line += ", needs an edge"
		}
		if x.Many {
			line += ", takes several"
		}
		if x.Doc != "" {
			line += "; " + x.Doc
		}
		if len(x.Edges) > 0 {
			arrow := " ← "
			if x.Dir == kind.Out {
				arrow = " → "
			}
			line += arrow + strings.Join(x.Edges, ", ")
		}
		b.WriteString(line + "\n")
	}
	return b.String()
}

// kindSchema is the definition of a kind, and those that it embeds.
func kindSchema(name string) string {
	blocks := map[string]string{}
	for _, f := range schema.Files(kind.Default) {
		lines := strings.SplitAfter(f.Text, "\n")
		for i := 0; i < len(lines); i++ {
			def, ok := strings.CutSuffix(strings.TrimSpace(lines[i]), ": {")
			if !ok || !strings.HasPrefix(lines[i], "#") {
				continue
			}
			from := i
			for from > 0 && strings.HasPrefix(lines[from-1], "//") {
				from--
			}
			for i+1 < len(lines) && !strings.HasPrefix(lines[i], "}") {
				i++
			}
			blocks[def] = strings.Join(lines[from:i+1], "")
		}
	}
	var out []string
	var add func(def string)
	add = func(def string) {
		text, ok := blocks[def]
		if !ok || slices.Contains(out, text) {
			return
		}
		out = append(out, text)
		for line := range strings.Lines(text) {
			if l := strings.TrimSpace(line); strings.HasPrefix(l, "#") && !strings.Contains(l, ":") {
				add(l) // embedded
			} else if i := strings.LastIndexByte(l, '#'); i > 0 && !strings.HasPrefix(l, "//") {
				add(strings.TrimRight(l[i:], ",)}")) // a field's own definition
			}
		}
	}
	add(schema.Definition(name))
	return strings.Join(out, "\n")
}
