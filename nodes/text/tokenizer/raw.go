package tokenizer

// Tokens of Raw beyond the bytes.
const (
	RawBegin = 256 // <|im_start|>
	RawEnd   = 257 // <|im_end|>: the end of a turn
)

// Raw is the tokenizer of a graph without a model: a token for each byte, and two special ones around a turn. It is what the mock engine
// speaks where it has no model.
func Raw() *Tokenizer {
	t := &Tokenizer{pre: "raw", maxBytes: len("<|im_start|>"), model: raw{}, end: []uint32{RawEnd}}
	for b := range 256 {
		t.pieces = append(t.pieces, string([]byte{byte(b)}))
		t.kinds = append(t.kinds, kindByte)
	}
	for _, s := range []string{"<|im_start|>", "<|im_end|>"} {
		id := uint32(len(t.pieces))
		t.pieces = append(t.pieces, s)
		t.kinds = append(t.kinds, kindControl)
		t.add(s, id, true, false)
	}
	return t
}

// RawTemplate is the chat template that goes with Raw.
const RawTemplate = `{% for m in messages %}{{ '<|im_start|>' + m['role'] + '\n' + (m['content'] or '') + '<|im_end|>' + '\n' }}{% endfor %}` +
	`{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}`

type raw struct{}

func (raw) encode(_ *encoder, dst []uint32, s string, _, _ bool) []uint32 {
	for i := range len(s) {
		dst = append(dst, uint32(s[i]))
	}
	return dst
}
