package jinja

import (
	"math"
	"math/big"
	"strconv"
	"strings"
)

// refused are filters of Jinja that this package does not have, and why.
var refused = map[string]string{
	"random": "a prompt depends on its request alone", "pprint": "use tojson", "urlize": "a prompt is not HTML", "wordwrap": "a prompt has no width",
}

type filterFunc = func(st *state, v Value, a args) Value

var filters map[string]filterFunc

// filter registers a filter with its parameters, the filtered value not among them.
func filter(name, spec string, f func(st *state, v Value, p []Value) Value) {
	ps := params(spec)
	filters[name] = func(st *state, v Value, a args) Value {
		st.step(1)
		return f(st, v, a.bind(name, ps))
	}
}

func init() {
	filters = map[string]filterFunc{}
	textFilters()
	numberFilters()
	listFilters()
	seqFilters()
	filter("default", "default_value? boolean?", func(st *state, v Value, p []Value) Value {
		if _, ok := v.(*undefined); ok || truth(or(p[1], false)) && !truth(v) {
			return or(p[0], "")
		}
		return v
	})
	filter("attr", "name", func(st *state, v Value, p []Value) Value {
		name := stringOf(p[0], "attr")
		if x, ok := st.attribute(v, name); ok {
			return x
		}
		return &undefined{obj: v, name: name}
	})
	filter("tojson", "ensure_ascii? indent? separators? sort_keys?", func(st *state, v Value, p []Value) Value { return st.tojson(v, p) })
	filter("fromjson", "", func(st *state, v Value, _ []Value) Value { // not Jinja's: some templates expect their engine to have it
		s, ok := text(v)
		if !ok {
			use(v)
			return v
		}
		st.alloc(8 * len(s))
		x, err := ParseJSON([]byte(st.plain(s)), st.text)
		if err != nil {
			valueError("fromjson: %v", err)
		}
		return x
	})
	filters["d"] = filters["default"]
	filters["e"] = filters["escape"]
	filters["count"] = filters["length"]
}

func textFilters() {
	// on gives a filter of str(v); Markup stays Markup.
	on := func(name, spec string, f func(st *state, s string, p []Value) Value) {
		filter(name, spec, func(st *state, v Value, p []Value) Value {
			r := f(st, str(st, v), p)
			if s, ok := r.(string); ok {
				if _, safe := v.(markup); safe {
					return markup(s)
				}
			}
			return r
		})
	}
	maps := func(name string, f func(string) string) {
		on(name, "", func(st *state, s string, _ []Value) Value { st.alloc(3 * len(s)); return f(s) })
	}
	maps("upper", upper)
	maps("lower", lower)
	maps("capitalize", capitalized)
	maps("title", wordTitles)
	on("trim", "chars?", func(st *state, s string, p []Value) Value {
		if p[0] == missing || p[0] == nil {
			return st.trimmed(s, "", true, true, true)
		}
		return st.trimmed(s, stringOf(p[0], "trim"), false, true, true)
	})
	on("center", "width?", func(st *state, s string, p []Value) Value { return st.padded(s, " ", intOr(p[0], 80, "center"), '^') })
	on("wordcount", "", func(st *state, s string, _ []Value) Value {
		n := 0
		in := false
		for _, r := range st.plain(s) {
			w := r == '_' || isAlnum(r)
			if w && !in {
				n++
			}
			in = w
		}
		return n
	})
	filter("string", "", func(st *state, v Value, _ []Value) Value {
		if m, ok := v.(markup); ok {
			return m
		}
		return str(st, v)
	})
	filter("replace", "old new count?", func(st *state, v Value, p []Value) Value {
		n := -1
		if c := or(p[2], nil); c != nil {
			n = integer(c, "replace")
		}
		return st.replace(str(st, v), str(st, p[0]), str(st, p[1]), n)
	})
	filters["format"] = func(st *state, v Value, a args) Value {
		if len(a.pos) > 0 && len(a.names) > 0 {
			fail("FilterArgumentError", "can't handle positional and keyword arguments at the same time")
		}
		var with Value = &tuple{items: a.pos}
		if len(a.names) > 0 {
			with = st.dictOf(a)
		}
		r, _ := st.sequences("%", soft(st, v), with)
		return r
	}
	filter("indent", "width? first? blank?", func(st *state, v Value, p []Value) Value {
		use(v)
		s, ok := text(v)
		if !ok {
			typeError("unsupported operand type(s) for +=: '%s' and 'str'", typeName(v))
		}
		in := ""
		if w, ok := text(or(p[0], 4)); ok {
			in = w
		} else if n := integer(or(p[0], 4), "indent"); n > 0 {
			st.share(n, 1)
			in = strings.Repeat(" ", n)
		}
		return keepMarkup(v, st.indented(s, in, truth(or(p[1], false)), truth(or(p[2], false))))
	})
	filter("truncate", "length? killwords? end? leeway?", func(st *state, v Value, p []Value) Value {
		s, ok := text(v)
		end := stringOf(or(p[2], "..."), "truncate")
		n, leeway := intOr(p[0], 255, "truncate"), 5
		if l := or(p[3], nil); l != nil {
			leeway = integer(l, "truncate")
		}
		k, _ := st.length(end)
		if n < k || leeway < 0 {
			fail("AssertionError", "expected length >= %d, got %d", k, n)
		}
		size, sized := st.length(v)
		switch {
		case sized && size <= n+leeway:
			return v
		case !ok:
			typeError("truncate: must be str, not %s", typeName(v))
		}
		cut := st.substring(s, 0, n-k, nil)
		if !truth(or(p[1], false)) {
			cut = st.split(cut, " ", false, 1, true)[0]
		}
		return keepMarkup(v, cut+end)
	})
	htmlFilters()
}

