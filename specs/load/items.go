package load

import (
	"fmt"
	"strconv"
	"strings"

	"cuelang.org/go/cue"

	"github.com/dynamograph/dynamo/graph/diag"
)

// items checks a list.
func (c *checker) items(k string, path []string, s, v cue.Value) {
	it, err := v.List()
	if err != nil {
		return
	}
	sh := c.shape(k, s)
	rest := s.LookupPath(cue.MakePath(cue.AnyIndex))
	n := 0
	for ; it.Next(); n++ {
		p := append(path[:len(path):len(path)], strconv.Itoa(n))
		if one := s.LookupPath(cue.MakePath(cue.Index(n))); one.Exists() {
			c.value(fmt.Sprintf("%s[%d]", k, n), p, one, it.Value())
		} else if rest.Exists() {
			c.value(k+"[]", p, rest, it.Value())
		}
	}
	if lo, hi, known := listSize(s); known && (n < lo || hi >= 0 && n > hi) {
		want, bound := fmt.Sprintf("at least %d", lo), lo
		switch {
		case n > hi && hi >= 0:
			want, bound = fmt.Sprintf("at most %d", hi), hi
		case lo == hi:
			want = strconv.Itoa(lo)
		}
		pos, w := c.valueAt(path, v)
		d := diag.Diagnostic{Code: "bad-value", Pos: pos, Len: w, Path: strings.Join(path, "."),
			Msg: fmt.Sprintf("%s: want %s, got %d", place(path), want+plural(" item", bound), n)}
		if sh.doc != "" {
			d.Notes = []string{sh.doc}
		}
		c.list.Add(d)
	}
}

func plural(what string, n int) string {
	if n == 1 {
		return what
	}
	return what + "s"
}

// listSize returns the bounds of a list's length; hi is -1 where it is open.
func listSize(s cue.Value) (lo, hi int, known bool) {
	for ; s.LookupPath(cue.MakePath(cue.Index(lo))).Exists(); lo++ {
		if lo > 1000 {
			return 0, -1, false
		}
	}
	if s.LookupPath(cue.MakePath(cue.AnyIndex)).Exists() {
		return lo, -1, true
	}
	return lo, lo, true
}
