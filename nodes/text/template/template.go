// Package template renders the chat templates that models carry into one prompt text, as Hugging Face's transformers renders them: see package
// jinja for the language. It brings messages to the forms that a template takes, marks text of the request that spells special tokens, and
// cuts the prompt where the last message is to be continued. It does no tokenizing.
package template

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/dynamograph/dynamo/graph/flow"
	"github.com/dynamograph/dynamo/nodes/text/jinja"
)

// Options is what a template knows beside the request.
type Options struct {
	Special   map[string]string // bos_token, eos_token, pad_token, unk_token: variables of the template
	Now       func() time.Time  // for strftime_now; nil: time.Now
	MaxBytes  int               // of one rendered prompt; 0: 64 MiB
	MaxSteps  int               // loop turns, calls and the like of one render, see jinja.Limits; 0: a million
	MaxMemory int               // bytes of values that one render makes, see jinja.Limits; 0: 256 MiB
}

// Template is a compiled chat template. It does not change and is safe for concurrent use.
type Template struct {
	program *jinja.Template
	source  string
	o       Options
	takes   abilities
}

// Compile compiles source and finds out by trial which forms of content it takes. The error names all that is wrong, with lines.
func Compile(source string, o Options) (*Template, error) {
	if strings.TrimSpace(source) == "" {
		return nil, errors.New("chat template: empty")
	}
	program, err := jinja.Compile(source, jinja.Options{Now: o.Now})
	if err != nil {
		return nil, fmt.Errorf("chat template: %w", err)
	}
	t := &Template{program: program, source: source, o: o}
	t.takes = t.probe()
	return t, nil
}

// Warnings tells of filters, tests and functions that the template names in a branch and that nothing has: it fails where it gets there.
func (t *Template) Warnings() []string {
	var out []string
	for _, w := range t.program.Warnings() {
		out = append(out, fmt.Sprintf("line %d: %s", w.Line, w.Msg))
	}
	return out
}

// Input is one request. The JSON is as the client sent it: templates see every field, keys in their order.
type Input struct {
	Messages json.RawMessage // array of objects
	Tools    json.RawMessage // array; nil, null and [] are "none"
	Args     json.RawMessage // object: further variables; may be nil
	Generate bool            // open the assistant's turn behind the messages
	Continue bool            // end inside of the last message, so that the model goes on with it; excludes Generate
	// Guard, if set, is applied to every string of the request: it may put mark, which occurs nowhere in the request or the template, into
	// a text, and must leave what it does not guard as it is. Templates do not see marks: they compare, measure and search the text without
	// them. See tokenizer.Guard.
	Guard func(s string, mark rune) string
}

// Prompt is a rendered request.
type Prompt struct {
	Text string
	Mark rune // what Guard put into Text: to be taken out when special tokens have been found; 0 without Guard
}

