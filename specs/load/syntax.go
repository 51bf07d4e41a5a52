package load

import (
	"bytes"
	"fmt"
	"regexp"
	"strings"

	"cuelang.org/go/cue/scanner"
	"cuelang.org/go/cue/token"

	"github.com/dynamograph/dynamo/graph/diag"
)

var assignment = regexp.MustCompile(`^\s*("[^"]*"|[\w#$-]+)\s*=[^=~]`)

// explain adds to a syntax finding what likely went wrong: a brace that stays open, an equals sign, a comma too many.
func (s *source) explain(d *diag.Diagnostic) {
	off := s.offset(d.Pos)
	if off < 0 {
		return
	}
	before := strings.TrimRight(string(s.data[:off]), " \t\r\n")
	switch s.format {
	case "json":
		if strings.HasSuffix(before, ",") && off < len(s.data) && strings.IndexByte("]}", s.data[off]) >= 0 {
			d.Hint = "remove the comma before it"
		} else if off < len(s.data) && strings.IndexByte("/#", s.data[off]) >= 0 {
			d.Hint = "JSON has no comments: remove it, or write the spec in YAML or CUE"
		}
	case "yaml":
		line := s.data[bytes.LastIndexByte(s.data[:off], '\n')+1:]
		if indent := line[:len(line)-len(bytes.TrimLeft(line, " \t"))]; bytes.IndexByte(indent, '\t') >= 0 {
			d.Hint = "YAML is indented with spaces: replace the tab"
		}
	case "cue":
		line := before[strings.LastIndexByte(before, '\n')+1:] + " "
		if m := assignment.FindStringSubmatchIndex(line); m != nil {
			d.Pos = s.pos(len(before) - (len(line) - 1) + m[2])
			d.Len = m[3] - m[2]
			d.Hint = fmt.Sprintf("a field is written `%s: …`", line[m[2]:m[3]])
			d.Msg = "want ':' after a field's name, got '='"
			return
		}
		if p, ok := s.unclosed(); ok && strings.Contains(d.Msg, "the end of the file") {
			d.Related = []diag.Related{{Pos: p, Len: 1, Msg: fmt.Sprintf("%q is opened here", string(s.data[s.offset(p)]))}}
			d.Hint = "close what is open"
		}
	}
}

// unclosed finds the bracket that was likely left open: the first whose partner stands in a line of another indentation, else the last
// that has no partner.
func (s *source) unclosed() (diag.Pos, bool) {
	var sc scanner.Scanner
	sc.Init(token.NewFile(s.name, -1, len(s.data)), s.data, func(token.Pos, string, []any) {}, 0)
	var open []int
	for {
		pos, tok, _ := sc.Scan()
		switch tok {
		case token.LBRACE, token.LBRACK, token.LPAREN:
			open = append(open, pos.Offset())
		case token.RBRACE, token.RBRACK, token.RPAREN:
			if len(open) == 0 {
				return diag.Pos{}, false
			}
			o := open[len(open)-1]
			open = open[:len(open)-1]
			if c := pos.Offset(); s.pos(o).Line != s.pos(c).Line && s.indent(o) != s.indent(c) {
				return s.pos(o), true
			}
		case token.EOF:
			if len(open) == 0 {
				return diag.Pos{}, false
			}
			return s.pos(open[len(open)-1]), true
		}
	}
}

// indent returns the white space at the start of the line of an offset.
func (s *source) indent(off int) string {
	if off < 0 {
		return ""
	}
	line := string(s.data[s.lines[s.pos(off).Line-1]:min(off+4096, len(s.data))])
	return line[:len(line)-len(strings.TrimLeft(line, " \t"))]
}

// The bounds of a CUE file's form, far above what a spec needs. Deeper ones cost the parser and the evaluator time and stack that grow
// with the square of the depth.
const (
	maxDepth  = 100     // brackets within brackets
	maxChain  = 2_000   // tokens without a comma or the end of a field
	maxTokens = 250_000 // of a file
)

// modest reports whether a CUE file keeps to those bounds, and adds a finding where it does not.
func (l *loader) modest(s *source) bool {
	var sc scanner.Scanner
	errs := 0
	sc.Init(token.NewFile(s.name, -1, len(s.data)), s.data, func(token.Pos, string, []any) { errs++ }, 0)
	depth, chain := 0, 0
	for n := 0; ; n++ {
		pos, tok, lit := sc.Scan()
		what := ""
		chain++
		switch tok {
		case token.EOF:
			if errs <= 100 {
				return true
			}
		case token.LBRACE, token.LBRACK, token.LPAREN:
			depth++
		case token.RBRACE, token.RBRACK, token.RPAREN:
			depth--
		case token.COMMA:
			chain = 0
		case token.INTERPOLATION:
			depth += strings.Count(lit, `\(`)
		}
		switch {
		case depth > maxDepth:
			what = fmt.Sprintf("nested more than %d deep", maxDepth)
		case chain > maxChain:
			what = fmt.Sprintf("more than %d words in one expression", maxChain)
		case errs > 100: // more than a parser can report in reasonable time
			what = "this is no CUE"
		case n > maxTokens:
			what = fmt.Sprintf("more than %d words in one file", maxTokens)
		default:
			continue
		}
		code, hint := "too-large", "a spec is data: write it flatter"
		if errs > 100 {
			code, hint = "syntax", ""
		}
		l.list.Add(diag.Diagnostic{Code: code, Pos: s.pos(pos.Offset()), Len: 1, Msg: what, Hint: hint})
		return false
	}
}