func soft(st *state, v Value) Value {
	if m, ok := v.(markup); ok {
		return m
	}
	return str(st, v)
}

func keepMarkup(like Value, s string) Value {
	if _, ok := like.(markup); ok {
		return markup(s)
	}
	return s
}

func (st *state) indented(s, in string, first, blank bool) string {
	var b strings.Builder
	st.alloc(len(s))
	for i, l := range st.cuts(s+"\n", func(p string) [][2]int { return lines(p, false) }) {
		if i > 0 {
			b.WriteByte('\n')
		}
		if i > 0 && (blank || st.plain(l) != "") || i == 0 && first {
			st.alloc(len(in))
			b.WriteString(in)
		}
		b.WriteString(l)
	}
	return b.String()
}

// wordTitles is Jinja's title: words begin behind spaces and opening brackets, too.
func wordTitles(s string) string {
	var b strings.Builder
	start := true
	for _, r := range s {
		sep := isSpace(r) || strings.ContainsRune("-({[<", r)
		switch {
		case sep:
			b.WriteRune(r)
		case start:
			b.WriteString(upper(string(r)))
		default:
			b.WriteString(lower(string(r)))
		}
		start = sep
	}
	return b.String()
}

func htmlFilters() {
	filter("safe", "", func(st *state, v Value, _ []Value) Value { return markup(str(st, v)) })
	filter("escape", "", func(st *state, v Value, _ []Value) Value {
		if m, ok := v.(markup); ok {
			return m
		}
		s := str(st, v)
		st.alloc(6 * len(s))
		return markup(escapeHTML(s))
	})
	filter("forceescape", "", func(st *state, v Value, _ []Value) Value {
		s := str(st, v)
		st.alloc(6 * len(s))
		return markup(escapeHTML(s))
	})
	filter("striptags", "", func(st *state, v Value, _ []Value) Value {
		s := str(st, v)
		st.alloc(len(s))
		for {
			i := strings.Index(s, "<!--")
			if i < 0 {
				break
			}
			j := strings.Index(s[i:], "-->")
			if j < 0 {
				break
			}
			st.alloc(len(s))
			s = s[:i] + s[i+j+3:]
		}
		for {
			i := strings.IndexByte(s, '<')
			if i < 0 {
				break
			}
			j := strings.IndexByte(s[i:], '>')
			if j < 0 {
				break
			}
			st.alloc(len(s))
			s = s[:i] + s[i+j+1:]
		}
		s = strings.Join(strings.FieldsFunc(s, isSpace), " ")
		return unescapeHTML(s)
	})
	filter("xmlattr", "autospace?", func(st *state, v Value, p []Value) Value {
		use(v)
		d, ok := v.(*Dict)
		if !ok {
			fail("AttributeError", "'%s' object has no attribute 'items'", typeName(v))
		}
		var b strings.Builder
		for i, k := range d.keys {
			if _, u := d.vals[i].(*undefined); u || d.vals[i] == nil {
				continue
			}
			key := stringOf(k, "xmlattr")
			if strings.ContainsAny(key, " \t\n\r\f\v/>=") {
				valueError("Invalid character in attribute name: %s", quote(key))
			}
			if b.Len() > 0 || truth(or(p[0], true)) {
				b.WriteByte(' ')
			}
			val := str(st, d.vals[i])
			if _, safe := d.vals[i].(markup); !safe {
				val = escapeHTML(val)
			}
			st.alloc(6*len(key) + len(val))
			b.WriteString(escapeHTML(key) + `="` + val + `"`)
		}
		return b.String()
	})
	filter("urlencode", "", func(st *state, v Value, _ []Value) Value {
		if d, ok := v.(*Dict); ok {
			v = &List{st.pairs(d)}
		}
		if _, ok := text(v); ok || !iterable(v) {
			return urlQuote(st, str(st, v), false)
		}
		var parts []string
		n := 0
		for _, x := range st.list(v) {
			kv := st.unpack(x, 2)
			parts = append(parts, urlQuote(st, str(st, kv[0]), true)+"="+urlQuote(st, str(st, kv[1]), true))
			n += len(parts[len(parts)-1]) + 1
			st.alloc(2 * len(parts[len(parts)-1]))
		}
		return strings.Join(parts, "&")
	})
}

