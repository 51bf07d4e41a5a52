package jinja

import "strings"

// escapeHTML is markupsafe's escape.
func escapeHTML(s string) string { return htmlEscaper.Replace(s) }

var htmlEscaper = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", "'", "&#39;", `"`, "&#34;")

// escaped escapes the strings of v.
func escaped(v Value) Value {
	switch v := v.(type) {
	case string:
		return markup(escapeHTML(v))
	case *tuple:
		out := &tuple{}
		for _, x := range v.items {
			out.items = append(out.items, escaped(x))
		}
		return out
	case *List:
		out := &List{}
		for _, x := range v.Items {
			out.Items = append(out.Items, escaped(x))
		}
		return out
	}
	return v
}

// unescapeHTML undoes escapes of the usual five characters.
func unescapeHTML(s string) string {
	return strings.NewReplacer("&amp;", "&", "&lt;", "<", "&gt;", ">", "&quot;", `"`, "&#34;", `"`, "&#39;", "'", "&nbsp;", "\u00a0").Replace(s)
}
