package transporttest

import (
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/dynamograph/dynamo/graph/flow/llm"
)

// fullRequest returns a request in which every field is set, each to a value of its own: a field that a transport forgets shows.
func fullRequest(t *testing.T) *llm.TokensRequest {
	r := new(llm.TokensRequest)
	n := 1
	fill(t, reflect.ValueOf(r).Elem(), "request", &n)
	r.Phase = llm.PhaseDecode
	r.Logprobs = -1
	return r
}

func fill(t *testing.T, v reflect.Value, path string, n *int) {
	*n++
	switch v.Kind() {
	case reflect.String:
		v.SetString(fmt.Sprintf("%s é %d", path, *n))
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int:
		v.SetInt(int64(*n))
	case reflect.Uint8, reflect.Uint32, reflect.Uint64:
		v.SetUint(uint64(*n))
	case reflect.Float32:
		v.SetFloat(float64(*n) / 4)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		for i := range 2 {
			fill(t, v.Index(i), path, n)
		}
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(t, v.Elem(), path, n)
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		for range 2 {
			key, val := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
			fill(t, key, path, n)
			fill(t, val, path, n)
			v.SetMapIndex(key, val)
		}
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			v.Set(reflect.ValueOf(time.Unix(1800000000+int64(*n), int64(*n))))
			return
		}
		for i := range v.NumField() {
			fill(t, v.Field(i), path+"."+v.Type().Field(i).Name, n)
		}
	default:
		t.Fatalf("%s: fill does not know %s", path, v.Kind())
	}
}