func urlQuote(st *state, s string, query bool) string {
	st.alloc(3 * len(s))
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("_.-~", c) >= 0 || c == '/' && !query:
			b.WriteByte(c)
		case c == ' ' && query:
			b.WriteByte('+')
		default:
			b.WriteString("%" + strings.ToUpper(strconv.FormatUint(uint64(c)|0x100, 16)[1:]))
		}
	}
	return b.String()
}

func numberFilters() {
	filter("abs", "", func(st *state, v Value, _ []Value) Value {
		n, ok := number(v)
		if !ok {
			typeError("bad operand type for abs(): '%s'", typeName(v))
		}
		if c, ok := compareNumbers(n, 0); ok && c < 0 {
			return negate("-", n)
		}
		if f, ok := n.(float64); ok {
			return math.Abs(f)
		}
		return n
	})
	filter("int", "default? base?", func(st *state, v Value, p []Value) Value {
		use(v)
		if s, ok := text(v); ok {
			s = st.plain(s)
			st.work(len(s))
			if n, ok := parseInt(s, intOr(p[1], 10, "int")); ok {
				return n
			}
			if f, ok := parseFloat(s); ok && f == f && !math.IsInf(f, 0) {
				return floatInt(f)
			}
			return or(p[0], 0)
		}
		switch n, _ := number(v); n := n.(type) {
		case int, *big.Int:
			return n
		case float64:
			if f := n; f == f && !math.IsInf(f, 0) {
				return floatInt(f)
			} else if math.IsInf(f, 0) {
				fail("OverflowError", "cannot convert float infinity to integer")
			}
		}
		return or(p[0], 0)
	})
	filter("float", "default?", func(st *state, v Value, p []Value) Value {
		use(v)
		if s, ok := text(v); ok {
			if f, ok := parseFloat(st.plain(s)); ok {
				return f
			}
		} else if n, ok := number(v); ok {
			return toFloat(n)
		}
		return or(p[0], 0.0)
	})
	filter("round", "precision? method?", func(st *state, v Value, p []Value) Value {
		method := str(st, or(p[1], "common"))
		if method != "common" && method != "ceil" && method != "floor" {
			fail("FilterArgumentError", "method must be common, ceil or floor")
		}
		use(v)
		n, ok := number(v)
		if !ok {
			typeError("type %s doesn't define __round__ method", typeName(v))
		}
		return round(n, intOr(p[0], 0, "round"), method)
	})
	filter("filesizeformat", "binary?", func(st *state, v Value, p []Value) Value {
		use(v)
		n, ok := number(v)
		f := 0.0
		if ok {
			f = toFloat(n)
		} else if f, ok = parseFloat(str(st, v)); !ok {
			valueError("could not convert string to float: %s", repr(st, v))
		}
		base, units := 1000.0, "kB MB GB TB PB EB ZB YB"
		if truth(or(p[0], false)) {
			base, units = 1024, "KiB MiB GiB TiB PiB EiB ZiB YiB"
		}
		switch {
		case f == 1:
			return "1 Byte"
		case f < base:
			return str(st, floatInt(f)) + " Bytes"
		}
		unit := base
		name := ""
		for u := range strings.FieldsSeq(units) {
			name = u
			if unit *= base; f < unit {
				break
			}
		}
		return strconv.FormatFloat(base*f/unit, 'f', 1, 64) + " " + name
	})
}

