package diag

import "strings"

// Or joins alternatives for people: "a", "a or b", "a, b or c".
func Or(words []string) string { return series(words, " or ") }

// And joins names for people: "a", "a and b", "a, b and c".
func And(words []string) string { return series(words, " and ") }

func series(words []string, last string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	n := len(words) - 1
	return strings.Join(words[:n], ", ") + last + words[n]
}

// Quote returns each of words in quotes, as findings show names and values.
func Quote(words []string) []string {
	q := make([]string, len(words))
	for i, w := range words {
		q[i] = `"` + w + `"`
	}
	return q
}
