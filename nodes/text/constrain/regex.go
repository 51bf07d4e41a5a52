package constrain

import (
	"fmt"
	"regexp/syntax"
	"slices"
	"unicode"
)

func sorted(rs []Range) []Range {
	rs = slices.Clone(rs)
	slices.SortFunc(rs, func(a, b Range) int { return int(a.From - b.From) })
	var out []Range
	for _, r := range rs {
		if n := len(out); n > 0 && r.From <= out[n-1].To+1 {
			out[n-1].To = max(out[n-1].To, r.To)
		} else if r.From <= r.To {
			out = append(out, r)
		}
	}
	return out
}

// Regex reads a regular expression in RE2's syntax, as Go has it, of the whole text: ^ and $ may stand at its ends. What a language does not have
// (\b, and ^ or $ inside) is refused; lazy repetitions are as others, since only the set of texts counts.
func Regex(source string) (Node, error) {
	re, err := syntax.Parse(source, syntax.Perl&^syntax.OneLine|syntax.OneLine)
	if err != nil {
		return nil, err
	}
	return regexNode(re, true, true)
}

// regexNode makes an expression; first and last say that it stands at an end of the whole.
func regexNode(re *syntax.Regexp, first, last bool) (Node, error) {
	sub := func(i int, f, l bool) (Node, error) { return regexNode(re.Sub[i], f, l) }
	switch re.Op {
	case syntax.OpNoMatch:
		return Dead{}, nil
	case syntax.OpEmptyMatch:
		return nil, nil //nolint:nilnil // the empty string
	case syntax.OpLiteral:
		if re.Flags&syntax.FoldCase == 0 {
			return Text(string(re.Rune)), nil
		}
		var s Seq
		for _, r := range re.Rune {
			c := Class{Ranges: []Range{{r, r}}}
			for f := unicode.SimpleFold(r); f != r; f = unicode.SimpleFold(f) {
				c.Ranges = append(c.Ranges, Range{f, f})
			}
			s = append(s, c)
		}
		return s, nil
	case syntax.OpCharClass:
		c := Class{}
		for i := 0; i+1 < len(re.Rune); i += 2 {
			c.Ranges = append(c.Ranges, Range{re.Rune[i], re.Rune[i+1]})
		}
		return c, nil
	case syntax.OpAnyCharNotNL:
		return Class{Ranges: []Range{{'\n', '\n'}}, Not: true}, nil
	case syntax.OpAnyChar:
		return Class{Not: true}, nil
	case syntax.OpBeginText, syntax.OpBeginLine:
		if !first {
			return nil, fmt.Errorf("%q inside of the expression is not supported: it stands for the whole text", re)
		}
		return nil, nil //nolint:nilnil // likewise
	case syntax.OpEndText, syntax.OpEndLine:
		if !last {
			return nil, fmt.Errorf("%q inside of the expression is not supported: it stands for the whole text", re)
		}
		return nil, nil //nolint:nilnil // likewise
	case syntax.OpCapture:
		return sub(0, first, last)
	case syntax.OpConcat:
		var s Seq
		for i := range re.Sub {
			n, err := sub(i, first && i == 0, last && i == len(re.Sub)-1)
			if err != nil {
				return nil, err
			}
			s = append(s, n)
		}
		return s, nil
	case syntax.OpAlternate:
		var a Alt
		for i := range re.Sub {
			n, err := sub(i, first, last)
			if err != nil {
				return nil, err
			}
			a = append(a, n)
		}
		return a, nil
	case syntax.OpStar, syntax.OpPlus, syntax.OpQuest, syntax.OpRepeat:
		n, err := sub(0, false, false)
		if err != nil {
			return nil, err
		}
		r := Repeat{Node: n, Min: re.Min, Max: re.Max}
		switch re.Op {
		case syntax.OpStar:
			r.Min, r.Max = 0, -1
		case syntax.OpPlus:
			r.Min, r.Max = 1, -1
		case syntax.OpQuest:
			r.Min, r.Max = 0, 1
		}
		return r, nil
	}
	return nil, fmt.Errorf("%q is not supported: only the set of texts counts", re)
}
