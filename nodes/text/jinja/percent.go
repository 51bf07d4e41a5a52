package jinja

import (
	"strings"
	"unicode/utf8"
)

// percent is s % v.
func (st *state) percent(s string, v Value) string {
	items := []Value{v}
	t, isTuple := v.(*tuple)
	if isTuple {
		items = t.items
	}
	d, isDict := v.(*Dict)
	at := 0
	next := func() Value {
		if at == len(items) {
			typeError("not enough arguments for format string")
		}
		at++
		return items[at-1]
	}
	var b strings.Builder
	add := func(x string) {
		st.alloc(len(x))
		b.WriteString(x)
	}
	for {
		i := strings.IndexByte(s, '%')
		if i < 0 {
			add(s)
			break
		}
		add(s[:i])
		s = s[i+1:]
		sp := spec{prec: -1, percents: true}
		get := next
		if strings.HasPrefix(s, "(") {
			end := strings.IndexByte(s, ')')
			if end < 0 {
				valueError("incomplete format key")
			}
			if !isDict {
				typeError("format requires a mapping")
			}
			x, ok := d.Get(s[1:end])
			if !ok {
				fail("KeyError", "%s", quote(s[1:end]))
			}
			get = func() Value { return x }
			s = s[end+1:]
		}
		s = st.percentSpec(s, &sp, next)
		if s == "" {
			valueError("incomplete format")
		}
		c := s[0]
		s = s[1:]
		if c == '%' {
			add("%")
			continue
		}
		add(st.percentOne(c, sp, get()))
	}
	if at < len(items) && (isTuple || !subscriptable(v)) {
		typeError("not all arguments converted during string formatting")
	}
	return b.String()
}

// subscriptable are values that Python takes for a mapping here: nobody asks whether all of one was used.
func subscriptable(v Value) bool {
	switch v.(type) {
	case *List, *Dict, rangeOf, *undefined:
		return true
	}
	return false
}

func (st *state) percentSpec(s string, sp *spec, next func() Value) string {
	for s != "" && strings.IndexByte("-+ #0", s[0]) >= 0 {
		switch s[0] {
		case '-':
			sp.align = '<'
		case '+':
			sp.sign = '+'
		case ' ':
			if sp.sign == 0 {
				sp.sign = ' '
			}
		case '#':
			sp.alt = true
		case '0':
			sp.zero = true
		}
		s = s[1:]
	}
	num := func() int {
		if strings.HasPrefix(s, "*") {
			s = s[1:]
			return integer(next(), "* wants int")
		}
		n := 0
		for s != "" && s[0] >= '0' && s[0] <= '9' {
			if n = n*10 + int(s[0]-'0'); n > 1<<30 {
				valueError("width too big")
			}
			s = s[1:]
		}
		return n
	}
	if sp.width = num(); sp.width < 0 {
		sp.width, sp.align = -sp.width, '<'
	}
	if strings.HasPrefix(s, ".") {
		s = s[1:]
		sp.prec = max(num(), 0)
	}
	for s != "" && strings.IndexByte("hlL", s[0]) >= 0 {
		s = s[1:]
	}
	if sp.align == '<' {
		sp.zero = false
	}
	return s
}

func (st *state) percentOne(c byte, sp spec, v Value) string {
	sp.typ = c
	n, isNum := number(v)
	f, isFloat := n.(float64)
	switch c {
	case 's', 'r', 'a':
		t := ""
		if c == 's' {
			t = str(st, v)
		} else {
			t = repr(st, v)
		}
		if sp.prec >= 0 {
			t = t[:runeOffset(t, sp.prec)]
		}
		sp.zero = false
		if sp.align == 0 {
			sp.align = '>'
		}
		return st.aligned(t, sp)
	case 'c':
		t, ok := text(v)
		if ok && utf8.RuneCountInString(t) != 1 || !ok && (!isNum || isFloat) {
			typeError("%%c requires int or char")
		}
		if !ok {
			t = string(rune(integer(n, "%c")))
		}
		return st.field(sp, false, "", t)
	case 'd', 'i', 'u':
		use(v)
		if !isNum {
			typeError("%%%c format: a real number is required, not %s", c, typeName(v))
		}
		if isFloat {
			n = floatInt(f)
		}
		sp.typ = 'd'
		return st.formatInt(toBig(n), sp)
	case 'o', 'x', 'X':
		use(v)
		if !isNum || isFloat {
			typeError("%%%c format: an integer is required, not %s", c, typeName(v))
		}
		return st.formatInt(toBig(n), sp)
	case 'e', 'E', 'f', 'F', 'g', 'G':
		use(v)
		if !isNum {
			typeError("must be real number, not %s", typeName(v))
		}
		if !isFloat {
			f = toFloat(n)
		}
		return st.formatFloat(f, sp)
	}
	valueError("unsupported format character '%c' (0x%x)", c, c)
	return ""
}
