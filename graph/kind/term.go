package kind

import (
	"slices"
	"strconv"
)

// Fits reports whether both ends of an edge may say t and other. What the rule cannot judge, as a word where a number should be, fits, and
// so does what one end does not say; but a Meet of nothing is met by nothing.
func (t Term) Fits(other Term) bool {
	if t.Rule != Meet && (len(t.Values) == 0 || len(other.Values) == 0) {
		return true
	}
	switch t.Rule {
	case Divides:
		a, b := number(t), number(other)
		return a <= 0 || b <= 0 || max(a, b)%min(a, b) == 0
	case Meet:
		return slices.ContainsFunc(t.Values, func(v string) bool { return slices.Contains(other.Values, v) })
	default:
		return slices.Equal(t.Values, other.Values)
	}
}

// Remedy is what to do about terms of the rule that do not fit.
func (r Rule) Remedy() string {
	switch r {
	case Divides:
		return "choose two of which the smaller divides the larger"
	case Meet:
		return "give both one in common"
	default:
		return "set both to the same"
	}
}

// number returns the term's only value, or 0.
func number(t Term) int {
	if len(t.Values) != 1 {
		return 0
	}
	n, err := strconv.Atoi(t.Values[0])
	if err != nil {
		return 0
	}
	return n
}
