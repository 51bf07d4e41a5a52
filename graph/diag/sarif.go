package diag

import (
	"io"
	"net/url"
	"path"
	"slices"
	"strings"
)

// The part of SARIF 2.1.0 that SARIF writes.
type (
	sarifLog struct {
		Schema  string     `json:"$schema"`
		Version string     `json:"version"`
		Runs    []sarifRun `json:"runs"`
	}
	sarifRun struct {
		Tool struct {
			Driver sarifDriver `json:"driver"`
		} `json:"tool"`
		ColumnKind string        `json:"columnKind"`
		Results    []sarifResult `json:"results"`
	}
	sarifDriver struct {
		Name    string      `json:"name"`
		Version string      `json:"version,omitempty"`
		Rules   []sarifRule `json:"rules"`
	}
	sarifRule struct {
		ID    string    `json:"id"`
		Short sarifText `json:"shortDescription"`
		Help  sarifText `json:"help"`
	}
	sarifText struct {
		Text string `json:"text"`
	}
	sarifResult struct {
		RuleID    string          `json:"ruleId"`
		Level     string          `json:"level"`
		Message   sarifText       `json:"message"`
		Locations []sarifLocation `json:"locations,omitempty"`
		Related   []sarifLocation `json:"relatedLocations,omitempty"`
	}
	sarifLocation struct {
		ID       int           `json:"id,omitempty"`
		Physical sarifPhysical `json:"physicalLocation"`
		Message  *sarifText    `json:"message,omitempty"`
	}
	sarifPhysical struct {
		Artifact struct {
			URI string `json:"uri"`
		} `json:"artifactLocation"`
		Region *sarifRegion `json:"region,omitempty"`
	}
	sarifRegion struct {
		StartLine   int `json:"startLine"`
		StartColumn int `json:"startColumn,omitempty"`
		EndColumn   int `json:"endColumn,omitempty"`
	}
)

// SARIF writes list as SARIF 2.1.0, for code scanning: all findings. version is the program's, "" where not known. Columns count code points where read
// gives the file, else bytes.
func SARIF(w io.Writer, list List, version string, read ReadFunc) error {
	run := sarifRun{ColumnKind: "unicodeCodePoints", Results: []sarifResult{}}
	run.Tool.Driver = sarifDriver{Name: "dynamo", Version: version, Rules: []sarifRule{}}
	list, mask := list.hide()
	t := &text{read: read, mask: mask, files: map[string][]string{}}
	var codes []string
	for _, d := range list {
		if !slices.Contains(codes, d.Code) {
			codes = append(codes, d.Code)
		}
		r := sarifResult{RuleID: d.Code, Level: d.Severity.String(), Message: sarifText{full(d)}}
		if d.Pos.File != "" {
			r.Locations = []sarifLocation{{Physical: t.physical(d.Pos, d.Len)}}
		}
		for i, x := range d.Related {
			if x.Pos.File != "" {
				r.Related = append(r.Related, sarifLocation{ID: i + 1, Physical: t.physical(x.Pos, x.Len), Message: &sarifText{x.Msg}})
			}
		}
		run.Results = append(run.Results, r)
	}
	slices.Sort(codes)
	for _, c := range codes {
		info := Codes[c]
		run.Tool.Driver.Rules = append(run.Tool.Driver.Rules, sarifRule{ID: c, Short: sarifText{info.Meaning}, Help: sarifText{info.Do}})
	}
	return encode(w, sarifLog{Schema: "https://json.schemastore.org/sarif-2.1.0.json", Version: "2.1.0", Runs: []sarifRun{run}})
}

func (t *text) physical(p Pos, n int) sarifPhysical {
	var out sarifPhysical
	out.Artifact.URI = uri(p.File)
	if !p.IsValid() {
		return out
	}
	r := &sarifRegion{StartLine: p.Line}
	if p.Col > 0 {
		start, length := p.Col-1, max(n, 1)
		if line, ok := t.line(p); ok {
			length = runes(line, start+length) - runes(line, start)
			start = runes(line, start)
		}
		r.StartColumn, r.EndColumn = start+1, start+1+max(length, 1)
	}
	out.Region = r
	return out
}

// uri writes a path as a relative or file URI.
func uri(file string) string {
	file = strings.ReplaceAll(file, "\\", "/")
	if path.IsAbs(file) {
		return (&url.URL{Scheme: "file", Path: file}).String()
	}
	return (&url.URL{Path: path.Clean(file)}).String()
}
