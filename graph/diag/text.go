package diag

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Limit is how many findings Text prints; the rest is a count.
const Limit = 20

// ReadFunc returns the bytes of a file that a Pos names. It may fail: the finding is then shown without its source line.
type ReadFunc func(file string) ([]byte, error)

const (
	tabWidth  = 4
	lineWidth = 160 // columns of a source line; a longer one is shown around the caret
)

// Text writes list for people: place, message and code, the source line with a caret, the way out, notes and second places. At most Limit
// findings are written, then how many are left; nothing for an empty list. read may be nil. color adds ANSI colours.
func Text(w io.Writer, list List, read ReadFunc, color bool) error {
	list, mask := list.hide()
	t := &text{read: read, color: color, mask: mask, files: map[string][]string{}}
	for i, d := range list {
		if i == Limit {
			t.b.WriteString(fmt.Sprintf("… and %s\n", plural(len(list)-Limit, "more finding")))
			break
		}
		t.finding(d)
	}
	_, err := io.WriteString(w, t.b.String())
	return err
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

type text struct {
	b     strings.Builder
	read  ReadFunc
	color bool
	mask  func(string) string // takes secrets out of source lines
	files map[string][]string // lines
}

// The styles, as ANSI parameters.
const (
	bold  = "1"
	faint = "2"
	green = "32"
)

var severityStyle = map[Severity]string{Error: "1;31", Warning: "1;33", Note: "1;36"}

func (t *text) style(ansi, s string) string {
	if !t.color || s == "" {
		return s
	}
	return "\x1b[" + ansi + "m" + s + "\x1b[0m"
}

func (t *text) finding(d Diagnostic) {
	t.head(d.Pos, d.Severity, d.Msg, d.Code)
	if !t.source(d.Pos, d.Len, severityStyle[d.Severity], d.Hint) && d.Hint != "" {
		fmt.Fprintf(&t.b, "  = %s\n", t.style(green, printable(d.Hint)))
	}
	for _, r := range d.Related {
		t.head(r.Pos, Note, r.Msg, "")
		t.source(r.Pos, r.Len, severityStyle[Note], "")
	}
	for _, n := range d.Notes {
		fmt.Fprintf(&t.b, "  = %s\n", printable(n))
	}
}

func (t *text) head(p Pos, s Severity, msg, code string) {
	if at := p.String(); at != "" {
		t.b.WriteString(t.style(bold, printable(at)+":") + " ")
	}
	t.b.WriteString(t.style(severityStyle[s], s.String()+":") + " " + printable(msg))
	if code != "" {
		t.b.WriteString(" " + t.style(faint, "["+code+"]"))
	}
	t.b.WriteByte('\n')
}

// source writes the line at p with a caret and the hint behind it. It reports whether there was one.
func (t *text) source(p Pos, n int, ansi, hint string) bool {
	line, ok := t.line(p)
	if !ok {
		return false
	}
	start := min(max(p.Col-1, 0), len(line))
	if n <= 0 {
		n = wordLen(line[start:])
	}
	end := min(start+n, len(line))
	for start > 0 && start < len(line) && !utf8.RuneStart(line[start]) { // never within a letter
		start--
	}
	for end < len(line) && !utf8.RuneStart(line[end]) {
		end++
	}
	line, start, end = window(line, start, end)
	before, under, rest := expand(line[:start], 0), "", ""
	under = expand(line[start:end], columns(before))
	rest = expand(line[end:], columns(before)+columns(under))
	number := strconv.Itoa(p.Line)
	pad := strings.Repeat(" ", len(number))
	fmt.Fprintf(&t.b, "  %s %s\n", t.style(faint, number+" |"), before+under+rest)
	caret := strings.Repeat("^", max(1, columns(under)))
	fmt.Fprintf(&t.b, "  %s %s%s", t.style(faint, pad+" |"), strings.Repeat(" ", columns(before)), t.style(ansi, caret))
	if hint != "" {
		t.b.WriteString(" " + t.style(green, printable(hint)))
	}
	t.b.WriteByte('\n')
	return true
}

// line returns one line of a file.
func (t *text) line(p Pos) (string, bool) {
	if !p.IsValid() || p.File == "" || t.read == nil {
		return "", false
	}
	lines, ok := t.files[p.File]
	if !ok {
		if b, err := t.read(p.File); err == nil {
			lines = strings.Split(t.mask(string(b)), "\n")
		}
		t.files[p.File] = lines
	}
	if p.Line > len(lines) {
		return "", false
	}
	return strings.TrimSuffix(lines[p.Line-1], "\r"), true
}

// wordLen is what to underline where a finding does not say: the text or word at the start of s.
func wordLen(s string) int {
	if s == "" {
		return 1
	}
	if s[0] == '"' {
		for i := 1; i < len(s); i++ {
			if s[i] == '\\' {
				i++
			} else if s[i] == '"' {
				return i + 1
			}
		}
	}
	n := strings.IndexFunc(s, func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("_$#-.", r)
	})
	if n < 0 {
		n = len(s)
	}
	return max(n, 1)
}

// window cuts a long line to the part around [start, end).
func window(line string, start, end int) (string, int, int) {
	if len(line) <= lineWidth {
		return line, start, end
	}
	const mark = "…"
	from := max(0, start-lineWidth/3)
	to := min(len(line), from+lineWidth)
	for from > 0 && !utf8.RuneStart(line[from]) {
		from--
	}
	for to < len(line) && !utf8.RuneStart(line[to]) {
		to++
	}
	out, shift := line[from:to], from
	if from > 0 {
		out, shift = mark+out, from-len(mark)
	}
	start, end = start-shift, min(end-shift, len(out))
	if to < len(line) {
		out += mark
	}
	return out, start, end
}

// expand writes tabs as spaces and replaces what a terminal would act on. at is the column in which s starts.
func expand(s string, at int) string {
	var b strings.Builder
	for _, r := range s {
		switch {
		case r == '\t':
			n := tabWidth - at%tabWidth
			b.WriteString(strings.Repeat(" ", n))
			at += n
			continue
		case !shown(r):
			r = '�'
		}
		b.WriteRune(r)
		at += width(r)
	}
	return b.String()
}

// printable makes one line of s without what a terminal would act on.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if r == '\n' || r == '\t' || r == '\r' {
			return ' '
		}
		if !shown(r) {
			return '�'
		}
		return r
	}, s)
}

// shown reports whether r may reach a terminal: no control, no change of writing direction.
func shown(r rune) bool {
	return !unicode.IsControl(r) && !unicode.In(r, unicode.Bidi_Control, unicode.Zl, unicode.Zp) && r != utf8.RuneError
}

// columns is how many columns of a terminal s takes.
func columns(s string) int {
	n := 0
	for _, r := range s {
		n += width(r)
	}
	return n
}

// width is how many columns r takes: 0 for marks that combine, 2 for wide scripts and pictures, else 1.
func width(r rune) int {
	switch {
	case r < 0x300:
		return 1
	case unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf):
		return 0
	case r >= 0x1100 && r <= 0x115f, r >= 0x2e80 && r <= 0xa4cf && r != 0x303f, r >= 0xac00 && r <= 0xd7a3, r >= 0xf900 && r <= 0xfaff,
		r >= 0xfe30 && r <= 0xfe6f, r >= 0xff00 && r <= 0xff60, r >= 0xffe0 && r <= 0xffe6, r >= 0x1f300 && r <= 0x1faff,
		r >= 0x20000 && r <= 0x3fffd:
		return 2
	}
	return 1
}
