package diag

import "testing"

func TestSeries(t *testing.T) {
	for _, c := range []struct {
		words   []string
		or, and string
	}{
		{nil, "", ""},
		{[]string{"a"}, `"a"`, `"a"`},
		{[]string{"a", "b"}, `"a" or "b"`, `"a" and "b"`},
		{[]string{"a", "b", "c"}, `"a", "b" or "c"`, `"a", "b" and "c"`},
	} {
		if or, and := Or(Quote(c.words)), And(Quote(c.words)); or != c.or || and != c.and {
			t.Errorf("%q: %s; %s", c.words, or, and)
		}
	}
}
