package jinja_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/dynamograph/dynamo/nodes/text/jinja"
)

func ExampleTemplate_Render() {
	t, err := jinja.Compile("{% for m in messages %}\n<|{{ m.role }}|>{{ m.content | trim }}\n{% endfor %}", jinja.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	messages, err := jinja.ParseJSON([]byte(`[{"role": "user", "content": " Hi "}]`), nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	text, err := t.Render(context.Background(), jinja.Input{Vars: map[string]jinja.Value{"messages": messages}})
	fmt.Print(text, err)
	// Output:
	// <|user|>Hi
	// <nil>
}

func ExampleCompile() {
	_, err := jinja.Compile("{{ x | from_yaml }}\n{% switch x %}", jinja.Options{})
	var all jinja.Errors
	if errors.As(err, &all) {
		for _, e := range all {
			fmt.Println(e.Line, e.Msg)
		}
	}
	// Output:
	// 1 No filter named 'from_yaml'.
	// 2 Encountered unknown tag 'switch'.
}

// TestConcurrent: a template is shared by requests.
func TestConcurrent(t *testing.T) {
	tp, err := jinja.Compile("{% macro f(x) %}{{ x }}{% endmacro %}{% set ns = namespace(n=0) %}{% for i in range(n) %}{% set ns.n = ns.n + i %}{% endfor %}{{ f(ns.n) }}{{ s }}", jinja.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for n := range 32 {
		wg.Go(func() {
			s := strings.Repeat("x", n)
			want := fmt.Sprint(n*(n-1)/2) + s
			for range 20 {
				got, err := tp.Render(context.Background(), jinja.Input{Vars: map[string]jinja.Value{"n": n, "s": s}})
				if err != nil || got != want {
					t.Errorf("%d: %q, %v", n, got, err)
				}
			}
		})
	}
	wg.Wait()
}
