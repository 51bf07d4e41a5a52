package viz_test

import (
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/dynamograph/dynamo/graph/plan"
	"github.com/dynamograph/dynamo/graph/viz"
)

// element is a part of a page.
type element struct {
	name, text string
	attr       map[string]string
}

// parse reads a page as XML, which it is but for its first line and void elements.
func parse(t *testing.T, page string) []element {
	t.Helper()
	d := xml.NewDecoder(strings.NewReader(page))
	d.Strict, d.AutoClose, d.Entity = false, xml.HTMLAutoClose, xml.HTMLEntity
	var out []element
	var open []int
	for {
		tok, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("%v\n%s", err, page)
		}
		switch x := tok.(type) {
		case xml.StartElement:
			e := element{name: x.Name.Local, attr: map[string]string{}}
			for _, a := range x.Attr {
				e.attr[a.Name.Local] = a.Value
			}
			out = append(out, e)
			open = append(open, len(out)-1)
		case xml.CharData:
			if len(open) > 0 {
				out[open[len(open)-1]].text += string(x)
			}
		case xml.EndElement:
			open = open[:len(open)-1]
		}
	}
	if len(open) != 0 {
		t.Fatalf("%d elements are left open", len(open))
	}
	return out
}

func count(es []element, name string) (n int) {
	for _, e := range es {
		if e.name == name {
			n++
		}
	}
	return n
}

func number(t *testing.T, s string) int {
	t.Helper()
	n, err := strconv.Atoi(s)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// along samples a path of cubic curves and lines.
func along(t *testing.T, d string) (out [][2]float64) {
	t.Helper()
	words := strings.Fields(strings.NewReplacer(",", " ").Replace(d))
	var at [2]float64
	for len(words) > 0 {
		n := map[string]int{"M": 1, "L": 1, "C": 3}[words[0]]
		if n == 0 || len(words) < 1+2*n {
			t.Fatalf("path %q", d)
		}
		var p [3][2]float64
		for i := range 2 * n {
			p[i/2][i%2] = float64(number(t, words[1+i]))
		}
		switch words[0] {
		case "M":
			at = p[0]
		case "L":
			p = [3][2]float64{at, p[0], p[0]}
			fallthrough
		case "C":
			for i := range 21 {
				u := float64(i) / 20
				var q [2]float64
				for k := range q {
					q[k] = (1-u)*(1-u)*(1-u)*at[k] + 3*(1-u)*(1-u)*u*p[0][k] + 3*(1-u)*u*u*p[1][k] + u*u*u*p[2][k]
				}
				out = append(out, q)
			}
			at = p[2]
		}
		words = words[1+2*n:]
	}
	return out
}

// TestHTML: a page says every process, node and edge once in the picture and once in the tables; nothing lies outside of the picture or upon
// another; nothing is fetched.
func TestHTML(t *testing.T) {
	files, err := filepath.Glob("testdata/*/plan.json")
	if err != nil || len(files) == 0 {
		t.Fatal(err)
	}
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		p, err := plan.Decode(b)
		if err != nil {
			t.Fatal(err)
		}
		page, err := viz.HTML(p)
		if err != nil {
			t.Fatal(err)
		}
		es := parse(t, page)
		if again, _ := viz.HTML(p); again != page {
			t.Errorf("%s: not the same twice", file)
		}
		units, crossing := 0, 0
		home := map[string]string{}
		for _, g := range p.Groups {
			units += len(g.Units)
			for _, u := range g.Units {
				home[u.Node] = g.Name
			}
		}
		for _, e := range p.Edges {
			if home[e.From] != home[e.To] {
				crossing++
			}
		}
		if got, want := count(es, "text"), len(p.Groups)+units+crossing; got != want {
			t.Errorf("%s: %d texts, want %d", file, got, want)
		}
		if got, want := count(es, "tr"), 2+len(p.Groups)+len(p.Edges); got != want {
			t.Errorf("%s: %d rows, want %d", file, got, want)
		}
		for name, want := range map[string]int{"script": 0, "link": 0, "img": 0, "iframe": 0, "h1": 1, "main": 1, "svg": 1, "caption": 2, "html": 1} {
			if got := count(es, name); got != want {
				t.Errorf("%s: %d elements %q, want %d", file, got, name, want)
			}
		}
		if strings.Count(page, "http://") != 1 || !strings.Contains(page, `xmlns="http://www.w3.org/2000/svg"`) || strings.Contains(page, "https://") {
			t.Errorf("%s: it names an address", file)
		}
		var w, h int
		type rect struct{ x, y, w, h int }
		var rects []rect
		for _, e := range es {
			switch {
			case e.name == "svg":
				w, h = number(t, e.attr["width"]), number(t, e.attr["height"])
				if e.attr["role"] != "img" || e.attr["aria-labelledby"] != "svg-title svg-desc" {
					t.Errorf("%s: the picture has no name for a screen reader", file)
				}
			case e.name == "rect" && e.attr["transform"] == "":
				r := rect{number(t, e.attr["x"]), number(t, e.attr["y"]), number(t, e.attr["width"]), number(t, e.attr["height"])}
				if r.x < 0 || r.y < 0 || r.x+r.w > w || r.y+r.h > h {
					t.Errorf("%s: box %v outside of %d × %d", file, r, w, h)
				}
				for _, o := range rects {
					if r.x < o.x+o.w && o.x < r.x+r.w && r.y < o.y+o.h && o.y < r.y+r.h {
						t.Errorf("%s: boxes %v and %v overlap", file, r, o)
					}
				}
				rects = append(rects, r)
			}
		}
		for _, e := range es {
			if e.name != "path" || e.attr["marker-end"] == "" {
				continue
			}
			for _, at := range along(t, e.attr["d"]) {
				if at[0] < 0 || at[1] < 0 || at[0] > float64(w) || at[1] > float64(h) {
					t.Errorf("%s: arrow %s leaves the picture at %.0f", file, e.attr["d"], at)
					break
				}
				for _, r := range rects {
					if at[0] > float64(r.x+2) && at[0] < float64(r.x+r.w-2) && at[1] > float64(r.y+2) && at[1] < float64(r.y+r.h-2) {
						t.Errorf("%s: arrow %s crosses box %v", file, e.attr["d"], r)
					}
				}
			}
		}
		if len(rects) != len(p.Groups) {
			t.Errorf("%s: %d boxes, want %d", file, len(rects), len(p.Groups))
		}
	}
}