// Render renders one request. Errors are *flow.Error: what the template itself raises is an InvalidRequest with the template's words.
func (t *Template) Render(ctx context.Context, in Input) (Prompt, error) {
	marks := unusedMarks(t.source, string(in.Messages), string(in.Tools), string(in.Args))
	if len(marks) < 2 {
		return Prompt{}, invalid("messages", "template.marks", "the messages hold nearly all of the code points U+FDD0 to U+FDEF, which are not for interchange")
	}
	d := decoder{}
	p := Prompt{}
	run := jinja.Input{}
	if in.Guard != nil {
		p.Mark, run.Mark = marks[0], marks[0]
		d.text = func(s string) string { return in.Guard(s, p.Mark) }
		d.mark = string(p.Mark)
		run.Text = d.text
	}
	messages, err := t.messages(&d, in.Messages)
	if err != nil {
		return Prompt{}, err
	}
	vars := map[string]jinja.Value{"tools": nil, "documents": nil}
	if err := d.args(in.Args, vars); err != nil {
		return Prompt{}, err
	}
	if len(in.Tools) > 0 {
		v, err := d.decode(in.Tools)
		if err != nil {
			return Prompt{}, invalid("tools", "template.tools", "tools: %v", err)
		}
		switch l, ok := v.(*jinja.List); {
		case v == nil:
		case !ok:
			return Prompt{}, invalid("tools", "template.tools", "tools: must be an array")
		case len(l.Items) > 0:
			vars["tools"] = v
		}
	}
	if in.Continue {
		if in.Generate {
			return Prompt{}, invalid("continue_final_message", "template.continue", "continue_final_message and add_generation_prompt exclude each other")
		}
		if err := markLast(messages, marks[1]); err != nil {
			return Prompt{}, err
		}
		run.Hold = marks[1]
	}
	vars["messages"] = messages
	vars["add_generation_prompt"] = in.Generate
	run.Vars = vars
	run.Limits = jinja.Limits{Steps: t.o.MaxSteps, Memory: t.o.MaxMemory, Output: t.o.MaxBytes}
	p.Text, err = t.run(ctx, run)
	if err != nil {
		return Prompt{}, err
	}
	if in.Continue {
		i := strings.LastIndex(p.Text, string(marks[1]))
		if i < 0 {
			return Prompt{}, invalid("continue_final_message", "template.continue", "the model's chat template does not show the last message, so it cannot be continued")
		}
		p.Text = strings.ReplaceAll(p.Text[:i], string(marks[1]), "")
	}
	return p, nil
}

// run executes the program. Errors are *flow.Error.
func (t *Template) run(ctx context.Context, in jinja.Input) (string, error) {
	for k, v := range t.o.Special {
		if _, ok := in.Vars[k]; !ok {
			in.Vars[k] = v
		}
	}
	text, err := t.program.Render(ctx, in)
	var e *jinja.Error
	switch {
	case err == nil:
		return text, nil
	case !errors.As(err, &e):
		return "", flow.AsError(err)
	}
	e.Msg = strings.Map(func(r rune) rune {
		if r != 0 && (r == in.Mark || r == in.Hold) {
			return -1
		}
		return r
	}, e.Msg)
	switch e.Type {
	case jinja.TypeRaised:
		return "", invalid("messages", "template.raised", "%s", e.Msg)
	case jinja.TypeLimit:
		return "", invalid("messages", "template.limit", "the model's chat template, line %d: %s", e.Line, e.Msg)
	case jinja.TypeBug:
		return "", flow.Errorf(flow.Internal, "template.bug", "the model's chat template, line %d: %s", e.Line, e.Msg)
	}
	return "", invalid("messages", "template.failed", "the model's chat template fails on these messages: %v", e)
}

func invalid(param, reason, format string, args ...any) *flow.Error {
	e := flow.Errorf(flow.InvalidRequest, reason, format, args...)
	e.Param = param
	return e
}

// unusedMarks are the code points of U+FDD0 to U+FDEF (set aside by Unicode for use inside of a program) that occur in none of the texts,
// neither as themselves nor as a JSON escape.
func unusedMarks(texts ...string) []rune {
	var used [32]bool
	for _, s := range texts {
		for rest := s; ; {
			i := strings.Index(rest, "\xEF\xB7")
			if i < 0 || i+2 >= len(rest) {
				break
			}
			if c := rest[i+2]; c >= 0x90 && c <= 0xAF {
				used[c-0x90] = true
			}
			rest = rest[i+2:]
		}
		for rest := s; ; {
			i := strings.Index(rest, `\u`)
			if i < 0 || i+6 > len(rest) {
				break
			}
			if n, err := strconv.ParseUint(rest[i+2:i+6], 16, 16); err == nil && n >= 0xFDD0 && n <= 0xFDEF {
				used[n-0xFDD0] = true
			}
			rest = rest[i+2:]
		}
	}
	var out []rune
	for i, u := range used {
		if !u {
			out = append(out, rune(0xFDD0+i))
		}
	}
	return out
}
