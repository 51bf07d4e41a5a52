package diag

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// Suggest returns `did you mean "x"?` for the candidate nearest to got, or "" where none is near enough. Of equals the first wins.
func Suggest(got string, from []string) string {
	if n := Nearest(got, from); n != "" {
		return fmt.Sprintf("did you mean %q?", n)
	}
	return ""
}

// Nearest returns the candidate that got was most likely meant to be, or "". A candidate is near if it differs by case and separators only, or
// by at most a third of got's letters (at least one; two from four letters on); if one is a prefix of the other by three or more; or if it is
// got's first word.
func Nearest(got string, from []string) string {
	if got == "" || len(got) > 256 {
		return ""
	}
	g := fold(got)
	limit := 1
	if n := utf8.RuneCountInString(g); n >= 4 {
		limit = max(2, n/3)
	}
	best, bestAt := "", limit+1
	for _, c := range from {
		if c == got || len(c) > 256 {
			continue
		}
		f := fold(c)
		d := distance(g, f)
		if d > limit && len(g) >= 3 && len(f) >= 3 && (strings.HasPrefix(f, g) || strings.HasPrefix(g, f)) {
			d = limit // "tok" for "tokens": a last resort
		}
		if d > limit && len(c) >= 2 && len(got) > len(c) && strings.EqualFold(got[:len(c)], c) && strings.IndexByte("-_. ", got[len(c)]) >= 0 {
			d = limit // "kv-aware" for "kv"
		}
		if d >= max(len(g), len(f)) && d > 0 {
			continue // nothing in common
		}
		if d < bestAt {
			best, bestAt = c, d
		}
	}
	return best
}

// fold drops what people get wrong without meaning another word.
func fold(s string) string {
	return strings.Map(func(r rune) rune {
		if r == '-' || r == '_' || r == ' ' {
			return -1
		}
		return r
	}, strings.ToLower(s))
}

// distance counts insertions, deletions, replacements and swaps of neighbours (optimal string alignment) over runes.
func distance(a, b string) int {
	x, y := []rune(a), []rune(b)
	older, prev, cur := make([]int, len(y)+1), make([]int, len(y)+1), make([]int, len(y)+1)
	for j := range prev {
		prev[j] = j
	}
	for i := 1; i <= len(x); i++ {
		cur[0] = i
		for j := 1; j <= len(y); j++ {
			cost := 1
			if x[i-1] == y[j-1] {
				cost = 0
			}
			cur[j] = min(prev[j]+1, cur[j-1]+1, prev[j-1]+cost)
			if i > 1 && j > 1 && x[i-1] == y[j-2] && x[i-2] == y[j-1] {
				cur[j] = min(cur[j], older[j-2]+1)
			}
		}
		older, prev, cur = prev, cur, older
	}
	return prev[len(y)]
}
