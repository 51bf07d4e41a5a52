package viz

import (
	"fmt"
	"html/template"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/dynamograph/dynamo/graph"
	"github.com/dynamograph/dynamo/graph/plan"
)

// Measures of the page's drawing, in pixels.
const (
	charWidth  = 8 // of the type that names are set in, at most
	lineHeight = 20
	boxPadding = 12
	columnGap  = 150 // room for what stands at edges
	rowGap     = 36
	laneGap    = 26 // between arrows that pass below the boxes
	margin     = 48
)

// HTML draws p as one page that needs no network and runs no script: a picture of the processes, and the same as tables, which a screen
// reader reads. Names are escaped.
func HTML(p *plan.Plan) (string, error) {
	var b strings.Builder
	if err := page.Execute(&b, newPicture(p)); err != nil {
		return "", fmt.Errorf("graph %q: %w", p.Graph, err)
	}
	return b.String(), nil
}

// picture is what the template draws.
type picture struct {
	Title, Heading string
	Width, Height  int
	Boxes          []box
	Arrows         []arrow
	Rows           []processRow
	Edges          []edgeRow
	Inserted       bool
	Compiled       bool // its author says that it never ran
}

type box struct {
	X, Y, W, H int
	Title      string
	Units      []boxLine
	replicas   int
	column     int
}

// Stack reports whether the box stands for several processes.
func (b box) Stack() bool { return b.replicas > 1 }

type boxLine struct {
	X, Y     int
	Text     string
	Inserted bool
}

type arrow struct {
	Path   string
	X, Y   int // of its text
	Text   string
	Stream bool
}

type processRow struct {
	Name     string
	Replicas int
	Nodes    string
	Address  string
}

type edgeRow struct{ From, To, Type, Transport string }

func newPicture(p *plan.Plan) *picture {
	d := newDrawing(p)
	pic := &picture{Title: p.Graph, Heading: heading(p), Compiled: p.Status == "compiled"}
	at := pic.place(d)
	for _, g := range d.groups {
		row := processRow{Name: g.Name, Replicas: g.Replicas.Want}
		var nodes, addresses []string
		for _, u := range g.Units {
			text := unit(u)
			if u.Inserted {
				text = "+ " + text
				pic.Inserted = true
			}
			nodes = append(nodes, text)
			for _, f := range sorted(u.Listen) {
				addresses = append(addresses, u.Listen[f])
			}
		}
		row.Nodes, row.Address = strings.Join(nodes, ", "), strings.Join(addresses, ", ")
		pic.Rows = append(pic.Rows, row)
	}
	side := map[[2]string]int{} // arrows between two boxes lie beside each other
	lanes, bottom := 0, pic.Height-rowGap
	for _, e := range p.Edges {
		pic.Edges = append(pic.Edges, edgeRow{e.From + "." + e.FromPort, e.To + "." + e.ToPort, e.Type, e.Transport})
		if !d.crosses(e) || d.home[e.From] == nil || d.home[e.To] == nil {
			continue
		}
		from, to := d.home[e.From].Name, d.home[e.To].Name
		key := [2]string{min(from, to), max(from, to)}
		if gap := at[to].column - at[from].column; gap > 1 || gap < 0 {
			lanes++
			pic.Arrows = append(pic.Arrows, around(at[from], at[to], bottom+laneGap*lanes, edge(e), graph.IsStream(e.Type)))
			continue
		}
		pic.Arrows = append(pic.Arrows, draw(at[from], at[to], side[key], edge(e), graph.IsStream(e.Type)))
		side[key]++
	}
	pic.Height += laneGap * lanes
	return pic
}

// place puts the groups in columns: who is called, or takes data, stands right of who calls or gives it.
func (pic *picture) place(d drawing) map[string]box {
	rank := map[string]int{}
	for _, g := range d.groups { // in an order in which senders come first
		for _, e := range d.p.Edges {
			from, to := d.home[e.From], d.home[e.To]
			if from == g && to != nil && to != g && !graph.IsStream(e.Type) && slices.Index(d.groups, to) > slices.Index(d.groups, g) {
				rank[to.Name] = max(rank[to.Name], rank[g.Name]+1)
			}
		}
	}
	widths, heights := map[int]int{}, map[int]int{}
	boxes := map[string]box{}
	for _, g := range d.groups {
		b := box{Title: title(g), H: lineHeight*(len(g.Units)+1) + 2*boxPadding, replicas: g.Replicas.Want}
		longest := utf8.RuneCountInString(b.Title)
		for _, u := range g.Units {
			longest = max(longest, utf8.RuneCountInString(unit(u))+2)
		}
		b.W = longest*charWidth + 2*boxPadding
		r := rank[g.Name]
		widths[r] = max(widths[r], b.W)
		boxes[g.Name] = b
	}
	x, column := margin, 0
	for r := range len(d.groups) {
		if widths[r] == 0 {
			continue
		}
		column++
		y := margin
		for _, g := range d.groups {
			if rank[g.Name] != r {
				continue
			}
			b := boxes[g.Name]
			b.X, b.Y, b.W, b.column = x, y, widths[r], column
			for i, u := range g.Units {
				text := unit(u)
				if u.Inserted {
					text = "+ " + text
				}
				b.Units = append(b.Units, boxLine{X: x + boxPadding, Y: y + boxPadding + lineHeight*(i+2) - 4, Text: text, Inserted: u.Inserted})
			}
			boxes[g.Name] = b
			pic.Boxes = append(pic.Boxes, b)
			y += b.H + rowGap
		}
		heights[r] = y
		pic.Height = max(pic.Height, y)
		x += widths[r] + columnGap
	}
	pic.Width = max(x-columnGap, 0) + margin
	if len(d.p.Edges) > 0 {
		pic.Width += columnGap / 2 // for arrows beside the last column
	}
	return boxes
}

