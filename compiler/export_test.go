package compiler

// RuleCodes returns the codes of the checks, for the test that each has an archive.
func RuleCodes() []string {
	var out []string
	for _, r := range rules {
		if r.code != "kind" {
			out = append(out, r.code)
		}
	}
	return out
}

// The secrets' own tests.
var (
	LooksLike = looksLike
	Hidden    = hidden
)
