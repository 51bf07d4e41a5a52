package preprocess

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"encoding/json/jsontext"
	"fmt"

	"github.com/dynamograph/dynamo/nodes/text/family"
)

// history brings messages to the form that templates expect, where they are not in it already: reasoning stands under both of its names,
// "reasoning_content" and "reasoning", and the ids of calls follow the family's rule. All else stays as it came.
func history(messages json.RawMessage, rule family.CallIDs) (json.RawMessage, error) {
	if !bytes.Contains(messages, []byte(`"reasoning`)) && (rule == family.AnyID || !bytes.Contains(messages, []byte(`"tool_call`))) {
		return messages, nil
	}
	h := rewriter{rule: rule, ids: map[string]string{}}
	var out bytes.Buffer
	// Errors are the template's to tell: it reads the same text.
	d := jsontext.NewDecoder(bytes.NewReader(messages))
	e := jsontext.NewEncoder(&out, jsontext.AllowDuplicateNames(true))
	if d.PeekKind() != '[' {
		return messages, nil
	}
	for {
		if d.StackDepth() == 1 && d.PeekKind() == '{' {
			v, err := d.ReadValue()
			if err != nil {
				return nil, err
			}
			if err := h.message(e, v); err != nil {
				return nil, err
			}
			continue
		}
		t, err := d.ReadToken()
		if err != nil {
			return nil, err
		}
		if err := e.WriteToken(t); err != nil {
			return nil, err
		}
		if d.StackDepth() == 0 {
			return bytes.TrimSuffix(out.Bytes(), []byte("\n")), nil
		}
	}
}

type rewriter struct {
	rule  family.CallIDs
	ids   map[string]string // as they came, to what they are called
	calls int               // of all messages
}

// message writes one message.
func (h *rewriter) message(e *jsontext.Encoder, v jsontext.Value) error {
	var had [2]jsontext.Value // reasoning_content, reasoning
	return h.object(e, v, func(name string, v jsontext.Value) (jsontext.Value, error) {
		switch name {
		case "reasoning_content":
			had[0] = v.Clone()
		case "reasoning":
			had[1] = v.Clone()
		case "tool_call_id":
			return h.id(v, ""), nil
		case "tool_calls":
			return h.toolCalls(v)
		}
		return v, nil
	}, func() error {
		for i, name := range []string{"reasoning_content", "reasoning"} {
			if other := had[1-i]; had[i] == nil && other != nil {
				if err := e.WriteToken(jsontext.String(name)); err != nil {
					return err
				}
				if err := e.WriteValue(other); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

// object writes an object whose members go through member; last may add some.
func (h *rewriter) object(e *jsontext.Encoder, v jsontext.Value, member func(name string, v jsontext.Value) (jsontext.Value, error), last func() error) error {
	d := jsontext.NewDecoder(bytes.NewReader(v))
	for {
		if d.StackDepth() == 1 && d.PeekKind() == '}' && last != nil {
			if err := last(); err != nil {
				return err
			}
		}
		t, err := d.ReadToken()
		if err != nil {
			return err
		}
		name := ""
		if t.Kind() == '"' {
			name = t.String()
		}
		if err := e.WriteToken(t); err != nil {
			return err
		}
		switch {
		case d.StackDepth() == 0:
			return nil
		case t.Kind() == '"':
			v, err := d.ReadValue()
			if err != nil {
				return err
			}
			if v, err = member(name, v); err != nil {
				return err
			}
			if err := e.WriteValue(v); err != nil {
				return err
			}
		}
	}
}

// toolCalls gives each call of a list the id that the rule wants.
func (h *rewriter) toolCalls(v jsontext.Value) (jsontext.Value, error) {
	if h.rule == family.AnyID || v.Kind() != '[' {
		return v, nil
	}
	var list []jsontext.Value
	if err := json.Unmarshal(v, &list); err != nil {
		return nil, err
	}
	var out bytes.Buffer
	e := jsontext.NewEncoder(&out)
	if err := e.WriteToken(jsontext.BeginArray); err != nil {
		return nil, err
	}
	for _, c := range list {
		if c.Kind() != '{' {
			return v, nil // the template says what is wrong
		}
		var f struct{ Function struct{ Name string } }
		_ = json.Unmarshal(c, &f) // likewise
		err := h.object(e, c, func(name string, v jsontext.Value) (jsontext.Value, error) {
			if name == "id" {
				return h.id(v, f.Function.Name), nil
			}
			return v, nil
		}, nil)
		if err != nil {
			return nil, err
		}
		h.calls++
	}
	err := e.WriteToken(jsontext.EndArray)
	return bytes.TrimSuffix(out.Bytes(), []byte("\n")), err
}

// id is what the rule makes of a call's id, the same for the same id. function is the call's, where it is the call and not its result.
func (h *rewriter) id(v jsontext.Value, function string) jsontext.Value {
	if v.Kind() != '"' {
		return v
	}
	b, err := jsontext.AppendUnquote(nil, v)
	if err != nil {
		return v
	}
	old := string(b)
	now, known := h.ids[old]
	if !known || function != "" {
		switch {
		case h.rule == family.NineID && !nine(old):
			now = short(old)
		case h.rule == family.NumberID && function != "":
			now = fmt.Sprintf("functions.%s:%d", function, h.calls)
		default:
			now = old
		}
		h.ids[old] = now
	}
	q, err := jsontext.AppendQuote(nil, now)
	if err != nil {
		return v
	}
	return q
}

// nine reports whether an id is nine of [A-Za-z0-9], which templates of Mistral insist on.
func nine(id string) bool {
	for _, c := range []byte(id) {
		if (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') {
			return false
		}
	}
	return len(id) == 9
}

// short is a form of an id that is nine of [A-Za-z0-9].
func short(id string) string {
	const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
	sum := sha256.Sum256([]byte(id))
	var out [9]byte
	for i := range out {
		out[i] = alphabet[int(sum[i])%len(alphabet)]
	}
	return string(out[:])
}
