package jinja

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"testing"
	"time"
)

func render(t testing.TB, source string, in Input) (string, error) {
	t.Helper()
	tp, err := Compile(source, Options{Now: fixed})
	if err != nil {
		t.Fatalf("%.200q: %v", source, err)
	}
	return tp.Render(context.Background(), in)
}

// TestLimits: no template takes more than its share, whatever it does in one expression.
func TestLimits(t *testing.T) {
	in := Input{
		Vars:   map[string]Value{"s": strings.Repeat("ab ", 1000), "l": NewList(1, 2, 3)},
		Limits: Limits{Steps: 100_000, Memory: 8 << 20, Output: 1 << 20},
	}
	for name, source := range map[string]string{
		"repeat":       "{{ 'x' * 10**12 }}",
		"repeat again": "{% set a = 'x' * 1000000 %}{% set b = a * 1000000 %}",
		"list":         "{{ [1] * 10**10 }}",
		"tuple":        "{{ (1,2) * 10**18 }}",
		"doubling":     "{% set ns = namespace(a='x') %}{% for i in range(100) %}{% set ns.a = ns.a ~ ns.a %}{% endfor %}",
		"lists double": "{% set ns = namespace(a=[1]) %}{% for i in range(100) %}{% set ns.a = ns.a + ns.a %}{% endfor %}",
		"shared":       "{% set ns = namespace(a=[1]) %}{% for i in range(60) %}{% set ns.a = [ns.a, ns.a] %}{% endfor %}{{ ns.a }}",
		"shared JSON":  "{% set ns = namespace(a=[1]) %}{% for i in range(60) %}{% set ns.a = [ns.a, ns.a] %}{% endfor %}{{ ns.a|tojson }}",
		"shared equal": "{% set ns = namespace(a=[1],b=[1]) %}{% for i in range(60) %}{% set ns.a = [ns.a, ns.a] %}{% set ns.b = [ns.b, ns.b] %}{% endfor %}{{ ns.a == ns.b }}",
		"deep":         "{% set ns = namespace(a=[]) %}{% for i in range(5000) %}{% set ns.a = [ns.a] %}{% endfor %}{{ ns.a }}",
		"replace":      "{{ s|replace('', s) }}",
		"join":         "{{ range(99999)|join(s) }}",
		"join method":  "{{ s.join(s) }}",
		"center":       "{{ s.center(10**10) }}",
		"format":       "{{ '{:>9999999999}'.format(1) }}",
		"width":        "{{ '{:>999999999}'.format(1) }}",
		"percent":      "{{ '%999999999d' % 1 }}",
		"precision":    "{{ '%.99999999f' % 1 }}",
		"power":        "{{ 9**99999999 }}",
		"product":      "{% set ns = namespace(a=9**9999) %}{% for i in range(1000) %}{% set ns.a = ns.a * ns.a %}{% endfor %}",
		"indent":       "{{ s|indent(10**9) }}",
		"tojson":       "{{ [l]|tojson(indent=10**9) }}",
		"batch":        "{{ l|batch(10**9, 'x')|list }}",
		"slice":        "{{ l|slice(10**9)|list }}",
		"tabs":         "{{ '\t'.expandtabs(10**10) }}",
		"range":        "{{ range(10**9)|list }}",
		"loops":        "{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}",
		"search":       "{% for i in range(99999) %}{% if 'z' in s %}{% endif %}{% endfor %}",
		"filters":      "{% for i in range(9999) %}{% set x = range(9999)|sum %}{% endfor %}",
		"recursion":    "{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}",
		"caller":       "{% macro f() %}{{ caller() }}{% endmacro %}{% macro g() %}{% call f() %}{{ g() }}{% endcall %}{% endmacro %}{{ g() }}",
		"loop":         "{% for x in l recursive %}{{ loop(l) }}{% endfor %}",
		"output":       "{% for i in range(1000) %}{{ s }}{% endfor %}",
		"fields":       "{{ ('{0}' * 1000).format(s) }}{{ ('{0}' * 9000).format(s) }}",
		"translate":    "{{ s.translate({97: s}) }}",
		"arguments":    "{% macro f() %}{{ varargs|length }}{% endmacro %}{% for i in range(999) %}{{ f(*range(99999)) }}{% endfor %}",
	} {
		t.Run(name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			began := time.Now()
			_, err := render(t, source, in)
			took := time.Since(began)
			runtime.ReadMemStats(&after)
			var e *Error
			if !errors.As(err, &e) || e.Type != TypeLimit && e.Type != "ValueError" && e.Type != "OverflowError" {
				t.Errorf("%.300v", err)
			}
			if n := after.TotalAlloc - before.TotalAlloc; n > 64<<20 {
				t.Errorf("%d MiB were allocated", n>>20)
			}
			if took > 10*time.Second {
				t.Errorf("took %v", took)
			}
		})
	}
}

