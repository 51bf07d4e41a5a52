package parse_test

import (
	"fmt"
	"testing"

	"go.uber.org/goleak"

	"github.com/dynamograph/dynamo/nodes/text/parse"
)

// A parser left alone would hold its goroutine.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func ExampleParser_Feed() {
	p, err := parse.New(parse.Options{
		Tools: "hermes", Reasoning: "qwen3",
		NewID: func(call int, _ string) string { return fmt.Sprint("call_", call) },
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer p.Close()
	deltas := []string{"<thi", "nk>Weather: ask.</th", "ink>\n\nLet me", " look.\n<tool_", `call>{"name": "weather", "argu`, `ments": {"city": "Os`, `lo"}}`, "</tool_call>"}
	for _, delta := range deltas {
		for _, e := range p.Feed(delta) {
			switch e.Kind {
			case parse.Content:
				fmt.Printf("content %q\n", e.Text)
			case parse.Reasoning:
				fmt.Printf("reasoning %q\n", e.Text)
			case parse.CallBegin:
				fmt.Printf("call %d: %s\n", e.Call, e.Name)
			case parse.CallArguments:
				fmt.Printf("arguments %q\n", e.Text)
			case parse.CallEnd:
				fmt.Println("end")
			}
		}
	}
	p.Finish(false)
	// Output:
	// reasoning "Weather: ask."
	// content "Let me"
	// content " look."
	// call 0: weather
	// arguments "{\"city\": \"Os"
	// arguments "lo\"}"
	// end
}

func ExampleAll() {
	m, err := parse.All(parse.Options{Tools: "pythonic"}, `[add(a=1, b=2), log(text='a "b"')]`, false)
	fmt.Println(m.Content, err)
	for _, c := range m.Calls {
		fmt.Println(c.Name, c.Arguments, c.Whole)
	}
	m, _ = parse.All(parse.Options{Tools: "hermes"}, `<tool_call>{"name": "f", "arguments": {"city": "Os`, true)
	fmt.Println(m.Calls[0].Name, m.Calls[0].Arguments, m.Calls[0].Whole)
	// Output:
	//  <nil>
	// add {"a": 1, "b": 2} true
	// log {"text": "a \"b\""} true
	// f {"city": "Os false
}
