package jinja

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

var stringMethods map[string]methodFunc

func init() {
	stringMethods = map[string]methodFunc{
		"format":     func(st *state, v Value, a args) Value { return st.format(v.(string), a) },
		"format_map": func(st *state, v Value, a args) Value { return st.formatMap(v.(string), a) },
		"encode": func(*state, Value, args) Value {
			typeError("str.encode is not supported: there are no bytes in a prompt")
			return nil
		},
	}
	def := func(name, spec string, f func(st *state, s string, p []Value) Value) {
		ps := params(spec)
		stringMethods[name] = func(st *state, v Value, a args) Value {
			s, _ := text(v)
			return f(st, s, a.bind(name, ps))
		}
	}
	maps := func(name string, f func(string) string) {
		def(name, "", func(st *state, s string, _ []Value) Value { st.alloc(3 * len(s)); return f(s) })
	}
	is := func(name string, f func(string) bool) {
		def(name, "", func(st *state, s string, _ []Value) Value { st.work(len(s)); return f(st.plain(s)) })
	}
	maps("upper", upper)
	maps("lower", lower)
	maps("title", titled)
	maps("capitalize", capitalized)
	maps("casefold", func(s string) string {
		return lower(strings.NewReplacer("ß", "ss", "ẞ", "ss", "ς", "σ").Replace(s))
	})
	maps("swapcase", func(s string) string {
		var b strings.Builder
		for _, r := range s {
			if isUpperRune(r) {
				b.WriteString(lower(string(r)))
			} else {
				b.WriteString(upper(string(r)))
			}
		}
		return b.String()
	})
	is("isspace", func(s string) bool { return every(s, isSpace) })
	is("isalpha", func(s string) bool { return every(s, unicode.IsLetter) })
	is("isalnum", func(s string) bool { return every(s, isAlnum) })
	is("isdigit", func(s string) bool { return every(s, isDigit) })
	is("isdecimal", func(s string) bool { return every(s, func(r rune) bool { return unicode.Is(unicode.Nd, r) }) })
	is("isnumeric", func(s string) bool { return every(s, isNumeric) })
	is("isascii", func(s string) bool { return s == "" || every(s, func(r rune) bool { return r < utf8.RuneSelf }) })
	is("isprintable", func(s string) bool { return s == "" || every(s, unicode.IsPrint) })
	is("isidentifier", isIdentifier)
	is("istitle", isTitled)
	is("islower", func(s string) bool {
		return cases(s, func(r rune) bool { return isUpperRune(r) || unicode.IsTitle(r) })
	})
	is("isupper", func(s string) bool {
		return cases(s, func(r rune) bool { return isLowerRune(r) || unicode.IsTitle(r) })
	})
	stripping(def)
	splitting(def)
	searching(def)
	padding(def)
}

type definer = func(name, spec string, f func(st *state, s string, p []Value) Value)

func stripping(def definer) {
	for name, side := range map[string][2]bool{"strip": {true, true}, "lstrip": {true, false}, "rstrip": {false, true}} {
		def(name, "chars? /", func(st *state, s string, p []Value) Value {
			none := p[0] == missing || p[0] == nil
			chars := ""
			if !none {
				chars = stringOf(p[0], name+" arg must be None or str")
			}
			return st.trimmed(s, chars, none, side[0], side[1])
		})
	}
	def("removeprefix", "prefix /", func(st *state, s string, p []Value) Value {
		pre := st.plain(stringOf(p[0], "removeprefix() argument"))
		return st.cuts(s, func(p string) [][2]int { return [][2]int{{len(p) - len(strings.TrimPrefix(p, pre)), len(p)}} })[0]
	})
	def("removesuffix", "suffix /", func(st *state, s string, p []Value) Value {
		suf := st.plain(stringOf(p[0], "removesuffix() argument"))
		return st.cuts(s, func(p string) [][2]int { return [][2]int{{0, len(strings.TrimSuffix(p, suf))}} })[0]
	})
}

