package table

import (
	"slices"

	"github.com/dynamograph/dynamo/nodes/text/family"
)

// Family is a family of models that speak the same formats, or the families that one word may mean.
type Family struct {
	Name string // "qwen2.5"
	// Tools and Reasoning are the formats that its models write, by our names. Nil: not known. Empty: none, as in models that do not think.
	Tools, Reasoning []string
}

// Stated returns the family that an author names, or nil where that is not known. Where the word may mean several, as "qwen3" may mean its
// coders, the formats are those of all.
func Stated(word string) *Family {
	cards := family.Stated(word)
	if len(cards) == 0 {
		return nil
	}
	f := of(cards[0])
	for _, c := range cards[1:] {
		f.Tools, f.Reasoning = union(f.Tools, c.Tools), union(f.Reasoning, c.Reasoning)
	}
	return f
}

// Named returns the family that a model's name tells, as "Qwen/Qwen2.5-7B-Instruct" or "Qwen2.5 7B Instruct"; nil where it tells none.
func Named(model string) *Family {
	c, ok := family.Named(model)
	if !ok {
		return nil
	}
	return of(c)
}

func of(c family.Card) *Family {
	return &Family{c.Name, slices.Clip(c.Tools), slices.Clip(c.Reasoning)}
}

// union of formats is not known where one of them is not.
func union(a, b []string) []string {
	if a == nil || b == nil {
		return nil
	}
	for _, s := range b {
		if !slices.Contains(a, s) {
			a = append(a, s)
		}
	}
	return a
}

// Speaks reports whether models of the family write a format of the kind, by any of the names of its parser. What is not known may be.
func (f *Family) Speaks(k Kind, parser string) bool {
	formats := f.Tools
	if k == Reasoning {
		formats = f.Reasoning
	}
	if formats == nil || open[plainName(parser)] {
		return true
	}
	ours, known := Format(k, parser)
	return !known || slices.Contains(formats, ours)
}