// Names cannot become markup.
func TestHTMLEscapes(t *testing.T) {
	evil := `"><script>alert(1)</script>&'`
	page, err := viz.HTML(&plan.Plan{
		Graph: evil, Status: "compiled", Models: map[string]*plan.Model{"m": {Names: []string{evil}}},
		Groups: []*plan.Group{{Name: evil, Units: []*plan.Unit{{Node: evil, Kind: evil, Listen: map[string]string{"a": evil}}}}, {Name: "b", Units: []*plan.Unit{{Node: "b"}}}},
		Edges:  []*plan.Edge{{From: evil, FromPort: evil, To: "b", ToPort: evil, Type: evil, Transport: evil}},
	})
	if err != nil {
		t.Fatal(err)
	}
	es := parse(t, page)
	if n := count(es, "script"); n != 0 || strings.Contains(page, "<script") {
		t.Errorf("%d scripts", n)
	}
	for _, e := range es {
		if e.name == "h1" && e.text != evil {
			t.Errorf("title %q", e.text)
		}
	}
	if !strings.Contains(page, "never ran") {
		t.Error("it does not say that the graph never ran")
	}
}

// A plan without anything is a page without boxes.
func TestHTMLEmpty(t *testing.T) {
	page, err := viz.HTML(&plan.Plan{Graph: "g"})
	if err != nil || count(parse(t, page), "rect") != 0 {
		t.Errorf("%v\n%s", err, page)
	}
}
