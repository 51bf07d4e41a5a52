package check

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/dynamograph/dynamo/graph/diag"
	"github.com/dynamograph/dynamo/nodes/engine/table"
)

// parser is one place that names a parser: a field of the model and a flag of the engine.
type parser struct {
	kind   table.Kind
	field  string // of the model
	flag   string
	plugin string // a flag that brings parsers of the author's own
	noun   string
	nouns  string
}

var kinds = []parser{
	{table.Tools, "tools", "tool-call-parser", "tool-parser-plugin", "parser of tool calls", "parsers of tool calls"},
	{table.Reasoning, "reasoning", "reasoning-parser", "reasoning-parser-plugin", "parser of reasoning", "parsers of reasoning"},
}

// parsers finds parsers that do not exist or do not fit the model.
func (k *checker) parsers() {
	for _, p := range kinds {
		ofModel := ""
		if k.model != nil {
			ofModel = k.model.Tools
			if p.kind == table.Reasoning {
				ofModel = k.model.Reasoning
			}
		}
		if ofModel != "" && k.exists(p, ofModel) {
			k.fits(p, ofModel, "")
		}
		v, name, ok := k.flag(p.flag)
		s, text := v.(string)
		if !ok || !text || s == "" {
			continue
		}
		if k.unchecked() {
			k.fits(p, s, name)
			continue
		}
		if _, _, own := k.flag(p.plugin); own {
			continue
		}
		if !k.has(p, s) {
			k.unknownParser(p, s, name)
			continue
		}
		k.fits(p, s, name)
		k.agree(p, ofModel, s, name)
	}
}

// has reports whether the release has a parser. SGLang looks reasoning parsers up in lower case.
func (k *checker) has(p parser, name string) bool {
	return k.release.Has(p.kind, name) || p.kind == table.Reasoning && k.c.Engine == "sglang" && k.release.Has(p.kind, strings.ToLower(name)) ||
		len(k.release.Names(p.kind)) == 0
}

// unknownParser reports a flag that names a parser which the release does not have.
func (k *checker) unknownParser(p parser, name, flag string) {
	names := k.release.Names(p.kind)
	hint := ""
	if have := k.engine.With(p.kind, name); len(have) > 0 {
		hint = since(k.engine, have)
	} else if format, ok := table.Format(p.kind, name); ok {
		for _, n := range names { // another engine's name of a parser that this one has
			if f, _ := table.Format(p.kind, n); f == format {
				hint = fmt.Sprintf("%s calls it %q", strings.Fields(k.title)[0], n)
				break
			}
		}
	}
	if hint == "" {
		hint = diag.Suggest(name, names)
	}
	d := k.add(k.severity(), "unknown-parser", "flags."+flag, hint, "%s", k.lacks("%s %q", p.noun, name))
	d.Notes = []string{p.nouns + ": " + strings.Join(names, ", ")}
	d.Related = k.node("version", "the version is %s", k.c.Version)
}

// exists reports whether a parser that the model names is known: one of ours, or one of the node's engine.
func (k *checker) exists(p parser, name string) bool {
	if _, ok := table.Format(p.kind, name); ok {
		return true
	}
	names := table.Formats(p.kind)
	if k.engine != nil {
		if k.has(p, name) && len(k.release.Names(p.kind)) > 0 {
			return true
		}
		names = slices.Concat(names, k.release.Names(p.kind))
	}
	if k.c.Engine == "trtllm" || k.c.Version != "" && !k.known {
		return false // it may have it: not known, and so not wrong
	}
	hint := diag.Suggest(name, names)
	if k.engine != nil && k.known {
		if have := k.engine.With(p.kind, name); len(have) > 0 {
			hint = since(k.engine, have)
			d := k.addModel(diag.Error, "unknown-parser", p.field, hint, "%s", k.lacks("%s %q", p.noun, name))
			d.Related = k.node("version", "nodes.%s has version %s", k.s.Node.Name, k.c.Version)
			return false
		}
	}
	slices.Sort(names)
	d := k.addModel(diag.Error, "unknown-parser", p.field, hint, "no %s %q", p.noun, name)
	d.Notes = []string{p.nouns + ": " + strings.Join(slices.Compact(names), ", ")}
	return false
}

// tuned are words in the name of a model that was trained to do what its family does not.
var tuned = map[table.Kind]*regexp.Regexp{
	table.Tools:     regexp.MustCompile(`(?i)tool|func|hermes|xlam|agent|\bfc\b`),
	table.Reasoning: regexp.MustCompile(`(?i)r1|think|reason|distill|qwq|cot|magistral`),
}

