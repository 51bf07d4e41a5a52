package template_test

import (
	"context"
	"fmt"

	"github.com/dynamograph/dynamo/nodes/text/template"
)

func ExampleTemplate_Render() {
	t, err := template.Compile(
		`{% for m in messages %}[{{ m.role }}] {{ m.content }}{{ eos_token }}{% endfor %}{% if add_generation_prompt %}[assistant] {% endif %}`,
		template.Options{Special: map[string]string{"eos_token": "</s>"}})
	if err != nil {
		fmt.Println(err)
		return
	}
	p, err := t.Render(context.Background(), template.Input{Messages: []byte(`[{"role":"user","content":"Hi"}]`), Generate: true})
	fmt.Println(p.Text, err)
	// Output:
	// [user] Hi</s>[assistant]  <nil>
}
