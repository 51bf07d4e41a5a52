package constrain

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestSuite: of the official test suite of JSON Schema, no instance that a schema forbids is let through, as json.dumps writes it. Schemas that
// are refused by name are counted, as are instances that the form of our output does not have.
func TestSuite(t *testing.T) {
	dir := os.Getenv("DYNAMO_TEST_JSONSCHEMA_SUITE")
	if dir == "" {
		t.Skip("NOT RUN: set DYNAMO_TEST_JSONSCHEMA_SUITE to tests/draft2020-12 of the suite, which the source of the library jsonschema carries")
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil || len(files) < 20 {
		t.Fatalf("%d files: %v", len(files), err)
	}
	taken, refused, forbidden, allowed, letThrough := 0, 0, 0, 0, 0
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		var groups []struct {
			Description string
			Schema      json.RawMessage
			Tests       []struct {
				Description string
				Data        json.RawMessage
				Valid       bool
			}
		}
		if err := json.Unmarshal(b, &groups); err != nil {
			t.Fatal(err)
		}
		for _, g := range groups {
			p, err := Compile(context.Background(), Spec{JSONSchema: string(g.Schema)}, tokens)
			if err != nil {
				if refused++; strings.Contains(err.Error(), "nothing satisfies") {
					for _, c := range g.Tests {
						if c.Valid {
							t.Errorf("%s: %s: %v, but %s is valid", filepath.Base(f), g.Description, err, c.Data)
						}
					}
				}
				continue
			}
			taken++
			for _, c := range g.Tests {
				v, err := parseJSON(c.Data)
				if err != nil {
					t.Fatal(err)
				}
				ok := takes(p, dumps(v))
				switch {
				case c.Valid:
					if allowed++; ok {
						letThrough++
					}
				case ok:
					t.Errorf("%s: %s: %s: %s is let through", filepath.Base(f), g.Description, c.Description, c.Data)
				default:
					forbidden++
				}
			}
		}
	}
	if taken < 150 || forbidden < 200 || letThrough < 200 {
		t.Errorf("too few")
	}
	t.Logf("%d schemas taken, %d refused by name; %d forbidden instances refused; %d of %d allowed ones have our form", taken, refused, forbidden, letThrough, allowed)
}

// dumps writes v as Python's json.dumps does.
func dumps(v *jv) string {
	switch v.kind {
	case '"':
		return jsonString(v.text)
	case '{', '[':
		s := string(v.kind)
		for i, e := range v.vals {
			if i > 0 {
				s += ", "
			}
			if v.kind == '{' {
				s += jsonString(v.keys[i]) + ": "
			}
			s += dumps(e)
		}
		return s + string(v.kind+2)
	}
	return v.text
}