func stringsList(s []string) *List {
	items := make([]Value, len(s))
	for i, x := range s {
		items[i] = x
	}
	return &List{items}
}

func splitting(def definer) {
	for name, right := range map[string]bool{"split": false, "rsplit": true} {
		def(name, "sep? maxsplit?", func(st *state, s string, p []Value) Value {
			none := p[0] == missing || p[0] == nil
			sep := ""
			if !none {
				sep = stringOf(p[0], name)
			}
			return stringsList(st.split(s, sep, none, intOr(p[1], -1, name), right))
		})
	}
	def("splitlines", "keepends?", func(st *state, s string, p []Value) Value {
		st.work(len(s))
		return stringsList(st.cuts(s, func(t string) [][2]int {
			c := lines(t, truth(or(p[0], false)))
			st.alloc(4 * valueSize * len(c))
			return c
		}))
	})
	for name, right := range map[string]bool{"partition": false, "rpartition": true} {
		def(name, "sep /", func(st *state, s string, p []Value) Value {
			sep := stringOf(p[0], name)
			c := st.split(s, sep, false, 1, right)
			if len(c) == 1 && right {
				return &tuple{items: []Value{"", "", s}}
			} else if len(c) == 1 {
				return &tuple{items: []Value{s, "", ""}}
			}
			return &tuple{items: []Value{c[0], sep, c[1]}}
		})
	}
	def("join", "iterable /", func(st *state, s string, p []Value) Value {
		if !iterable(p[0]) {
			typeError("can only join an iterable")
		}
		var texts []string
		n := 0
		for i, x := range st.list(p[0]) {
			t, ok := text(x)
			if !ok {
				typeError("sequence item %d: expected str instance, %s found", i, typeName(x))
			}
			n += len(t) + len(s)
			st.alloc(len(t) + len(s) + valueSize)
			texts = append(texts, t)
		}
		return strings.Join(texts, s)
	})
}

// window is the part of a plain text between two character positions.
func window(st *state, p string, from, to Value) (string, int, bool) {
	if from == missing && to == missing {
		return p, 0, true
	}
	n := utf8.RuneCountInString(p)
	a, b, _ := bounds(or(from, nil), or(to, nil), nil, n)
	if a > b || from != missing && from != nil && integer(from, "start") > n {
		return "", 0, false
	}
	i := runeOffset(p, a)
	return p[i : i+runeOffset(p[i:], b-a)], a, true
}

func searching(def definer) {
	for name, f := range map[string]func(s, x string) bool{"startswith": strings.HasPrefix, "endswith": strings.HasSuffix} {
		def(name, "prefix start? end? /", func(st *state, s string, p []Value) Value {
			w, _, ok := window(st, st.plain(s), p[1], p[2])
			try := func(x Value, what string) bool {
				t, is := text(x)
				if !is {
					use(x)
					typeError("%s"+what, name, typeName(x))
				}
				return ok && f(w, st.plain(t))
			}
			if t, is := p[0].(*tuple); is {
				for _, x := range t.items {
					if try(x, ": tuple for startswith must only contain str, not %s") {
						return true
					}
				}
				return false
			}
			return try(p[0], " first arg must be str or a tuple of str, not %s")
		})
	}
	find := func(name string, search func(s, x string) int, must bool) {
		def(name, "sub start? end? /", func(st *state, s string, p []Value) Value {
			st.work(len(s))
			sub := st.plain(stringOf(p[0], name))
			w, at, ok := window(st, st.plain(s), p[1], p[2])
			i := -1
			if ok {
				i = search(w, sub)
			}
			if i >= 0 {
				return at + utf8.RuneCountInString(w[:i])
			}
			if must {
				valueError("substring not found")
			}
			return -1
		})
	}
	find("find", strings.Index, false)
	find("index", strings.Index, true)
	find("rfind", strings.LastIndex, false)
	find("rindex", strings.LastIndex, true)
	def("count", "sub start? end? /", func(st *state, s string, p []Value) Value {
		st.work(len(s))
		sub := st.plain(stringOf(p[0], "count"))
		w, _, ok := window(st, st.plain(s), p[1], p[2])
		if !ok {
			return 0
		}
		return strings.Count(w, sub)
	})
	def("replace", "old new count? /", func(st *state, s string, p []Value) Value {
		return st.replace(s, stringOf(p[0], "replace() argument 1"), stringOf(p[1], "replace() argument 2"), intOr(p[2], -1, "replace"))
	})
}

