package schema

import (
	"bytes"
	"testing"

	"cuelang.org/go/cue/format"

	"github.com/dynamograph/dynamo/graph/kind"
	"github.com/dynamograph/dynamo/specs/schema"
)

// What is published is formatted as `cue fmt` does it, so that an editor changes nothing.
func TestFormatted(t *testing.T) {
	for _, f := range schema.Files(kind.Default) {
		b, err := format.Source([]byte(f.Text))
		if err != nil {
			t.Fatalf("%s: %v", f.Name, err)
		}
		if !bytes.Equal(bytes.TrimSpace(b), bytes.TrimSpace([]byte(f.Text))) {
			t.Errorf("%s: cue fmt would write\n%s", f.Name, b)
		}
	}
}
