package jinja

import (
	"math"
	"math/big"
	"strconv"
	"strings"
	"unicode/utf8"
)

// spec is a format specification: of str.format and of %.
type spec struct {
	fill     string
	align    byte // 0: the type's own
	sign     byte // '-', '+', ' '
	alt      bool
	zero     bool
	width    int
	comma    byte // ',' or '_'
	prec     int  // -1: none
	typ      byte
	percents bool // of %
}

// field formats a number's digits with sign, grouping and width.
func (st *state) field(sp spec, neg bool, prefix, digits string) string {
	sign := ""
	switch {
	case neg:
		sign = "-"
	case sp.sign == '+' || sp.sign == ' ':
		sign = string(sp.sign)
	}
	sign += prefix
	if sp.fill == "" && sp.zero {
		sp.fill = "0"
		if sp.align == 0 {
			sp.align = '='
		}
	}
	if sp.fill == "" {
		sp.fill = " "
	}
	if sp.comma != 0 {
		whole, frac := digits, ""
		if i := strings.IndexAny(digits, ".e%"); i >= 0 && sp.typ != 'x' && sp.typ != 'X' {
			whole, frac = digits[:i], digits[i:]
		}
		size := 3
		if strings.IndexByte("box X", sp.typ) >= 0 && sp.typ != ' ' {
			size = 4
		}
		if sp.align == '=' && sp.fill == "0" {
			for want := sp.width - len(sign) - len(frac); len(group(whole, size, sp.comma)) < want; {
				st.alloc(1)
				if g := group("0"+whole, size, sp.comma); len(g) > want {
					break
				}
				whole = "0" + whole
			}
		}
		digits = group(whole, size, sp.comma) + frac
	}
	if sp.align == '=' {
		return sign + st.padded(digits, sp.fill, sp.width-utf8.RuneCountInString(sign), '>')
	}
	if sp.align == 0 {
		sp.align = '>'
	}
	return st.aligned(sign+digits, sp)
}

func (st *state) aligned(s string, sp spec) string {
	fill := sp.fill
	if fill == "" {
		if fill = " "; sp.zero {
			fill = "0"
		}
	}
	if sp.align == '^' {
		return st.padded(s, fill, sp.width, '=')
	}
	return st.padded(s, fill, sp.width, sp.align)
}

func group(s string, size int, sep byte) string {
	if len(s) <= size {
		return s
	}
	var b strings.Builder
	first := len(s) % size
	b.WriteString(s[:first])
	for i := first; i < len(s); i += size {
		if i > 0 {
			b.WriteByte(sep)
		}
		b.WriteString(s[i : i+size])
	}
	return b.String()
}

func (st *state) formatInt(n *big.Int, sp spec) string {
	base, prefix := 10, ""
	switch sp.typ {
	case 'b':
		base, prefix = 2, "0b"
	case 'o':
		base, prefix = 8, "0o"
	case 'x':
		base, prefix = 16, "0x"
	case 'X':
		base, prefix = 16, "0X"
	}
	if !sp.alt {
		prefix = ""
	}
	s := new(big.Int).Abs(n).Text(base)
	if sp.typ == 'X' {
		s = strings.ToUpper(s)
	}
	if sp.percents && sp.prec > len(s) {
		st.share(sp.prec, 1)
		s = strings.Repeat("0", sp.prec-len(s)) + s
	}
	st.alloc(len(s))
	return st.field(sp, n.Sign() < 0, prefix, s)
}

func (st *state) formatFloat(f float64, sp spec) string {
	neg := math.Signbit(f) && f == f
	f = math.Abs(f)
	prec, typ := sp.prec, sp.typ
	if prec > 10_000 {
		limit("a precision of more than 10000 digits")
	}
	percent := typ == '%'
	if percent {
		f, typ = f*100, 'f'
	}
	upper := typ == 'F' || typ == 'E' || typ == 'G'
	if upper {
		typ += 'a' - 'A'
	}
	var s string
	switch {
	case math.IsInf(f, 0) || f != f:
		s = floatText(f)
		if sp.zero && sp.percents {
			sp.zero = false
		}
	case typ == 0 && prec < 0:
		s = floatText(f)
	case typ == 'g' || typ == 0 || typ == 'n':
		s = general(f, prec, typ == 0, sp.alt)
	default:
		if prec < 0 {
			prec = 6
		}
		s = strconv.FormatFloat(f, typ, prec, 64)
		if sp.alt && prec == 0 {
			s = strings.Replace(s+".", "e", ".e", 1)
		}
	}
	if upper {
		s = strings.ToUpper(s)
	}
	if percent {
		s += "%"
	}
	return st.field(sp, neg, "", s)
}

