package template

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// twenty is a chat of 20 turns, 12 KiB of text.
func twenty() json.RawMessage {
	var b strings.Builder
	b.WriteString(`[{"role":"system","content":"You are helpful."}`)
	for i := range 20 {
		role := []string{"user", "assistant"}[i%2]
		fmt.Fprintf(&b, `,{"role":"%s","content":%q}`, role, strings.Repeat(fmt.Sprintf("Turn %d: some words of text. ", i), 21))
	}
	b.WriteString(`,{"role":"user","content":"And now?"}]`)
	return json.RawMessage(b.String())
}

func BenchmarkRender(b *testing.B) {
	sources := map[string]string{"chatML": chatML}
	if dir := os.Getenv("DYNAMO_SHARED"); dir != "" {
		raw, err := os.ReadFile(filepath.Join(dir, "templates", "templates.json"))
		if err != nil {
			b.Fatal(err)
		}
		var all map[string]string
		if err := json.Unmarshal(raw, &all); err != nil {
			b.Fatal(err)
		}
		for _, n := range []string{"Qwen-Qwen3-0.6B.jinja", "openai-gpt-oss-120b.jinja", "meta-llama-Llama-3.1-8B-Instruct.jinja"} {
			if all[n] != "" {
				sources[n] = all[n]
			}
		}
	}
	in := Input{Messages: twenty(), Generate: true}
	for name, src := range sources {
		tp := mustCompile(b, src)
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := tp.Render(context.Background(), in); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