// TestDeep: as deep as may be, in all ways at once, the stack does not end.
func TestDeep(t *testing.T) {
	for name, source := range map[string]string{
		"brackets": "{{ " + strings.Repeat("(", 90) + "1" + strings.Repeat(")", 90) + " }}",
		"sum":      "{{ 1" + strings.Repeat("+1", 199) + " }}",
		"filters":  "{{ 1" + strings.Repeat("|abs", 199) + " }}",
		"ifs":      strings.Repeat("{% if 1 %}", 95) + strings.Repeat("{% endif %}", 95),
		"macros":   "{% macro f(n) %}{% if n %}{{ " + strings.Repeat("(1+", 40) + "f(n-1)|length" + strings.Repeat(")", 40) + " }}{% endif %}{% endmacro %}{{ f(99) }}",
	} {
		if _, err := render(t, source, Input{}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, source := range []string{
		"{{ " + strings.Repeat("[", 60000), "{{ " + strings.Repeat("-", 60000) + "1 }}", "{{ " + strings.Repeat("1 if 1 else ", 9000) + "1 }}",
		"{{ 1" + strings.Repeat("+1", 30000) + " }}", "{{ " + strings.Repeat("(1+", 99) + "1" + strings.Repeat("+1)", 99) + strings.Repeat("+1", 190) + "}}",
		strings.Repeat("{% for x in y %}", 5000), "{{ a" + strings.Repeat("()", 30000) + " }}", "{{ a is b(" + strings.Repeat("a is b(", 9000),
	} {
		if _, err := Compile(source, Options{}); err != nil && strings.Contains(err.Error(), TypeBug) {
			t.Errorf("%.80q: %v", source, err)
		}
	}
}

func TestCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	tp, err := Compile("{% for i in range(9999) %}{% endfor %}", Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tp.Render(ctx, Input{}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

// TestMarks: functions do not see marks, and what they cut keeps them.
func TestMarks(t *testing.T) {
	const m, h = "\uFDD0", "\uFDD1"
	in := Input{Mark: 0xFDD0, Hold: 0xFDD1, Vars: map[string]Value{
		"s": " <" + m + "x>é<" + m + "y> ", "k": "<" + m + "x>", "end": "so far " + h, "js": `{"a": "<` + m + `x>"}`,
	}}
	for source, want := range map[string]string{
		"s":                               in.Vars["s"].(string),
		"s|length":                        "9",
		"s|trim":                          "<" + m + "x>é<" + m + "y>",
		"k == '<x>'":                      "True",
		"k in ['<x>']":                    "True",
		"'<x>' in s":                      "True",
		"'x' in k":                        "True",
		"s.split('<x>')[1]":               "é<" + m + "y> ",
		"s.replace('<y>', '!')":           " <" + m + "x>é! ",
		"s|replace('<x>', '')":            " é<" + m + "y> ",
		"s.find('é')":                     "4",
		"k.startswith('<x')":              "True",
		"k[1:]":                           "x>",
		"k[0]":                            "<" + m,
		"k[:1]":                           "<" + m,
		"k|list|length":                   "3",
		"k|list|join":                     "<" + m + "x>",
		"k|reverse":                       ">x<" + m,
		"k[::-1]":                         ">x<" + m,
		"k|upper":                         "<" + m + "X>",
		"k.removeprefix('<')":             "x>",
		"k.partition('x')|join('|')":      "<" + m + "|x|>",
		"[k]":                             "['<" + m + "x>']",
		"k|tojson":                        `"<` + m + `x>"`,
		"k|tojson(ensure_ascii=true)":     `"<` + m + `x>"`,
		"k.center(5, '.')":                ".<" + m + "x>.",
		"'%5s' % k":                       "  <" + m + "x>",
		"k.isascii()":                     "True",
		"k ~ '|' ~ k":                     "<" + m + "x>|<" + m + "x>",
		"end|trim":                        "so far " + h,
		"end.endswith('far ')":            "True",
		"(js|fromjson).a == '<x>'":        "True",
		"'a\nb'.splitlines()|length":      "2",
		"(s + '\n' + k).splitlines()[-1]": "<" + m + "x>",
		"k|indent":                        "<" + m + "x>",
		"[k, '<w>']|sort|last == k":       "True",
	} {
		if got, err := render(t, "{{ "+source+" }}", in); err != nil || got != want {
			t.Errorf("%s: %q, %v; want %q", source, got, err, want)
		}
	}
}

// TestErrors: all that is wrong with a template is told, with lines.
func TestErrors(t *testing.T) {
	for source, want := range map[string]string{
		"a\n{{ x|nope }}\n{% for i in y %}{{ i is odder }}{{ g(1) }}{% endfor %}": "line 2: No filter named 'nope'.; line 3: No function named 'g'.; line 3: No test named 'odder'.",
		"\n\n{% frob %}{{ x|nope }}{% endfrob %}":                                 "line 3: Encountered unknown tag 'frob'.; line 3: No filter named 'nope'.",
		"{% include 'a' %}\n{% extends 'b' %}":                                    "line 1: 'include' is not supported: a chat template is one file; line 2: 'extends' is not supported: a chat template is one file",
		"{{ 1 +\n}}":                                                              "line 2: unexpected 'end of print statement'",
		"\xff":                                                                    "line 1: not valid UTF-8 at byte 0",
	} {
		if _, err := Compile(source, Options{}); err == nil || err.Error() != want {
			t.Errorf("%q: %v\nwant %s", source, err, want)
		}
	}
	_, err := render(t, "{% macro f() %}\n{{ none + 1 }}{% endmacro %}\n\n{{ f() }}", Input{})
	var e *Error
	if !errors.As(err, &e) || e.Line != 2 || e.Type != "TypeError" {
		t.Errorf("%v", err)
	}
	if tp, err := Compile("{{ mine(1) }}", Options{Known: []string{"mine"}}); err != nil || tp == nil {
		t.Errorf("%v", err)
	}
}
