package diag

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// Report is what JSON writes: version 1 of a stable form.
type Report struct {
	Version     int           `json:"version"` // 1
	Errors      int           `json:"errors"`
	Warnings    int           `json:"warnings"`
	Diagnostics []ReportEntry `json:"diagnostics"` // never null
}

// ReportEntry is one finding of a Report.
type ReportEntry struct {
	Severity string `json:"severity"` // "error", "warning", "note"
	Diagnostic
}

// JSON writes list for programs, as a Report. All findings are written, however many: a program can count.
func JSON(w io.Writer, list List) error { return encode(w, NewReport(list)) }

// NewReport returns list as JSON writes it, for commands that write more than findings.
func NewReport(list List) Report {
	list, _ = list.hide()
	r := Report{Version: 1, Diagnostics: []ReportEntry{}}
	for _, d := range list {
		switch d.Severity {
		case Error:
			r.Errors++
		case Warning:
			r.Warnings++
		}
		r.Diagnostics = append(r.Diagnostics, ReportEntry{d.Severity.String(), d})
	}
	return r
}

func encode(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(v)
}

// GitHub writes list as the workflow commands that GitHub Actions shows beside the code. As Text it writes at most Limit findings, then how
// many are left: Actions itself shows only the first few of a step.
func GitHub(w io.Writer, list List) error {
	var b strings.Builder
	list, _ = list.hide()
	for i, d := range list {
		if i == Limit {
			fmt.Fprintf(&b, "::notice title=more::… and %s\n", plural(len(list)-Limit, "more finding"))
			break
		}
		kind := map[Severity]string{Error: "error", Warning: "warning", Note: "notice"}[d.Severity]
		props := []string{}
		if d.Pos.File != "" {
			props = append(props, "file="+property(d.Pos.File))
		}
		if d.Pos.IsValid() {
			props = append(props, fmt.Sprintf("line=%d", d.Pos.Line))
			if d.Pos.Col > 0 {
				props = append(props, fmt.Sprintf("col=%d", d.Pos.Col))
			}
			if d.Pos.Col > 0 && d.Len > 0 {
				props = append(props, fmt.Sprintf("endColumn=%d", d.Pos.Col+d.Len))
			}
		}
		props = append(props, "title="+property(d.Code))
		fmt.Fprintf(&b, "::%s %s::%s\n", kind, strings.Join(props, ","), data(full(d)))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// full is a finding's whole text, for formats that have one field for it.
func full(d Diagnostic) string {
	lines := []string{d.Msg}
	if d.Hint != "" {
		lines = append(lines, d.Hint)
	}
	return strings.Join(append(lines, d.Notes...), "\n")
}

var dataEscape = strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A")

func data(s string) string { return dataEscape.Replace(s) }

func property(s string) string { return strings.NewReplacer(":", "%3A", ",", "%2C").Replace(data(s)) }

// runes counts the code points of the first n bytes of s.
func runes(s string, n int) int { return utf8.RuneCountInString(s[:max(0, min(n, len(s)))]) }