// general is Python's 'g'; plain is the type that is left out: it keeps a digit behind the point.
func general(f float64, prec int, plain, alt bool) string {
	if prec < 0 {
		prec = 6
	}
	prec = max(prec, 1)
	s := strconv.FormatFloat(f, 'e', prec-1, 64)
	i := strings.IndexByte(s, 'e')
	exp, _ := strconv.Atoi(s[i+1:])
	limit := prec
	if plain {
		limit = prec - 1 // one digit behind the point
	}
	if exp < -4 || exp >= max(limit, 1) && (exp >= prec || plain) {
		m := s[:i]
		if !alt && strings.Contains(m, ".") {
			m = strings.TrimRight(strings.TrimRight(m, "0"), ".")
		}
		return m + s[i:]
	}
	s = strconv.FormatFloat(f, 'f', max(prec-1-exp, 0), 64)
	if !alt && strings.Contains(s, ".") {
		s = strings.TrimRight(strings.TrimRight(s, "0"), ".")
	}
	if plain && !strings.Contains(s, ".") {
		s += ".0"
	}
	return s
}

// formatValue is format(v, spec).
func (st *state) formatValue(v Value, how string) string {
	if how == "" {
		return str(st, v)
	}
	sp := parseSpec(how)
	n, isNum := number(v)
	_, isBool := v.(bool)
	switch {
	case isNum && !(isBool && sp.typ == 's'):
		f, isFloat := n.(float64)
		switch {
		case sp.typ == 0 && !isFloat, strings.IndexByte("bdoxXn", sp.typ) >= 0 && sp.typ != 0 && !isFloat:
			if sp.prec >= 0 {
				valueError("Precision not allowed in integer format specifier")
			}
			return st.formatInt(toBig(n), sp)
		case sp.typ == 'c' && !isFloat:
			return st.field(sp, false, "", string(rune(integer(n, "format"))))
		case sp.typ == 0 || strings.IndexByte("eEfFgGn%", sp.typ) >= 0:
			if !isFloat {
				f = toFloat(n)
			}
			return st.formatFloat(f, sp)
		}
	case sp.typ == 0 || sp.typ == 's':
		s, ok := text(v)
		if !ok {
			typeError("unsupported format string passed to %s.__format__", typeName(v))
		}
		if sp.align == '=' {
			valueError("'=' alignment not allowed in string format specifier")
		}
		if sp.sign != 0 {
			valueError("Sign not allowed in string format specifier")
		}
		if sp.prec >= 0 {
			s = s[:runeOffset(s, sp.prec)]
		}
		if sp.align == 0 {
			sp.align = '<'
		}
		return st.aligned(s, sp)
	}
	valueError("Unknown format code '%c' for object of type '%s'", sp.typ, typeName(v))
	return ""
}

func parseSpec(s string) spec {
	sp := spec{prec: -1}
	bad := func() { valueError("Invalid format specifier") }
	if _, n := utf8.DecodeRuneInString(s); len(s) > n && strings.IndexByte("<>=^", s[n]) >= 0 {
		sp.fill, sp.align = s[:n], s[n]
		s = s[n+1:]
	} else if strings.IndexByte("<>=^", s[0]) >= 0 {
		sp.align = s[0]
		s = s[1:]
	}
	take := func(set string) byte {
		if s != "" && strings.IndexByte(set, s[0]) >= 0 {
			c := s[0]
			s = s[1:]
			return c
		}
		return 0
	}
	num := func() int {
		n := 0
		for s != "" && s[0] >= '0' && s[0] <= '9' {
			if n = n*10 + int(s[0]-'0'); n > 1<<30 {
				valueError("Too many decimal digits in format string")
			}
			s = s[1:]
		}
		return n
	}
	sp.sign = take("+- ")
	take("z")
	sp.alt = take("#") != 0
	sp.zero = take("0") != 0
	sp.width = num()
	sp.comma = take(",_")
	if take(".") != 0 {
		if s == "" || s[0] < '0' || s[0] > '9' {
			valueError("Format specifier missing precision")
		}
		sp.prec = num()
	}
	if len(s) > 1 {
		bad()
	}
	if s != "" {
		sp.typ = s[0]
	}
	return sp
}

// floatInt is int(f).
func floatInt(f float64) Value {
	switch {
	case f != f:
		valueError("cannot convert float NaN to integer")
	case math.IsInf(f, 0):
		fail("OverflowError", "cannot convert float infinity to integer")
	}
	b, _ := big.NewFloat(f).Int(nil)
	return normal(b)
}

// format is s.format(*args, **kwargs).
func (st *state) format(s string, a args) string {
	kw := NewDict(len(a.names))
	for i, n := range a.names {
		kw.put(n, a.vals[i])
	}
	auto := 0
	return st.formatFields(s, a.pos, kw, &auto, 2)
}

