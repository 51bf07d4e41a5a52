package constrain

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// maker makes schemas at random, of all keywords that act.
type maker struct{ *rand.Rand }

func (r maker) schema(depth int) map[string]any {
	s := map[string]any{}
	kinds := 9
	if depth <= 0 {
		kinds = 5
	}
	switch r.IntN(kinds) {
	case 0:
		s["type"] = "integer"
		if r.IntN(2) == 0 {
			lo := r.IntN(2000) - 1000
			s[[]string{"minimum", "exclusiveMinimum"}[r.IntN(2)]] = lo
			if r.IntN(2) == 0 {
				s[[]string{"maximum", "exclusiveMaximum"}[r.IntN(2)]] = lo + 2 + r.IntN(3000)
			}
		} else if r.IntN(3) == 0 {
			s["multipleOf"] = 1 + r.IntN(30)
		}
	case 1:
		s["type"] = "number"
		if r.IntN(2) == 0 {
			lo := r.IntN(20) - 10
			s[[]string{"minimum", "exclusiveMinimum"}[r.IntN(2)]] = lo
			s[[]string{"maximum", "exclusiveMaximum"}[r.IntN(2)]] = lo + 1 + r.IntN(30)
		}
	case 2:
		s["type"] = "string"
		switch r.IntN(5) {
		case 0:
			n := r.IntN(4)
			s["minLength"], s["maxLength"] = n, n+r.IntN(30)
		case 1:
			s["pattern"] = []string{"^[a-c]{2,5}$", "b", "^x", "9$", `^"\\?$`, "^(?:a|bc)+$", "[^a]", `\d\.\d`}[r.IntN(8)]
		case 2:
			s["format"] = []string{"date", "time", "date-time", "uuid", "email", "ipv4", "ipv6", "uri", "hostname", "duration"}[r.IntN(10)]
		}
	case 3:
		s["enum"] = []any{"a", 1, nil, true, "é\"", map[string]any{"k": []any{1}}}[:1+r.IntN(6)]
	case 4:
		s["type"] = []any{"boolean", "null", "integer"}[:1+r.IntN(3)]
	case 5, 6:
		s["type"] = "object"
		props, required := map[string]any{}, []string{}
		for i := range r.IntN(5) {
			name := []string{"a", "ab", "b", "é", `"q"`}[i]
			props[name] = r.schema(depth - 1)
			if r.IntN(2) == 0 {
				required = append(required, name)
			}
		}
		if len(props) > 0 {
			s["properties"], s["required"] = props, required
		}
		switch r.IntN(4) {
		case 0:
			s["additionalProperties"] = r.schema(depth - 1)
		case 1:
			s["additionalProperties"] = false
		case 2:
			if len(props) == 0 {
				s["minProperties"], s["maxProperties"] = 1, 4
				s["propertyNames"] = map[string]any{"pattern": "^[a-z]{1,20}$"}
			}
		}
	case 7:
		s["type"] = "array"
		if r.IntN(3) == 0 {
			s["prefixItems"] = []any{r.schema(depth - 1), r.schema(depth - 1)}
		}
		if r.IntN(3) > 0 {
			s["items"] = r.schema(depth - 1)
		}
		if r.IntN(2) == 0 {
			n := r.IntN(4)
			s["minItems"], s["maxItems"] = n, n+r.IntN(4)
		}
	case 8:
		s[[]string{"anyOf", "allOf", "oneOf"}[r.IntN(3)]] = []any{r.schema(depth - 1), r.schema(depth - 1)}
	}
	return s
}

// TestEqualJSONSchema: what masks let through satisfies the schema, as the library jsonschema in Python sees it.
func TestEqualJSONSchema(t *testing.T) {
	python := os.Getenv("DYNAMO_TEST_TRANSFORMERS")
	if python == "" {
		t.Skip("NOT RUN: set DYNAMO_TEST_TRANSFORMERS to a Python with jsonschema, see tests/run.sh")
	}
	path := filepath.Join(t.TempDir(), "cases")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	w := bufio.NewWriter(f)
	r := maker{rand.New(rand.NewPCG(5, 6))}
	taken, refused, instances := 0, 0, 0
	one := func(schema string) {
		p, err := Compile(context.Background(), Spec{JSONSchema: schema}, tokens)
		if err != nil {
			refused++
			return
		}
		taken++
		texts := []string{}
		for range 6 {
			if text, ended := walk(t, p, r.Rand, 120, false); ended {
				texts = append(texts, text)
			}
		}
		instances += len(texts)
		b, err := json.Marshal(map[string]any{"schema": json.RawMessage(schema), "instances": texts})
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(w, "%s\n", b)
	}
	for _, c := range schemas {
		one(c.schema)
	}
	for range 1500 {
		b, err := json.Marshal(r.schema(3))
		if err != nil {
			t.Fatal(err)
		}
		one(string(b))
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(python, "testdata/validate.py", path).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	t.Logf("%d schemas taken, %d refused by name, %d outputs", taken, refused, instances)
	if taken < 1000 || instances < 3000 {
		t.Errorf("too few")
	}
	if got := strings.TrimSpace(string(out)); got != "refused 0" {
		t.Errorf("%.6000s", got)
	}
}