// draw makes an arrow to a box in the next column or in the same; n is how many there are already.
func draw(from, to box, n int, text string, stream bool) arrow {
	shift := n * 16
	y1, y2 := from.Y+from.H/2+shift, to.Y+to.H/2+shift
	x1, x2 := from.X+from.W, to.X
	if to.column == from.column { // around its right side
		out := x1 + 40 + shift
		return arrow{fmt.Sprintf("M %d %d C %d %d, %d %d, %d %d", x1, y1, out, y1, out, y2, x1, y2), out, (y1 + y2) / 2, text, stream}
	}
	mid := (x1 + x2) / 2
	return arrow{fmt.Sprintf("M %d %d C %d %d, %d %d, %d %d", x1, y1, mid, y1, mid, y2, x2, y2), mid, (y1+y2)/2 - 6, text, stream}
}

// around makes an arrow that passes below all boxes, at height lane.
func around(from, to box, lane int, text string, stream bool) arrow {
	const bend = 40
	x1, y1, x2, y2 := from.X+from.W, from.Y+from.H*3/4, to.X, to.Y+to.H*3/4
	in, out := x1+bend, x2-bend
	return arrow{fmt.Sprintf("M %d %d C %d %d, %d %d, %d %d L %d %d C %d %d, %d %d, %d %d",
		x1, y1, in, y1, in, lane, in+(out-in)/8, lane, out-(out-in)/8, lane, out, lane, out, y2, x2, y2), (in + out) / 2, lane - 5, text, stream}
}

var page = template.Must(template.New("page").Parse(`<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>{{.Title}}</title>
<style>
:root { color-scheme: light dark; --ink: #1b1b1b; --paper: #fff; --line: #5a5a5a; --box: #f2f5f9; --new: #6a4b00; }
@media (prefers-color-scheme: dark) { :root { --ink: #eee; --paper: #161616; --line: #aaa; --box: #23282f; --new: #ffcf70; } }
body { font: 16px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper); margin: 2rem; }
svg text { font: 13px ui-monospace, monospace; fill: var(--ink); }
svg .title { font-weight: bold; }
svg .inserted { fill: var(--new); }
svg rect { fill: var(--box); stroke: var(--line); }
svg path { fill: none; stroke: var(--line); }
svg .stream { stroke-dasharray: 5 4; }
svg marker path { fill: var(--line); stroke: none; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; margin: 1rem 0; }
caption { text-align: left; font-weight: bold; }
th, td { border: 1px solid var(--line); padding: .25rem .6rem; text-align: left; }
</style>
</head>
<body>
<main>
<h1>{{.Title}}</h1>
<p>{{.Heading}}</p>
{{- if .Compiled}}
<p>Its author says that this graph passed the compiler and never ran.</p>
{{- end}}
<div class="scroll" tabindex="0" role="region" aria-label="picture of the graph">
<svg xmlns="http://www.w3.org/2000/svg" width="{{.Width}}" height="{{.Height}}" viewBox="0 0 {{.Width}} {{.Height}}" role="img" aria-labelledby="svg-title svg-desc">
<title id="svg-title">Processes of {{.Title}}</title>
<desc id="svg-desc">The tables below say the same.</desc>
<defs><marker id="head" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="8" markerHeight="8" orient="auto"><path d="M 0 0 L 8 4 L 0 8 z"/></marker></defs>
{{- range .Boxes}}
<g>
{{- if .Stack}}<rect x="{{.X}}" y="{{.Y}}" width="{{.W}}" height="{{.H}}" rx="6" transform="translate(5 5)"/>{{end}}
<rect x="{{.X}}" y="{{.Y}}" width="{{.W}}" height="{{.H}}" rx="6"/>
<text class="title" x="{{.X}}" y="{{.Y}}" dx="12" dy="26">{{.Title}}</text>
{{- range .Units}}
<text x="{{.X}}" y="{{.Y}}"{{if .Inserted}} class="inserted"{{end}}>{{.Text}}</text>
{{- end}}
</g>
{{- end}}
{{- range .Arrows}}
<path d="{{.Path}}" marker-end="url(#head)"{{if .Stream}} class="stream"{{end}}/>
<text x="{{.X}}" y="{{.Y}}" text-anchor="middle">{{.Text}}</text>
{{- end}}
</svg>
</div>
{{- if .Inserted}}
<p>+ inserted by the compiler</p>
{{- end}}
<table>
<caption>Processes</caption>
<thead><tr><th scope="col">process</th><th scope="col">replicas</th><th scope="col">nodes</th><th scope="col">address</th></tr></thead>
<tbody>
{{- range .Rows}}
<tr><th scope="row">{{.Name}}</th><td>{{.Replicas}}</td><td>{{.Nodes}}</td><td>{{.Address}}</td></tr>
{{- end}}
</tbody>
</table>
<table>
<caption>Edges</caption>
<thead><tr><th scope="col">from</th><th scope="col">to</th><th scope="col">type</th><th scope="col">transport</th></tr></thead>
<tbody>
{{- range .Edges}}
<tr><td>{{.From}}</td><td>{{.To}}</td><td>{{.Type}}</td><td>{{.Transport}}</td></tr>
{{- end}}
</tbody>
</table>
</main>
</body>
</html>
`))
