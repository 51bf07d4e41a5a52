package jinja

import (
	"fmt"
	"math/big"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

type tokenKind uint8

const (
	tEOF tokenKind = iota
	tData
	tVarBegin
	tVarEnd
	tBlockBegin
	tBlockEnd
	tName
	tString
	tNumber
	tOp
)

// token is a piece of the source. Data, names, strings and operators have text, numbers a value.
type token struct {
	kind tokenKind
	text string
	num  Value
	line int
}

// String names the token as Jinja's messages do.
func (t token) String() string {
	switch t.kind {
	case tEOF:
		return "end of template"
	case tData:
		return "template data / text"
	case tVarBegin:
		return "begin of print statement"
	case tVarEnd:
		return "end of print statement"
	case tBlockBegin:
		return "begin of statement block"
	case tBlockEnd:
		return "end of statement block"
	case tString:
		return "string"
	case tNumber:
		if _, ok := t.num.(float64); ok {
			return "float"
		}
		return "integer"
	}
	return t.text
}

// lexer cuts a source with normalized line ends into tokens.
type lexer struct {
	src       string
	pos       int
	line      int
	lineStart bool // what was matched last ended with a line
	open      []byte
	tokens    []token
}

var operators = []string{"**", "//", "==", "!=", ">=", "<=", "+", "-", "/", "*", "%", "~", "[", "]", "(", ")", "{", "}", ">", "<", "=", ".", ":", "|", ",", ";"}

func syntaxError(line int, format string, args ...any) *Error {
	return &Error{Line: line, Type: "TemplateSyntaxError", Msg: fmt.Sprintf(format, args...)}
}

// lex cuts the source; errors are panics with *Error.
func lex(src string) []token {
	if strings.Contains(src, "\r") {
		src = strings.ReplaceAll(strings.ReplaceAll(src, "\r\n", "\n"), "\r", "\n")
	}
	l := &lexer{src: strings.TrimSuffix(src, "\n"), line: 1, lineStart: true}
	for l.pos < len(l.src) {
		l.root()
	}
	l.add(tEOF, "")
	return l.tokens
}

func (l *lexer) add(k tokenKind, text string) {
	l.tokens = append(l.tokens, token{kind: k, text: text, line: l.line})
}

// take moves over n bytes.
func (l *lexer) take(n int) string {
	s := l.src[l.pos : l.pos+n]
	l.pos += n
	l.line += strings.Count(s, "\n")
	l.lineStart = strings.HasSuffix(s, "\n")
	return s
}

// root takes text up to the next tag, and the tag.
func (l *lexer) root() {
	rest := l.src[l.pos:]
	at := 0
	for {
		i := strings.IndexByte(rest[at:], '{')
		if i < 0 || at+i+1 == len(rest) {
			l.data(rest, len(rest))
			return
		}
		if at += i; rest[at+1] == '%' || rest[at+1] == '{' || rest[at+1] == '#' {
			break
		}
		at++
	}
	kind, n := rest[at+1], at+2
	sign := byte(0)
	if n < len(rest) && (rest[n] == '-' || rest[n] == '+') {
		sign = rest[n]
		n++
	}
	l.data(l.stripped(rest[:at], sign, kind != '{'), at)
	line := l.line
	switch kind {
	case '{':
		l.add(tVarBegin, "")
		l.take(n - at)
		l.inside(tVarEnd)
	case '#':
		l.take(n - at)
		l.comment(line)
	default:
		if m := rawBegin(rest[n:]); m > 0 {
			l.take(n - at + m)
			l.raw(line)
			return
		}
		l.add(tBlockBegin, "")
		l.take(n - at)
		l.inside(tBlockEnd)
	}
}

// data adds text and moves over n bytes.
func (l *lexer) data(text string, n int) {
	if text != "" {
		l.add(tData, text)
	}
	if n > 0 {
		l.take(n)
	}
}

// stripped is the text before a tag with that sign.
func (l *lexer) stripped(text string, sign byte, block bool) string {
	switch {
	case sign == '-':
		return strings.TrimRightFunc(text, isSpace)
	case sign == 0 && block:
		from := strings.LastIndexByte(text, '\n') + 1
		if (from > 0 || l.lineStart) && strings.TrimLeftFunc(text[from:], isSpace) == "" {
			return text[:from]
		}
	}
	return text
}

// spaces is the length of the white space at the start of s.
func spaces(s string) int { return len(s) - len(strings.TrimLeftFunc(s, isSpace)) }

// rawBegin is the length of "raw %}" and "raw -%}" at the start of s, with white space; 0 where it is something else.
func rawBegin(s string) int { return wordTag(s, "raw", false) }

// wordTag is the length of word and the end of a block at the start of s.
func wordTag(s, word string, suffix bool) int {
	n := spaces(s)
	if !strings.HasPrefix(s[n:], word) {
		return 0
	}
	n += len(word)
	n += spaces(s[n:])
	switch rest := s[n:]; {
	case strings.HasPrefix(rest, "-%}"):
		return n + 3 + spaces(rest[3:])
	case suffix && strings.HasPrefix(rest, "+%}"):
		return n + 3
	case strings.HasPrefix(rest, "%}"):
		n += 2
		if suffix && strings.HasPrefix(s[n:], "\n") {
			n++
		}
		return n
	}
	return 0
}

// raw takes text up to endraw.
func (l *lexer) raw(line int) {
	rest := l.src[l.pos:]
	for at := 0; ; at++ {
		i := strings.Index(rest[at:], "{%")
		switch {
		case rest == "":
			return // as in Jinja
		case i < 0:
			panic(syntaxError(line, "Missing end of raw directive"))
		}
		at += i
		n, sign := at+2, byte(0)
		if n < len(rest) && (rest[n] == '-' || rest[n] == '+') {
			sign = rest[n]
			n++
		}
		if m := wordTag(rest[n:], "endraw", true); m > 0 {
			l.data(l.stripped(rest[:at], sign, true), at)
			l.take(n - at + m)
			return
		}
	}
}

func (l *lexer) comment(line int) {
	rest := l.src[l.pos:]
	i := strings.Index(rest, "#}")
	switch {
	case rest == "":
		return // as in Jinja
	case i < 0:
		panic(syntaxError(line, "Missing end of comment tag"))
	}
	n := i + 2
	switch {
	case i > 0 && rest[i-1] == '-':
		n += spaces(rest[n:])
	case i > 0 && rest[i-1] == '+':
	case strings.HasPrefix(rest[n:], "\n"):
		n++
	}
	l.take(n)
}

// end is the length of the end of a tag at the start of s; 0 where there is none.
func end(s string, kind tokenKind) int {
	if kind == tVarEnd {
		switch {
		case strings.HasPrefix(s, "-}}"):
			return 3 + spaces(s[3:])
		case strings.HasPrefix(s, "}}"):
			return 2
		}
		return 0
	}
	switch {
	case strings.HasPrefix(s, "-%}"):
		return 3 + spaces(s[3:])
	case strings.HasPrefix(s, "+%}"), strings.HasPrefix(s, "%}\n"):
		return 3
	case strings.HasPrefix(s, "%}"):
		return 2
	}
	return 0
}

// inside takes the tokens of a tag and its end.
func (l *lexer) inside(until tokenKind) {
	l.open = l.open[:0]
	for l.pos < len(l.src) {
		rest := l.src[l.pos:]
		if n := end(rest, until); n > 0 && len(l.open) == 0 {
			l.add(until, "")
			l.take(n)
			return
		}
		if n := spaces(rest); n > 0 {
			l.take(n)
			continue
		}
		l.one(rest)
	}
}

// one takes one token.
func (l *lexer) one(rest string) {
	c := rest[0]
	if c >= '0' && c <= '9' {
		l.number(rest)
		return
	}
	if r, _ := utf8.DecodeRuneInString(rest); c == '_' || unicode.IsLetter(r) || unicode.Is(unicode.Other_ID_Start, r) || unicode.Is(unicode.Nl, r) {
		n := strings.IndexFunc(rest, func(r rune) bool {
			return r != '_' && !unicode.In(r, unicode.L, unicode.Nl, unicode.Mn, unicode.Mc, unicode.Nd, unicode.Pc, unicode.Other_ID_Start, unicode.Other_ID_Continue)
		})
		if n < 0 {
			n = len(rest)
		}
		l.add(tName, rest[:n])
		l.take(n)
		return
	}
	if c == '\'' || c == '"' {
		l.str(rest)
		return
	}
	for _, op := range operators {
		if strings.HasPrefix(rest, op) {
			l.balance(op)
			l.add(tOp, op)
			l.take(len(op))
			return
		}
	}
	r, _ := utf8.DecodeRuneInString(rest)
	panic(syntaxError(l.line, "unexpected char %s at %d", quote(string(r)), utf8.RuneCountInString(l.src[:l.pos])))
}

func (l *lexer) balance(op string) {
	switch op {
	case "(":
		l.open = append(l.open, ')')
	case "[":
		l.open = append(l.open, ']')
	case "{":
		l.open = append(l.open, '}')
	case ")", "]", "}":
		if len(l.open) == 0 {
			panic(syntaxError(l.line, "unexpected '%s'", op))
		}
		want := l.open[len(l.open)-1]
		if l.open = l.open[:len(l.open)-1]; want != op[0] {
			panic(syntaxError(l.line, "unexpected '%s', expected '%c'", op, want))
		}
	}
}

// digits is the length of a run of digits with single underscores between them.
func digits(s string) int {
	n := 0
	for n < len(s) && (s[n] >= '0' && s[n] <= '9' || s[n] == '_' && n > 0 && s[n-1] != '_' && n+1 < len(s) && s[n+1] >= '0' && s[n+1] <= '9') {
		n++
	}
	return n
}

func (l *lexer) number(rest string) {
	dotted := l.pos > 0 && l.src[l.pos-1] == '.'
	n := digits(rest)
	if m := floatLen(rest, n); m > 0 && !dotted {
		f, _ := strconv.ParseFloat(strings.ReplaceAll(rest[:m], "_", ""), 64)
		l.tokens = append(l.tokens, token{kind: tNumber, text: rest[:m], num: f, line: l.line})
		l.take(m)
		return
	}
	base := 10
	if rest[0] == '0' {
		n, base = 1, 10
		for n < len(rest) && (rest[n] == '0' || rest[n] == '_' && n+1 < len(rest) && rest[n+1] == '0') {
			n++
		}
		if m, b := prefixed(rest); m > 0 {
			n, base = m, b
		}
	}
	text := strings.ReplaceAll(rest[:n], "_", "")
	if base != 10 {
		text = text[2:]
	}
	v, ok := new(big.Int).SetString(text, base)
	if !ok || n > maxDigits {
		panic(syntaxError(l.line, "a number of %d digits", n))
	}
	l.tokens = append(l.tokens, token{kind: tNumber, text: rest[:n], num: normal(v), line: l.line})
	l.take(n)
}

// floatLen is the length of a float that starts with n digits; 0 where it is none.
func floatLen(s string, n int) int {
	m := n
	if m < len(s) && s[m] == '.' {
		if d := digits(s[m+1:]); d > 0 {
			m += 1 + d
		}
	}
	if m < len(s) && (s[m] == 'e' || s[m] == 'E') {
		e := m + 1
		if e < len(s) && (s[e] == '+' || s[e] == '-') {
			e++
		}
		if d := digits(s[e:]); d > 0 {
			return e + d
		}
	}
	if m > n {
		return m
	}
	return 0
}

// prefixed is the length and base of 0b, 0o and 0x numbers.
func prefixed(s string) (n, base int) {
	if len(s) < 3 {
		return 0, 0
	}
	switch s[1] {
	case 'b', 'B':
		base = 2
	case 'o', 'O':
		base = 8
	case 'x', 'X':
		base = 16
	default:
		return 0, 0
	}
	is := func(c byte) bool {
		d, err := strconv.ParseUint(string(c), 16, 8)
		return err == nil && int(d) < base
	}
	for n = 2; n < len(s) && (is(s[n]) || s[n] == '_' && n+1 < len(s) && is(s[n+1])); n++ {
	}
	if n == 2 {
		return 0, 0
	}
	return n, base
}

func (l *lexer) str(rest string) {
	for i := 1; i < len(rest); i++ {
		switch rest[i] {
		case '\\':
			i++
		case rest[0]:
			s, err := unescape(rest[1:i])
			if err != nil {
				panic(syntaxError(l.line, "%v", err))
			}
			l.add(tString, s)
			l.take(i + 1)
			return
		}
	}
	panic(syntaxError(l.line, "unexpected char %s at %d", quote(rest[:1]), utf8.RuneCountInString(l.src[:l.pos])))
}

// unescape reads Python's escapes. A backslash before a rune beyond ASCII shows that rune's own escape, as in Jinja.
func unescape(s string) (string, error) {
	i := strings.IndexByte(s, '\\')
	if i < 0 {
		return s, nil
	}
	var b strings.Builder
	for i >= 0 {
		b.WriteString(s[:i])
		s = s[i+1:]
		if s == "" {
			return "", fmt.Errorf("\\ at end of string")
		}
		n, err := escape1(&b, s)
		if err != nil {
			return "", err
		}
		s = s[n:]
		i = strings.IndexByte(s, '\\')
	}
	b.WriteString(s)
	return b.String(), nil
}

var escapes = map[byte]string{'\n': "", '\\': "\\", '\'': "'", '"': "\"", 'a': "\a", 'b': "\b", 'f': "\f", 'n': "\n", 'r': "\r", 't': "\t", 'v': "\v"}

// escape1 writes the escape at the start of s, behind its backslash, and gives its length.
func escape1(b *strings.Builder, s string) (int, error) {
	c := s[0]
	if e, ok := escapes[c]; ok {
		b.WriteString(e)
		return 1, nil
	}
	hex := map[byte]int{'x': 2, 'u': 4, 'U': 8}[c]
	switch {
	case hex > 0:
		n := 1
		for n < len(s) && n <= hex && isHex(s[n]) {
			n++
		}
		r, err := strconv.ParseUint(s[1:n], 16, 32)
		if n <= hex || err != nil {
			return 0, fmt.Errorf("truncated \\%c%s escape", c, strings.Repeat("X", hex))
		}
		if r > unicode.MaxRune || r >= 0xD800 && r < 0xE000 {
			return 0, fmt.Errorf("\\%s is no character", s[:n])
		}
		b.WriteRune(rune(r))
		return n, nil
	case c >= '0' && c <= '7':
		n, r := 0, rune(0)
		for n < 3 && n < len(s) && s[n] >= '0' && s[n] <= '7' {
			r = r*8 + rune(s[n]-'0')
			n++
		}
		b.WriteRune(r)
		return n, nil
	case c == 'N':
		return 0, fmt.Errorf("\\N: characters by name are not supported")
	case c >= utf8.RuneSelf:
		r, n := utf8.DecodeRuneInString(s)
		b.WriteString(runeEscape(r))
		return n, nil
	}
	b.WriteByte('\\')
	return 0, nil
}

func isHex(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F'
}
