package jinja

import (
	"math"
	"math/big"
	"math/bits"
	"strings"
)

// number brings bools to ints; ok is false for what is no number.
func number(v Value) (Value, bool) {
	switch v := v.(type) {
	case bool:
		if v {
			return 1, true
		}
		return 0, true
	case int, float64, *big.Int:
		return v, true
	}
	return nil, false
}

func toBig(v Value) *big.Int {
	switch v := v.(type) {
	case int:
		return big.NewInt(int64(v))
	case *big.Int:
		return v
	}
	return nil
}

func toFloat(v Value) float64 {
	switch v := v.(type) {
	case int:
		return float64(v)
	case float64:
		return v
	case *big.Int:
		f, _ := new(big.Float).SetInt(v).Float64()
		if math.IsInf(f, 0) {
			fail("OverflowError", "int too large to convert to float")
		}
		return f
	}
	return 0
}

// text gives the string of a str or Markup.
func text(v Value) (string, bool) {
	switch v := v.(type) {
	case string:
		return v, true
	case markup:
		return string(v), true
	}
	return "", false
}

// binary is l op r for arithmetic operators.
func (st *state) binary(op string, l, r Value) Value {
	if a, ok := l.(int); ok { // the usual cases
		if b, ok := r.(int); ok {
			if v, ok := smallInt(op, a, b); ok {
				return v
			}
		}
	}
	if a, ok := l.(string); ok && op == "+" {
		if b, ok := r.(string); ok {
			st.alloc(len(a) + len(b))
			return a + b
		}
	}
	if a, ok := number(l); ok {
		if b, ok := number(r); ok {
			return st.arithmetic(op, a, b)
		}
	}
	if v, ok := st.sequences(op, l, r); ok {
		return v
	}
	for _, v := range []Value{l, r} {
		if u, ok := v.(*undefined); ok {
			u.raise()
		}
	}
	if op == "+" {
		switch l.(type) {
		case string, markup:
			typeError(`can only concatenate str (not "%s") to str`, typeName(r))
		case *List, *tuple:
			typeError(`can only concatenate %s (not "%s") to %[1]s`, typeName(l), typeName(r))
		}
	}
	if op == "*" && (isSequence(l) || isSequence(r)) {
		other := l
		if isSequence(l) {
			other = r
		}
		typeError("can't multiply sequence by non-int of type '%s'", typeName(other))
	}
	if op == "**" {
		op = "** or pow()"
	}
	typeError("unsupported operand type(s) for %s: '%s' and '%s'", op, typeName(l), typeName(r))
	return nil
}

func isSequence(v Value) bool {
	switch v.(type) {
	case string, markup, *List, *tuple:
		return true
	}
	return false
}

func smallInt(op string, a, b int) (Value, bool) {
	switch op {
	case "+":
		c := a + b
		return c, (c > a) == (b > 0)
	case "-":
		c := a - b
		return c, (c < a) == (b > 0)
	case "*":
		hi, lo := bits.Mul64(uint64(max(a, -a)), uint64(max(b, -b)))
		return a * b, hi == 0 && lo < 1<<63 && a != math.MinInt && b != math.MinInt
	case "//", "%":
		if b == 0 || b == -1 {
			return nil, false
		}
		q, m := a/b, a%b
		if m != 0 && (m < 0) != (b < 0) {
			q, m = q-1, m+b
		}
		if op == "%" {
			return m, true
		}
		return q, true
	}
	return nil, false
}

func (st *state) arithmetic(op string, l, r Value) Value {
	_, lf := l.(float64)
	_, rf := r.(float64)
	if lf || rf || op == "/" {
		if op == "/" && !lf && !rf {
			b := toBig(r)
			if b.Sign() == 0 {
				fail("ZeroDivisionError", "division by zero")
			}
			if l == Value(0) && b.Sign() < 0 {
				return math.Copysign(0, -1)
			}
			f, _ := new(big.Rat).SetFrac(toBig(l), b).Float64()
			if math.IsInf(f, 0) {
				fail("OverflowError", "integer division result too large for a float")
			}
			return f
		}
		return floats(op, toFloat(l), toFloat(r))
	}
	a, b := toBig(l), toBig(r)
	z := new(big.Int)
	switch op {
	case "+":
		z.Add(a, b)
	case "-":
		z.Sub(a, b)
	case "*":
		z.Mul(a, b)
	case "//", "%":
		if b.Sign() == 0 {
			if op == "%" {
				fail("ZeroDivisionError", "integer modulo by zero")
			}
			fail("ZeroDivisionError", "integer division or modulo by zero")
		}
		m := new(big.Int)
		z.QuoRem(a, b, m)
		if m.Sign() != 0 && m.Sign() != b.Sign() {
			z.Sub(z, big.NewInt(1))
			m.Add(m, b)
		}
		if op == "%" {
			z = m
		}
	case "**":
		if b.Sign() < 0 {
			return floats(op, toFloat(l), toFloat(r))
		}
		if n := a.BitLen(); n > 1 && (!b.IsInt64() || b.Int64() > maxBits || int64(n-1)*b.Int64() > maxBits) {
			limit("a power of more than %d bits", maxBits)
		}
		z.Exp(a, b, nil)
	}
	if z.BitLen() > maxBits {
		limit("an integer of more than %d bits", maxBits)
	}
	st.alloc(z.BitLen() / 8)
	st.work(z.BitLen()) // multiplying and printing are slower than looking
	return normal(z)
}