// fits finds a parser of a format that the model's family does not write. It is an error where the author names the family, and a warning
// where only the model's name does: what was trained further may write anything.
func (k *checker) fits(p parser, name, flag string) {
	if k.model == nil {
		return
	}
	var stated *table.Family
	if k.model.Family != "" {
		if stated = table.Stated(k.model.Family); stated == nil || stated.Speaks(p.kind, name) {
			return
		}
	}
	var named *table.Family
	for _, n := range k.names() {
		if tuned[p.kind].MatchString(n) {
			return
		}
		f := table.Named(n)
		if f != nil && f.Speaks(p.kind, name) {
			return
		}
		if named == nil {
			named = f
		}
	}
	severity, family := diag.Error, stated
	if stated == nil {
		if named == nil {
			return
		}
		severity, family = diag.Warning, named
	}
	formats, what := family.Tools, "tool calls"
	if p.kind == table.Reasoning {
		formats, what = family.Reasoning, "reasoning"
	}
	why := fmt.Sprintf("models of family %q write %s as %s", family.Name, what, diag.Or(formats))
	hint := "write " + diag.Or(diag.Quote(formats))
	if len(formats) == 0 {
		why, hint = fmt.Sprintf("models of family %q write no %s", family.Name, what), "remove it"
	}
	if flag == "" {
		d := k.addModel(severity, "parser-misfit", p.field, hint, "%q does not fit: %s", name, why)
		d.Related = k.ofModel("family", "the family is %q", k.model.Family)
		return
	}
	if k.engine != nil && len(formats) > 0 {
		var theirs []string
		for _, n := range k.release.Names(p.kind) {
			if f, ok := table.Format(p.kind, n); ok && slices.Contains(formats, f) {
				theirs = append(theirs, n)
			}
		}
		if len(theirs) > 0 {
			hint = "write " + diag.Or(diag.Quote(theirs))
		}
	}
	d := k.add(severity, "parser-misfit", "flags."+flag, hint, "%q does not fit: %s", name, why)
	if d.Related = k.ofModel("family", "the family is %q", k.model.Family); d.Related == nil {
		d.Related = k.ofModel("source", "the model is this")
	}
}

// names are what the model is called: by its file, and by its sources.
func (k *checker) names() []string {
	var out []string
	if k.s.Facts != nil && k.s.Facts.Name != "" {
		out = append(out, k.s.Facts.Name)
	}
	for _, src := range k.model.Sources {
		scheme, rest, _ := strings.Cut(src, ":")
		parts := strings.Split(strings.Trim(rest, "/"), "/")
		if scheme == "hf" && len(parts) > 1 {
			repo, _, _ := strings.Cut(parts[1], "@")
			out = append(out, strings.TrimSuffix(strings.ToLower(repo), "-gguf"))
			continue
		}
		out = append(out, parts[len(parts)-1])
	}
	return out
}

// agree finds a flag that names the parser of another format than the model's field.
func (k *checker) agree(p parser, ofModel, ofFlag, flag string) {
	a, known := table.Format(p.kind, ofModel)
	b, also := table.Format(p.kind, ofFlag)
	if !known || !also || a == b {
		return
	}
	d := k.add(diag.Error, "conflict", "flags."+flag, "keep one of them", "%q, but models.%s.%s is %q, another format", ofFlag, k.s.Node.Model, p.field, ofModel)
	d.Related = k.ofModel(p.field, "models.%s.%s is %q", k.s.Node.Model, p.field, ofModel)
}

// idle finds a parser of tool calls that vLLM never asks. A file of options, which nobody sees here, may turn it on.
func (k *checker) idle() {
	const auto = "enable-auto-tool-choice"
	_, name, ok := k.flag("tool-call-parser")
	if _, _, hidden := k.flag("config"); !ok || hidden || k.c.Engine != "vllm" || k.unchecked() {
		return
	}
	if slices.ContainsFunc(k.list, func(d diag.Diagnostic) bool { return strings.HasSuffix(d.Path, ".flags."+name) }) {
		return // it is wrong by itself
	}
	if _, _, had := k.release.Flag(auto); !had {
		return
	}
	v, _, said := k.flag(auto)
	if on, isBool := v.(bool); said && (on || !isBool) {
		return
	}
	k.add(diag.Warning, "no-effect", "flags."+name, fmt.Sprintf("add %q: true", auto), "has no effect: without %q the parser is not asked, and requests with tools are refused", auto)
}
