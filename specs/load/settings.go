package load

import (
	"fmt"
	"slices"
	"strings"

	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/literal"
	"cuelang.org/go/cue/parser"
	"cuelang.org/go/cue/token"

	"github.com/dynamograph/dynamo/graph/diag"
)

// The names of the files that stand for arguments: each argument is a line.
const (
	setFile = "--set"
	tagFile = "-t"
)

// arguments makes a source of arguments, so that findings can point into them.
func arguments(name string, args []string) *source {
	return &source{name: name, format: "args", data: []byte(strings.Join(args, "\n")), layer: map[string]layer{setFile: layerSet, tagFile: layerTag}[name]}
}

// settings makes a file of the --set arguments in s: "nodes.decode.replicas=3" sets that field as an overlay would. What stands behind the
// equals sign is plain CUE or JSON; everything else is text.
func (l *loader) settings(s *source, args []string) {
	tf := token.NewFile(s.name, -1, len(s.data)+1)
	tf.SetLinesForContent(s.data)
	s.file = &ast.File{Filename: s.name}
	seen := map[string]int{}
	at := 0
	for i, arg := range args {
		start := at
		at += len(arg) + 1
		bad := func(off, n int, hint, msg string) {
			l.list.Add(diag.Diagnostic{Code: "bad-set", Pos: s.pos(start + off), Len: max(n, 1), Msg: msg, Hint: hint})
		}
		path, end, err := parsePath(arg)
		if err != "" {
			bad(end, 1, "write --set nodes.NAME.field=value; names with other characters in quotes: edges.\"a -> b\".transport=grpc", err)
			continue
		}
		var names []string
		for _, p := range path {
			names = append(names, p.name)
		}
		k := key(names)
		if j, ok := seen[k]; ok && args[j][strings.IndexByte(args[j], '='):] != arg[strings.IndexByte(arg, '='):] {
			bad(0, end, "set each field once", fmt.Sprintf("%s is set by %q, too", place(names), args[j]))
			continue
		}
		seen[k] = i
		x := settingValue(s, tf, start+end+1, arg[end+1:])
		for _, p := range slices.Backward(path) {
			label := &ast.BasicLit{Kind: token.STRING, Value: literal.String.Quote(p.name), ValuePos: tf.Pos(start+p.off, token.NoRelPos)}
			x = &ast.StructLit{Elts: []ast.Decl{&ast.Field{Label: label, Value: x}}}
		}
		s.file.Decls = append(s.file.Decls, x.(*ast.StructLit).Elts...)
	}
}

// settingValue reads the value of a setting, which is at offset off of s.
func settingValue(s *source, tf *token.File, off int, text string) ast.Expr {
	lines := strings.Count(string(s.data[:off]), "\n")
	col := off - (strings.LastIndexByte(string(s.data[:off]), '\n') + 1)
	pad := strings.Repeat("\n", lines) + strings.Repeat(" ", col) // so that positions are those of the argument
	if len(text) < 1<<16 && strings.Trim(text, " ") != "" && shallow(text) {
		if x, err := parser.ParseExpr(s.name, pad+text); err == nil && literalOnly(x) {
			return x
		}
	}
	return &ast.BasicLit{Kind: token.STRING, Value: literal.String.Quote(text), ValuePos: tf.Pos(off, token.NoRelPos)}
}

// shallow bounds how deep a value may be nested before it is taken for text: the parser recurses.
func shallow(text string) bool {
	return strings.Count(text, "[")+strings.Count(text, "{")+strings.Count(text, "(")+strings.Count(text, "-") < maxDepth
}

// literalOnly reports whether x is data or a constraint: no reference, no call, no text that looks like arithmetic ("kv-aware"), and no
// number with a suffix, which a spec writes as text ("256Gi").
func literalOnly(x ast.Expr) bool {
	ok := true
	ast.Walk(x, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.BasicLit:
			if n.Kind == token.INT || n.Kind == token.FLOAT {
				ok = ok && !strings.ContainsAny(strings.TrimPrefix(strings.TrimPrefix(n.Value, "0x"), "0b"), "KMGTPi")
			}
		case *ast.BinaryExpr:
			ok = ok && (n.Op == token.AND || n.Op == token.OR)
		case *ast.UnaryExpr, *ast.StructLit, *ast.ListLit, *ast.ParenExpr:
		case *ast.Field:
			if _, _, err := ast.LabelName(n.Label); err != nil {
				ok = false
			}
			if ok {
				ok = literalOnly(n.Value)
			}
			return false
		default:
			ok = false
		}
		return ok
	}, nil)
	return ok
}

// segment is one name of a path, with its offset in the argument.
type segment struct {
	name string
	off  int
}

// parsePath reads the path before the equals sign of a setting and returns the offset of that sign, or of what is wrong.
func parsePath(arg string) (path []segment, end int, err string) {
	i := 0
	for {
		start := i
		if i < len(arg) && arg[i] == '"' {
			j := i + 1
			for j < len(arg) && arg[j] != '"' && arg[j] != '\n' {
				if arg[j] == '\\' {
					j++
				}
				j++
			}
			if j >= len(arg) {
				return nil, start, "a quote is not closed"
			}
			name, e := literal.Unquote(arg[i : j+1])
			if e != nil || name == "" {
				return nil, start, "this is no name"
			}
			path, i = append(path, segment{name, start}), j+1
		} else {
			for i < len(arg) && (arg[i] >= 0x80 || strings.IndexByte("-_", arg[i]) >= 0 || isAlnum(arg[i])) {
				i++
			}
			if i == start {
				switch {
				case i == len(arg):
					return nil, max(0, i-1), "want path=value"
				case arg[i] == '=':
					return nil, i, "want path=value: the path is missing"
				case arg[i] == '[':
					return nil, i, "an item of a list cannot be set alone: set the whole list"
				case arg[i] == '#':
					return nil, i, "a definition cannot be set: set the fields of the graph"
				}
				return nil, i, fmt.Sprintf("want path=value: %q cannot stand in a path", arg[i:i+1])
			}
			if strings.Trim(arg[start:i], "0123456789") == "" {
				return nil, start, "an item of a list cannot be set alone: set the whole list"
			}
			path = append(path, segment{arg[start:i], start})
		}
		switch {
		case i < len(arg) && arg[i] == '.':
			i++
		case i < len(arg) && arg[i] == '=':
			return path, i, ""
		case i == len(arg):
			return nil, 0, "want path=value: there is no equals sign"
		case arg[i] == '[':
			return nil, i, "an item of a list cannot be set alone: set the whole list"
		default:
			return nil, i, fmt.Sprintf("want path=value: %q cannot stand in a path", arg[i:i+1])
		}
	}
}

func isAlnum(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
}
