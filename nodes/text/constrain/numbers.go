package constrain

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// integers is the whole numbers lo to hi.
func integers(lo, hi int64) Node {
	var a Alt
	if lo > hi {
		return a
	}
	if lo < 0 {
		from, to := uint64(1), magnitude(lo)
		if hi < 0 {
			from = magnitude(hi)
		}
		a = append(a, Seq{Text("-"), natural(from, to)})
	}
	if hi >= 0 {
		a = append(a, natural(uint64(max(lo, 0)), uint64(hi)))
	}
	return a
}

func magnitude(n int64) uint64 { return uint64(-(n + 1)) + 1 }

// natural is the decimal numbers lo to hi without leading zeros.
func natural(lo, hi uint64) Node {
	var a Alt
	x, y := strconv.FormatUint(lo, 10), strconv.FormatUint(hi, 10)
	for n := len(x); n <= len(y); n++ {
		from, to := "1"+strings.Repeat("0", n-1), strings.Repeat("9", n)
		if n == len(x) {
			from = x
		}
		if n == len(y) {
			to = y
		}
		a = append(a, digits(from, to))
	}
	return a
}

// digits is the texts of digits between two of one length.
func digits(lo, hi string) Node {
	if lo == "" {
		return nil
	}
	zeros, nines := strings.Repeat("0", len(lo)-1), strings.Repeat("9", len(lo)-1)
	if lo[0] == hi[0] {
		return Seq{Text(lo[:1]), digits(lo[1:], hi[1:])}
	}
	if lo[1:] == zeros && hi[1:] == nines {
		return Seq{Class{Ranges: []Range{{rune(lo[0]), rune(hi[0])}}}, Repeat{digit, len(zeros), len(zeros)}}
	}
	a := Alt{Seq{Text(lo[:1]), digits(lo[1:], nines)}, Seq{Text(hi[:1]), digits(zeros, hi[1:])}}
	if lo[0]+1 < hi[0] {
		a = append(a, Seq{Class{Ranges: []Range{{rune(lo[0] + 1), rune(hi[0] - 1)}}}, Repeat{digit, len(zeros), len(zeros)}})
	}
	return a
}

// bounds are those of a number; nil is none.
type bounds struct {
	lo, hi         *int64
	openLo, openHi bool // the bound itself is outside
}

// integer is the whole numbers in b.
func (b bounds) integer() Node {
	if b.lo == nil && b.hi == nil {
		return anyInt
	}
	lo, hi := int64(-999_999_999_999_999_999), int64(999_999_999_999_999_999)
	if b.lo != nil {
		if lo = *b.lo; b.openLo {
			if lo == math.MaxInt64 {
				return Dead{}
			}
			lo++
		}
		hi = max(hi, lo)
	}
	if b.hi != nil {
		if hi = *b.hi; b.openHi {
			if hi == math.MinInt64 {
				return Dead{}
			}
			hi--
		}
		if b.lo == nil {
			lo = min(lo, hi)
		}
	}
	if lo > hi {
		return Dead{}
	}
	return integers(lo, hi)
}

// number is the decimal numbers in b, of which the bounds are whole.
func (b bounds) number() Node {
	if b.lo == nil && b.hi == nil {
		return anyNum
	}
	lo, hi := int64(-999_999_999_999_999), int64(999_999_999_999_999)
	if b.lo != nil {
		lo = *b.lo
		hi = max(hi, lo)
	}
	if b.hi != nil {
		hi = *b.hi
		if b.lo == nil {
			lo = min(lo, hi)
		}
	}
	zeros := Seq{Text("."), Repeat{Text("0"), 1, 17}}
	// above is more than nothing. Near a bound that is outside there are no more digits than readers' doubles tell apart from it.
	places := 17
	for _, end := range []struct {
		n    int64
		open bool
	}{{lo, b.openLo}, {hi, b.openHi}} {
		if end.open {
			places = min(places, max(1, 15-len(strconv.FormatUint(magnitude(min(end.n, -end.n)), 10))))
		}
	}
	above := Seq{Text("."), Repeat{digit, 0, places - 1}, Class{Ranges: []Range{{'1', '9'}}}, Repeat{Text("0"), 0, 4}}
	var a Alt
	if lo > hi || lo == hi && (b.openLo || b.openHi) {
		return a
	}
	for _, end := range []struct {
		n    int64
		open bool
	}{{lo, b.openLo}, {hi, b.openHi}} {
		if !end.open {
			a = append(a, Seq{Text(strconv.FormatInt(end.n, 10)), Optional(zeros)})
		}
	}
	if lo == hi {
		return a
	}
	// Strictly between: n.f with n from lo to hi-1 on the side of the positive ones, mirrored on the other.
	if hi > 0 {
		from := max(lo, 0)
		a = append(a, Seq{integers(from, hi-1), above})
		if from+1 <= hi-1 {
			a = append(a, Seq{integers(from+1, hi-1), Optional(zeros)})
		}
		if lo < 0 {
			a = append(a, Seq{Text("0"), Optional(zeros)})
		}
	}
	if lo < 0 {
		from := uint64(0)
		if hi < 0 {
			from = magnitude(hi)
		}
		to := magnitude(lo) - 1
		a = append(a, Seq{Text("-"), natural(from, to), above})
		if from+1 <= to {
			a = append(a, Seq{Text("-"), natural(from+1, to), Optional(zeros)})
		}
	}
	return a
}

// multiples is the whole numbers that m divides: a remainder a rule.
func multiples(g *Grammar, m int64) Node {
	rules := make([]Ref, m)
	for i := range rules {
		rules[i] = g.Add(fmt.Sprintf("remainder %d of %d", i, m), nil)
	}
	for r := range m {
		var a Alt
		if r == 0 {
			a = append(a, nil)
		}
		for d := range int64(10) {
			a = append(a, Seq{Text(strconv.FormatInt(d, 10)), rules[(r*10+d)%m]})
		}
		g.Rules[rules[r]].Body = a
	}
	var first Alt
	for d := int64(1); d < 10; d++ {
		first = append(first, Seq{Text(strconv.FormatInt(d, 10)), rules[d%m]})
	}
	return Alt{Text("0"), Seq{minus, first}}
}