const maxBits = 1 << 15 // of an integer

func floats(op string, a, b float64) Value {
	zero := func(msg string) {
		if b == 0 {
			fail("ZeroDivisionError", "%s", msg)
		}
	}
	switch op {
	case "+":
		return a + b
	case "-":
		return a - b
	case "*":
		return a * b
	case "/":
		zero("float division by zero")
		return a / b
	case "//":
		zero("float floor division by zero")
		m := floatMod(a, b)
		q := (a - m) / b
		if q == 0 {
			return math.Copysign(0, a/b)
		}
		f := math.Floor(q)
		if q-f > 0.5 {
			f++
		}
		return f
	case "%":
		zero("float modulo")
		return floatMod(a, b)
	}
	if a == 0 && b < 0 {
		fail("ZeroDivisionError", "0.0 cannot be raised to a negative power")
	}
	if a < 0 && b != math.Floor(b) && !math.IsInf(b, 0) {
		typeError("complex numbers are not supported")
	}
	f := math.Pow(a, b)
	if math.IsInf(f, 0) && !math.IsInf(a, 0) && !math.IsInf(b, 0) {
		fail("OverflowError", "(34, 'Numerical result out of range')")
	}
	return f
}

func floatMod(a, b float64) float64 {
	m := math.Mod(a, b)
	switch {
	case m != 0 && (m < 0) != (b < 0):
		return m + b
	case m == 0:
		return math.Copysign(0, b)
	}
	return m
}

// sequences is + and * of strings, lists and tuples, and the formatting of strings by %.
func (st *state) sequences(op string, l, r Value) (Value, bool) {
	switch op {
	case "+":
		ls, lok := text(l)
		rs, rok := text(r)
		if lok && rok {
			_, lm := l.(markup)
			_, rm := r.(markup)
			switch {
			case lm && !rm:
				rs = escapeHTML(rs)
			case rm && !lm:
				ls = escapeHTML(ls)
			}
			st.alloc(len(ls) + len(rs))
			if lm || rm {
				return markup(ls + rs), true
			}
			return ls + rs, true
		}
		if a, ok := l.(*List); ok {
			if b, ok := r.(*List); ok {
				return &List{st.joined(a.Items, b.Items)}, true
			}
		}
		if a, ok := l.(*tuple); ok {
			if b, ok := r.(*tuple); ok {
				return &tuple{items: st.joined(a.items, b.items)}, true
			}
		}
	case "*":
		if n, ok := number(l); ok {
			l, r = r, n
		}
		r, _ = number(r)
		if _, ok := r.(*big.Int); ok && isSequence(l) {
			fail("OverflowError", "cannot fit 'int' into an index-sized integer")
		}
		if n, ok := r.(int); ok {
			return st.repeat(l, n)
		}
	case "%":
		if s, ok := l.(string); ok {
			return st.percent(s, r), true
		}
		if s, ok := l.(markup); ok {
			return markup(st.percent(string(s), escaped(r))), true
		}
	}
	return nil, false
}

func (st *state) joined(a, b []Value) []Value {
	st.alloc(valueSize * (len(a) + len(b)))
	return append(append(make([]Value, 0, len(a)+len(b)), a...), b...)
}

// share refuses n pieces of size bytes before their product can overflow.
func (st *state) share(n, size int) {
	if size > 0 && n > st.memory/size {
		limit("the template makes more than its share of memory")
	}
	st.alloc(n * size)
}

func (st *state) repeat(v Value, n int) (Value, bool) {
	n = max(n, 0)
	items := func(in []Value) []Value {
		st.share(n, valueSize*len(in))
		var out []Value
		if len(in) > 0 {
			for range n {
				out = append(out, in...)
			}
		}
		return out
	}
	switch v := v.(type) {
	case string:
		st.share(n, len(v))
		return strings.Repeat(v, n), true
	case markup:
		st.share(n, len(v))
		return markup(strings.Repeat(string(v), n)), true
	case *List:
		return &List{items(v.Items)}, true
	case *tuple:
		return &tuple{items: items(v.items)}, true
	}
	return nil, false
}

// negate is -v or +v.
func negate(op string, v Value) Value {
	if u, ok := v.(*undefined); ok {
		u.raise()
	}
	n, ok := number(v)
	if !ok {
		typeError("bad operand type for unary %s: '%s'", op, typeName(v))
	}
	if op == "+" {
		return n
	}
	switch n := n.(type) {
	case int:
		if n == math.MinInt {
			return new(big.Int).Neg(toBig(n))
		}
		return -n
	case float64:
		return -n
	}
	return normal(new(big.Int).Neg(n.(*big.Int)))
}
