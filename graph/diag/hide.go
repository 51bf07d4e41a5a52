package diag

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// hide returns l without the secrets that its findings name, and what takes them out of other text, such as source lines. A secret keeps its
// length in bytes, so that places stay what they are. Texts of less than 4 bytes stay: they are parts of too many words.
func (l List) hide() (List, func(string) string) {
	var pairs []string
	for _, d := range l {
		if len(d.Secret) < 4 {
			continue
		}
		head := 0
		for n := 0; n < 3 && head < len(d.Secret)/2; n++ {
			_, size := utf8.DecodeRuneInString(d.Secret[head:])
			head += size
		}
		pairs = append(pairs, d.Secret, d.Secret[:head]+strings.Repeat("*", len(d.Secret)-head))
	}
	if len(pairs) == 0 {
		return l, func(s string) string { return s }
	}
	mask := strings.NewReplacer(pairs...).Replace
	out := slices.Clone(l)
	for i := range out {
		d := &out[i]
		d.Msg, d.Hint, d.Notes, d.Related = mask(d.Msg), mask(d.Hint), slices.Clone(d.Notes), slices.Clone(d.Related)
		for j := range d.Notes {
			d.Notes[j] = mask(d.Notes[j])
		}
		for j := range d.Related {
			d.Related[j].Msg = mask(d.Related[j].Msg)
		}
	}
	return out, mask
}
