// Package family knows families of models: which prompts, tool calls and reasoning their models were trained on, and what turns thinking
// on and off. It is data (cards.go): a card holds what the authors of the models publish in model cards, templates and configurations.
// How far each card was checked is in docs/families.md, which is made from the cards.
//
// Everything here is read-only and safe for concurrent use. Callers do not change the slices of a card.
package family

import (
	"regexp"
	"slices"
	"strings"
	"sync"
)

// Card is what is known of one family.
type Card struct {
	Name string // "qwen2.5"

	// Tools and Reasoning are the formats that its models write, by the names of package parse: first the one they were trained to write,
	// then others whose parsers read the same. Nil: not known. Empty: none, as in models that do not think.
	Tools, Reasoning []string

	Thinking   Switch
	Template   string   // renderer for models that carry no template, by the name of package render; "": their template is the only way
	ShowsTools bool     // the template of its models puts the request's tools into the prompt and calls of the history into their turns
	Tokenizer  string   // how text is cut: a value of tokenizer.ggml.pre, "spm", or "bpe" for a byte-level one that its own file describes
	Stop       []string // texts of the special tokens that end the assistant's turn, where the model's own list may lack them
	CallIDs    CallIDs

	Real []string // published templates whose turns with reasoning and calls the parsers read back; "": none were checked

	stated, named string // patterns: see Stated and Named
}

// Switch says how a template is told to think or not to. Values are JSON.
type Switch struct {
	Arg     string // variable of the template; "" for a family that has no switch
	On, Off string // its values
	Default bool   // whether models think where Arg is not given
	Effort  bool   // the template takes reasoning_effort beside it, or as Arg itself
}

// CallIDs is a rule that a family's template has for the ids of tool calls.
type CallIDs uint8

// The rules.
const (
	AnyID    CallIDs = iota // any text
	NineID                  // nine of [A-Za-z0-9]; others are an error of the template
	NumberID                // functions.NAME:N, N counting all calls of a conversation from 0; the model was trained on it
)

type compiled struct {
	Card
	stated, named *regexp.Regexp // nil: none
}

var all = sync.OnceValue(func() []compiled {
	out := make([]compiled, len(cards))
	for i, c := range cards {
		out[i] = compiled{c, re(c.stated), re(c.named)}
	}
	return out
})

func re(pattern string) *regexp.Regexp {
	if pattern == "" {
		return nil
	}
	return regexp.MustCompile("^(?:" + pattern + ")$")
}

// All returns the cards, in no order that means anything.
func All() []Card { return slices.Clone(cards) }

var unsaid = strings.NewReplacer("-", "", "_", "", ".", "", " ", "")

// Stated returns the families that an author may mean by a word as "qwen2.5" or "Llama 3.1", the likeliest first: whoever writes "qwen3"
// may have one of its coders. None: not known.
func Stated(word string) []Card {
	plain := unsaid.Replace(strings.ToLower(word))
	var out []Card
	for _, c := range all() {
		if c.stated != nil && c.stated.MatchString(plain) {
			out = append(out, c.Card)
		}
	}
	return out
}

// Named returns the family that a model's name tells, as "Qwen/Qwen2.5-7B-Instruct", "Qwen2.5 7B Instruct" or a file's name; false where it
// tells none. What is trained further may speak otherwise and has another name: names are compared from their beginning.
func Named(model string) (Card, bool) {
	name := strings.ToLower(model)
	name = name[strings.LastIndexByte(name, '/')+1:]
	name = strings.ReplaceAll(strings.TrimSuffix(name, ".gguf"), " ", "-")
	for _, c := range all() {
		if c.named != nil && c.named.MatchString(name) {
			return c.Card, true
		}
	}
	return Card{}, false
}
