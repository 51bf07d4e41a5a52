package engine_test

import (
	"fmt"
	"testing"

	"github.com/dynamograph/dynamo/nodes/engine"
)

func TestResolveTypes(t *testing.T) {
	for _, tt := range []struct {
		dtype, flag string
		conflicts   string
	}{
		{"bf16", "bfloat16", "[]"}, {"f16", "half", "[]"}, {"f32", "float32", "[]"}, {"", "bfloat16", "[]"},
		{"bf16", "float16", "[{dtype dtype bf16 float16}]"},
	} {
		c := engine.Config{Engine: "vllm", DType: tt.dtype, Flags: map[string]any{"dtype": tt.flag}}
		out, from, conflicts := c.Resolve()
		if got := fmt.Sprint(conflicts); got != tt.conflicts {
			t.Errorf("%q and %q: %s", tt.dtype, tt.flag, got)
		}
		if tt.dtype != "" && (out.DType != tt.dtype || len(from) > 0) || tt.dtype == "" && (out.DType != tt.flag || from["dtype"] != "flags.dtype") {
			t.Errorf("%q and %q: %q from %v", tt.dtype, tt.flag, out.DType, from)
		}
	}
}