func (st *state) formatMap(s string, a args) string {
	if len(a.names) > 0 {
		typeError("format_map() takes no keyword arguments")
	}
	if len(a.pos) != 1 {
		typeError("format_map() takes exactly one argument (%d given)", len(a.pos))
	}
	d, ok := a.pos[0].(*Dict)
	if !ok {
		typeError("format_map() takes a mapping")
	}
	auto := 0
	return st.formatFields(s, nil, d, &auto, 2)
}

func (st *state) formatFields(s string, pos []Value, kw *Dict, auto *int, depth int) string {
	if depth == 0 {
		valueError("Max string recursion exceeded")
	}
	var b strings.Builder
	add := func(x string) {
		st.alloc(len(x))
		b.WriteString(x)
	}
	for s != "" {
		i := strings.IndexAny(s, "{}")
		if i < 0 {
			add(s)
			break
		}
		add(s[:i])
		c := s[i]
		if s = s[i+1:]; s != "" && s[0] == c {
			add(string(c))
			s = s[1:]
			continue
		}
		if c == '}' {
			valueError("Single '}' encountered in format string")
		}
		level, j := 1, 0
		for ; j < len(s) && level > 0; j++ {
			switch s[j] {
			case '{':
				level++
			case '}':
				level--
			}
		}
		if level > 0 {
			if s == "" {
				valueError("Single '{' encountered in format string")
			}
			valueError("expected '}' before end of string")
		}
		add(st.formatField(s[:j-1], pos, kw, auto, depth))
		s = s[j:]
	}
	return b.String()
}

func (st *state) formatField(f string, pos []Value, kw *Dict, auto *int, depth int) string {
	name, rest := f, ""
	bracket := false
	for i := 0; i < len(f); i++ {
		if f[i] == '[' {
			bracket = true
		} else if f[i] == ']' {
			bracket = false
		} else if !bracket && (f[i] == ':' || f[i] == '!') {
			name, rest = f[:i], f[i:]
			break
		}
	}
	conv := byte(0)
	if strings.HasPrefix(rest, "!") {
		if len(rest) < 2 {
			valueError("end of string while looking for conversion specifier")
		}
		conv, rest = rest[1], rest[2:]
		if rest != "" && rest[0] != ':' {
			valueError("expected ':' after conversion specifier")
		}
	}
	v := st.formatName(name, pos, kw, auto)
	sub := strings.TrimPrefix(rest, ":")
	if strings.ContainsAny(sub, "{}") {
		sub = st.formatFields(sub, pos, kw, auto, depth-1)
	}
	switch conv {
	case 0:
	case 's':
		v = str(st, v)
	case 'r', 'a':
		v = repr(st, v)
	default:
		valueError("Unknown conversion specifier %c", conv)
	}
	return st.formatValue(v, sub)
}

// formatName finds "0.name[key]".
func (st *state) formatName(name string, pos []Value, kw *Dict, auto *int) Value {
	end := strings.IndexAny(name, ".[")
	if end < 0 {
		end = len(name)
	}
	first, rest := name[:end], name[end:]
	var v Value
	n, err := strconv.Atoi(first)
	switch {
	case first == "" && rest != "":
		fail("KeyError", "''") // the sandbox's formatter numbers bare fields alone
	case first == "" || err == nil:
		if first == "" {
			if *auto < 0 {
				valueError("cannot switch from manual field specification to automatic field numbering")
			}
			n = *auto
			*auto++
		} else if *auto > 0 {
			valueError("cannot switch from manual field specification to automatic field numbering")
		} else {
			*auto = -1
		}
		if n < 0 || n >= len(pos) {
			fail("IndexError", "tuple index out of range")
		}
		v = pos[n]
	default:
		i := kw.findString(first)
		if i < 0 {
			fail("KeyError", "%s", quote(first))
		}
		v = kw.vals[i]
	}
	for rest != "" {
		if rest[0] == '.' {
			end := strings.IndexAny(rest[1:], ".[") + 1
			if end == 0 {
				end = len(rest)
			}
			if end == 1 {
				valueError("Empty attribute in format string")
			}
			v = st.getattr(v, rest[1:end])
			rest = rest[end:]
			continue
		}
		end := strings.IndexByte(rest, ']')
		if rest[0] != '[' || end < 2 {
			valueError("Empty attribute in format string")
		}
		var key Value = rest[1:end]
		if n, err := strconv.Atoi(rest[1:end]); err == nil {
			key = n
		}
		v = st.getitem(v, key)
		rest = rest[end+1:]
	}
	return v
}
