package build

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
)

// say makes a config's fields of a struct or map. Fields of structs that are zero are left out.
func say(config any) (map[string]any, error) {
	if config == nil {
		return map[string]any{}, nil
	}
	v := reflect.ValueOf(config)
	for v.Kind() == reflect.Pointer {
		if v.IsNil() {
			return map[string]any{}, nil
		}
		v = v.Elem()
	}
	switch v.Kind() {
	case reflect.Struct:
		out := map[string]any{}
		return out, fields(v, out)
	case reflect.Map:
		whole, err := plain(v)
		if err != nil {
			return nil, err
		}
		if m, ok := whole.(map[string]any); ok {
			return m, nil
		}
	}
	return nil, errors.New("want a struct, a map or nil")
}

var marshaler = reflect.TypeFor[json.Marshaler]()

// fields adds the fields of a struct that are not zero, under their JSON names.
func fields(v reflect.Value, into map[string]any) error {
	for i := range v.NumField() {
		f, x := v.Type().Field(i), v.Field(i)
		name, opts, _ := strings.Cut(f.Tag.Get("json"), ",")
		if !f.IsExported() && !f.Anonymous || name == "-" && opts == "" || x.IsZero() {
			continue
		}
		if f.Anonymous && name == "" && x.Kind() == reflect.Struct {
			if err := fields(x, into); err != nil {
				return err
			}
			continue
		}
		if name == "" {
			name = f.Name
		}
		if x.Kind() == reflect.Struct && !x.Type().Implements(marshaler) && !reflect.PointerTo(x.Type()).Implements(marshaler) {
			sub := map[string]any{}
			if err := fields(x, sub); err != nil {
				return err
			}
			if len(sub) > 0 {
				into[name] = sub
			}
			continue
		}
		var err error
		if into[name], err = plain(x); err != nil {
			return err
		}
	}
	return nil
}

// plain makes of a value what JSON makes of it.
func plain(v reflect.Value) (any, error) {
	b, err := json.Marshal(v.Interface())
	if err != nil {
		return nil, err
	}
	d := json.NewDecoder(strings.NewReader(string(b)))
	d.UseNumber()
	var out any
	err = d.Decode(&out)
	return out, err
}
