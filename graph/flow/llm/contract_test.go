package llm_test

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/dynamograph/dynamo/graph/flow/llm"
)

// Every field counts, one that is added later too.
func TestContractDiffSeesEveryField(t *testing.T) {
	var a llm.Contract
	v := reflect.ValueOf(&a).Elem()
	for i := range v.NumField() {
		b := a
		switch f := reflect.ValueOf(&b).Elem().Field(i); f.Kind() {
		case reflect.String:
			f.SetString("x")
		case reflect.Int:
			f.SetInt(7)
		}
		name, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("json"), ",")
		if d := a.Diff(b); len(d) != 1 || !strings.HasPrefix(d[0], name+" ") {
			t.Errorf("field %s: %q", name, d)
		}
	}
}

func ExampleContract_Diff() {
	prefill := llm.Contract{ModelID: "sha256:1", BlockSize: 16, DType: "f16"}
	decode := llm.Contract{ModelID: "sha256:1", BlockSize: 32, DType: "f16"}
	fmt.Println(prefill.Diff(decode))
	// Output: [blockSize 16 and 32]
}