func round(n Value, prec int, method string) Value {
	f, isFloat := n.(float64)
	if !isFloat && method == "common" {
		if prec >= 0 {
			return n
		}
		p := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(min(-prec, maxDigits))), nil)
		q, m := new(big.Int).DivMod(toBig(n), p, new(big.Int))
		if c := new(big.Int).Lsh(m, 1).Cmp(p); c > 0 || c == 0 && q.Bit(0) == 1 {
			q.Add(q, big.NewInt(1))
		}
		return normal(q.Mul(q, p))
	}
	if !isFloat {
		f = toFloat(n)
	}
	if method != "common" {
		scale := math.Pow(10, float64(prec))
		f *= scale
		if method == "ceil" {
			f = math.Ceil(f)
		} else {
			f = math.Floor(f)
		}
		return f / scale
	}
	if f != f || math.IsInf(f, 0) || prec > 330 {
		return f
	}
	if prec < 0 {
		p := math.Pow(10, float64(-prec))
		return math.RoundToEven(f/p) * p
	}
	r, _ := strconv.ParseFloat(strconv.FormatFloat(f, 'f', prec, 64), 64)
	return r
}

func parseFloat(s string) (float64, bool) {
	s = strings.TrimFunc(s, isSpace)
	l := strings.ToLower(strings.TrimLeft(s, "+-"))
	if strings.ContainsAny(l, "xp") || strings.Contains(l, "__") || strings.HasPrefix(l, "_") || strings.HasSuffix(l, "_") {
		return 0, false
	}
	f, err := strconv.ParseFloat(strings.ReplaceAll(s, "_", ""), 64)
	if err != nil && !math.IsInf(f, 0) {
		return 0, false
	}
	return f, true
}

// parseInt is int(s, base).
func parseInt(s string, base int) (Value, bool) {
	s = strings.TrimFunc(s, isSpace)
	sign := ""
	if s != "" && (s[0] == '-' || s[0] == '+') {
		if s[0] == '-' {
			sign = "-"
		}
		s = s[1:]
	}
	if base == 0 || base == 2 || base == 8 || base == 16 {
		low := strings.ToLower(s)
		for b, p := range map[int]string{2: "0b", 8: "0o", 16: "0x"} {
			if strings.HasPrefix(low, p) && (base == 0 || base == b) {
				s, base = strings.TrimPrefix(s[2:], "_"), b
				break
			}
		}
		if base == 0 {
			if base = 10; len(s) > 1 && s[0] == '0' && strings.Trim(s, "0_") != "" {
				return nil, false
			}
		}
	}
	if base < 2 || base > 36 || s == "" || s[0] == '_' || strings.HasSuffix(s, "_") || strings.Contains(s, "__") || len(s) > maxDigits || s[0] == '+' || s[0] == '-' {
		return nil, false
	}
	n, ok := new(big.Int).SetString(sign+strings.ReplaceAll(s, "_", ""), base)
	if !ok {
		return nil, false
	}
	return normal(n), true
}
