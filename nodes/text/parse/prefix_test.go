package parse

import (
	"slices"
	"strings"
	"testing"
)

// header is what a call's beginning has beside the mark before its name is whole: until then it may come to be no call.
const header = 100

// TestPrefix: an output that ends anywhere, by length, never has bytes that the model did not write; arguments are the beginning of the
// whole's; and no more text is withheld at any moment than may still become a marker.
func TestPrefix(t *testing.T) {
	for _, c := range lawTexts(t) {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			prefixes(t, c)
		})
	}
}

func prefixes(t *testing.T, c lawText) {
	longest := 0
	for _, m := range Markers(c.tools, c.reasoning) {
		longest = max(longest, len(m))
	}
	whole := argumentsOf(run(t, c, true, c.text))
	for n := range len(c.text) + 1 {
		prefix := c.text[:n]
		p := lawParser(t, c)
		var fed, end merged
		fed.add(p.Feed(prefix))
		end.add(p.Finish(true))
		withheld := 0
		for _, e := range end.out {
			withheld += len(strings.Trim(e.Text, blanks))
		}
		limit := longest
		if len(end.out) > 0 {
			text := strings.TrimLeft(end.out[0].Text, blanks)
			if text != "" && (begins(c.tools, text) || len(argumentsOf(fed.out)) > 0) { // in a list each further call has such a beginning
				limit += header
			}
		}
		if withheld > limit {
			t.Errorf("%q: %d bytes were withheld: %+v", prefix, withheld, end.out)
			return
		}
		var all merged
		all.add(fed.out)
		all.add(end.out)
		for i, args := range argumentsOf(all.out) {
			if i >= len(whole) || !strings.HasPrefix(whole[i], args) {
				t.Errorf("%q: call %d has %q, which is no beginning of %q", prefix, i, args, whole)
				return
			}
		}
		rest := prefix
		for _, e := range all.out {
			if e.Kind != Content && e.Kind != Reasoning {
				continue
			}
			text := e.Text
			if c.reasoning == "minimax_append_think" {
				text = strings.TrimPrefix(text, "<think>")
			}
			i := strings.Index(rest, text)
			for j := 0; i < 0 && j < len(text); j++ { // two pieces of the output may stand together where a marker was
				k := strings.IndexByte(rest, text[j])
				if k < 0 {
					t.Errorf("%q: %q was not written: %+v", prefix, e.Text, all.out)
					return
				}
				rest = rest[k+1:]
			}
			if i >= 0 {
				rest = rest[i+len(text):]
			}
		}
	}
}

// begins reports whether text may be the beginning of a call.
func begins(format, text string) bool {
	f := tools()[format]
	if f == nil {
		return false
	}
	return strings.IndexByte(f.first, text[0]) >= 0 || slices.ContainsFunc(f.begins, func(m string) bool { return strings.HasPrefix(text, m) })
}

// argumentsOf are the arguments of each call.
func argumentsOf(events []Event) []string {
	var out []string
	for _, e := range events {
		switch e.Kind {
		case CallBegin:
			out = append(out, "")
		case CallArguments:
			out[len(out)-1] += e.Text
		}
	}
	return out
}

// TestMarkers: no marker is in the content or reasoning of what is well-formed.
func TestMarkers(t *testing.T) {
	for _, c := range lawTexts(t) {
		if !c.well || c.reasoning == "identity" || c.reasoning == "minimax_append_think" {
			continue
		}
		for _, e := range run(t, c, false, c.text) {
			if e.Kind != Content && e.Kind != Reasoning {
				continue
			}
			for _, m := range Markers(c.tools, c.reasoning) {
				if strings.Contains(e.Text, m) {
					t.Errorf("%s: %q in %q", c.name, m, e.Text)
				}
			}
		}
	}
}
