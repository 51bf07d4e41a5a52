// Package jinja compiles and renders Jinja templates as Hugging Face's transformers does with chat templates: Jinja2 3.1 in its immutable
// sandbox with trim_blocks, lstrip_blocks, break and continue, the generation tag, and without autoescape; values behave as Python's do.
// It knows no files: include, import and extends are refused. A template is somebody else's program: source, nesting, steps, memory and
// depth of calls are bounded, see Limits.
package jinja

import (
	"fmt"
	"strings"
)

// Error is what is wrong with a template, or what a render raised.
type Error struct {
	Line int    // in the template, from 1; 0 is unknown
	Type string // the exception that Python has for it, as "UndefinedError"; "LimitError" for a limit of ours
	Msg  string // as Jinja or Python words it, where they have it
}

// The types of Error that callers branch on.
const (
	TypeRaised = "TemplateError" // raise_exception: Msg is the template's own
	TypeLimit  = "LimitError"
	TypeBug    = "InternalError" // of this package: a template found a mistake in it
)

// Error gives line, type and message.
func (e *Error) Error() string {
	if e.Line > 0 {
		return fmt.Sprintf("line %d: %s: %s", e.Line, e.Type, e.Msg)
	}
	return e.Type + ": " + e.Msg
}

// Errors is all that Compile found wrong, by line.
type Errors []*Error

// Error joins the errors with "; ".
func (e Errors) Error() string {
	var b strings.Builder
	for i, x := range e {
		if i > 0 {
			b.WriteString("; ")
		}
		fmt.Fprintf(&b, "line %d: %s", x.Line, x.Msg)
	}
	return b.String()
}

// fail raises an exception: it is recovered in Render. Line is set there.
func fail(typ, format string, args ...any) {
	panic(&Error{Type: typ, Msg: fmt.Sprintf(format, args...)})
}

func typeError(format string, args ...any) { fail("TypeError", format, args...) }

func valueError(format string, args ...any) { fail("ValueError", format, args...) }