// padded puts s into a field of width characters: '<', '>' or '^'.
func (st *state) padded(s, fill string, width int, align byte) string {
	n, _ := st.length(s)
	if width <= n {
		return s
	}
	pad := width - n
	st.share(pad, len(fill))
	st.alloc(len(s))
	left := 0
	switch align {
	case '>':
		left = pad
	case '^': // as str.center: the odd one goes left where the width is odd
		left = pad/2 + (pad & width & 1)
	case '=':
		left = pad / 2 // as format
	}
	return strings.Repeat(fill, left) + s + strings.Repeat(fill, pad-left)
}

func padding(def definer) {
	for name, align := range map[string]byte{"ljust": '<', "rjust": '>', "center": '^'} {
		def(name, "width fillchar? /", func(st *state, s string, p []Value) Value {
			fill := stringOf(or(p[1], " "), name)
			if utf8.RuneCountInString(fill) != 1 {
				typeError("The fill character must be exactly one character long")
			}
			return st.padded(s, fill, integer(p[0], name), align)
		})
	}
	def("zfill", "width /", func(st *state, s string, p []Value) Value {
		sign := ""
		if s != "" && (s[0] == '+' || s[0] == '-') {
			sign, s = s[:1], s[1:]
		}
		return sign + st.padded(s, "0", integer(p[0], "zfill")-len(sign), '>')
	})
	def("expandtabs", "tabsize?", func(st *state, s string, p []Value) Value {
		size := intOr(p[0], 8, "expandtabs")
		var b strings.Builder
		col := 0
		for _, r := range s {
			switch r {
			case '\t':
				if size > 0 {
					n := size - col%size
					st.alloc(n)
					b.WriteString(strings.Repeat(" ", n))
					col += n
				}
			default:
				if col++; r == '\n' || r == '\r' {
					col = 0
				}
				st.alloc(1)
				b.WriteRune(r)
			}
		}
		return b.String()
	})
	def("translate", "table /", func(st *state, s string, p []Value) Value {
		st.alloc(len(s))
		var b strings.Builder
		for _, r := range s {
			v, ok := st.item(p[0], int(r))
			if !ok {
				b.WriteRune(r)
				continue
			}
			switch v := v.(type) {
			case nil:
			case int:
				b.WriteRune(rune(v))
			default:
				t := stringOf(v, "character mapping must return integer, None or str")
				st.alloc(len(t))
				b.WriteString(t)
			}
		}
		return b.String()
	})
}

// markupMethod calls a method of a Markup: strings among the arguments are escaped, and what comes of it is Markup again.
func markupMethod(st *state, m methodFunc, name string, recv Value, a args) Value {
	b := args{names: a.names}
	switch name {
	case "format", "format_map", "join", "replace", "ljust", "rjust", "center", "strip", "lstrip", "rstrip", "partition", "rpartition":
		for _, v := range a.pos {
			b.pos = append(b.pos, escaped(v))
		}
		for _, v := range a.vals {
			b.vals = append(b.vals, escaped(v))
		}
	default:
		b = a
	}
	var safe func(v Value) Value
	safe = func(v Value) Value {
		switch v := v.(type) {
		case string:
			return markup(v)
		case *List:
			for i, x := range v.Items {
				v.Items[i] = safe(x)
			}
		case *tuple:
			for i, x := range v.items {
				v.items[i] = safe(x)
			}
		}
		return v
	}
	return safe(m(st, string(recv.(markup)), b))
}
