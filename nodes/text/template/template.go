// Package template renders the chat templates that models carry (Jinja, as Hugging Face's transformers renders them) into one prompt text.
// It does no tokenizing. A template is somebody else's program: the length and nesting of its source, its loop turns, the depth of its calls,
// the length of ranges and of its output are bounded, loops observe the context, and a panic is an error. What it builds inside of one
// expression is not bounded: the library has no hook for that.
package template

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/ardanlabs/jinja"

	"github.com/dynamograph/dynamo/graph/flow"
)

// Options is what a template knows beside the request.
type Options struct {
	Special  map[string]string // bos_token, eos_token, pad_token, unk_token: variables of the template
	Now      func() time.Time  // for strftime_now; nil: time.Now
	MaxBytes int               // of one rendered prompt; 0: 64 MiB
	MaxSteps int               // loop turns and macro calls of one render; 0: a million
}

// Template is a compiled chat template. It does not change and is safe for concurrent use.
type Template struct {
	program *jinja.Template
	source  string
	o       Options
	takes   abilities
}

// Limits on a template's source: beyond them a template is refused, since parsing nests as deep as the source does. In brackets, the most
// that 72 popular templates need.
const (
	maxSource = 128 << 10 // bytes (18 KiB)
	maxTag    = 32 << 10  // bytes (6 KiB)
	maxNested = 100       // brackets inside each other
	maxDepth  = 64        // macro calls and recursive loops inside each other
)

// Compile parses source and finds out by trial which forms of content it takes.
func Compile(source string, o Options) (*Template, error) {
	if strings.TrimSpace(source) == "" {
		return nil, errors.New("chat template: empty")
	}
	if len(source) > maxSource {
		return nil, fmt.Errorf("chat template: %d bytes; at most %d are taken", len(source), maxSource)
	}
	if o.MaxBytes == 0 {
		o.MaxBytes = 64 << 20
	}
	if o.MaxSteps == 0 {
		o.MaxSteps = 1e6
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	t := &Template{source: source, o: o}
	counted, err := instrument(source)
	if err != nil {
		return nil, fmt.Errorf("chat template: %w", err)
	}
	if t.program, err = compile(counted); err != nil {
		return nil, fmt.Errorf("chat template: %w", err)
	}
	t.takes = t.probe()
	return t, nil
}

func compile(source string) (t *jinja.Template, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("cannot be parsed: %v", r)
		}
	}()
	return jinja.Compile(source)
}

// Input is one request. The JSON is as the client sent it: templates see every field, keys in their order.
type Input struct {
	Messages json.RawMessage // array of objects
	Tools    json.RawMessage // array; nil, null and [] are "none"
	Args     json.RawMessage // object: further variables; may be nil
	Generate bool            // open the assistant's turn behind the messages
	Continue bool            // end inside of the last message, so that the model goes on with it; excludes Generate
	// Guard, if set, is applied to every string of the request but roles: it may put mark, which occurs nowhere in the request or the
	// template, into a text, and must leave what it does not guard as it is. See tokenizer.Guard.
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
	if in.Guard != nil {
		p.Mark = marks[0]
		d.text = func(s string) string { return in.Guard(s, p.Mark) }
	}
	messages, err := t.messages(&d, in.Messages)
	if err != nil {
		return Prompt{}, err
	}
	vars := map[string]jinja.Value{"tools": jinja.None(), "documents": jinja.None()}
	if err := d.args(in.Args, vars); err != nil {
		return Prompt{}, err
	}
	if len(in.Tools) > 0 {
		v, err := d.decode(in.Tools)
		switch {
		case err != nil:
			return Prompt{}, invalid("tools", "template.tools", "tools: %v", err)
		case v.IsNone():
		case !v.IsList():
			return Prompt{}, invalid("tools", "template.tools", "tools: must be an array")
		case v.AsList().Len() > 0:
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
	}
	vars["messages"] = messages
	vars["add_generation_prompt"] = jinja.NewBool(in.Generate)
	p.Text, err = t.run(ctx, vars, t.o.MaxSteps)
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
func (t *Template) run(ctx context.Context, vars map[string]jinja.Value, steps int) (text string, err error) {
	for k, v := range t.o.Special {
		if _, ok := vars[k]; !ok {
			vars[k] = jinja.NewString(v)
		}
	}
	m := meter{ctx: ctx, steps: steps}
	m.define(vars)
	vars["raise_exception"] = jinja.NewCallable("raise_exception", func(args []jinja.Value, _ map[string]jinja.Value) (jinja.Value, error) {
		msg := "the chat template refuses these messages"
		if len(args) > 0 {
			if msg = args[0].String(); args[0].IsString() {
				msg = args[0].AsString()
			}
		}
		return jinja.Undefined(), invalid("messages", "template.raised", "%s", msg)
	})
	vars["strftime_now"] = jinja.NewCallable("strftime_now", func(args []jinja.Value, _ map[string]jinja.Value) (jinja.Value, error) {
		if len(args) == 0 || !args[0].IsString() {
			return jinja.Undefined(), errors.New("strftime_now: want a format")
		}
		return jinja.NewString(strftime(t.o.Now(), args[0].AsString())), nil
	})
	defer func() {
		if r := recover(); r != nil {
			text, err = "", invalid("messages", "template.failed", "the model's chat template fails on these messages: %v", r)
		}
	}()
	text, err = t.program.RenderValues(vars)
	var e *flow.Error
	switch {
	case err == nil && len(text) > t.o.MaxBytes:
		return "", invalid("messages", "template.limit", "the rendered prompt has %d bytes; at most %d are taken", len(text), t.o.MaxBytes)
	case err == nil:
		return text, nil
	case errors.As(err, &e):
		return "", e
	case ctx.Err() != nil:
		return "", flow.AsError(ctx.Err())
	}
	return "", invalid("messages", "template.failed", "the model's chat template fails on these messages: %v", err)
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
			var c int
			if n, _ := fmt.Sscanf(rest[i+2:i+6], "%04x", &c); n == 1 && c >= 0xFDD0 && c <= 0xFDEF {
				used[c-0xFDD0] = true
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
