// Package render holds chat templates of ours for models whose authors publish a program instead of a template. They are Jinja as all
// others are, so that package template guards and bounds them alike.
package render

import _ "embed" // of the templates

//go:embed deepseek_v3_2.jinja
var deepseekV32 string

// Find returns the source of a template by the name that family cards use; ok is false where there is none.
func Find(name string) (source string, ok bool) {
	switch name {
	case "deepseek_v3_2":
		return deepseekV32, true
	}
	return "", false
}
