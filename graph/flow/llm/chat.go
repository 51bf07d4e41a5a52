// Package llm holds the payloads that flow through an inference graph, as plain structs. The wire form is runtime/transport's concern.
package llm

import (
	"encoding/json"
	"time"
)

// ChatRequest is a client's request before templates and tokens. Exactly one of Messages, Prompt and Tokens is set.
type ChatRequest struct {
	ID       string
	Model    string // served name
	Tenant   string
	Salt     string
	Session  string
	Priority int
	Deadline time.Time
	Trace    string // W3C traceparent

	Messages           json.RawMessage // JSON array as the client sent it: templates see every field
	Tools              json.RawMessage // JSON array or nil
	TemplateArgs       json.RawMessage // JSON object or nil: chat_template_kwargs
	NoGenerationPrompt bool            // do not open the assistant's turn
	Continue           bool            // continue the last message
	Prompt             string          // completions
	Tokens             []uint32        // completions with token ids
	Echo               bool            // completions: the prompt comes first in the output
	NoOutput           bool            // with Echo: nothing comes after the prompt

	Sampling    Sampling
	Stop        Stop     // where MaxTokens is set and the context leaves less, the request is refused
	Limit       int      // of output tokens where Stop.MaxTokens is 0: cut to what the context leaves; 0 is none
	StopStrings []string // at most 32
	IncludeStop bool     // the stop string stays in the text
	KeepSpecial bool     // special tokens stay in the text
	Logprobs    int      // as in TokensRequest
	Constraint  *Constraint
	Routing     Routing
}

// ChatDelta is what an answer gained.
type ChatDelta struct {
	Text     string // valid UTF-8, or "" while a rune is incomplete
	Tokens   []uint32
	Logprobs []TextLogprob
	Finish   FinishReason
	Usage    *Usage // on the last delta; PromptTokens is already known on the first
	Instance string
}

// TextLogprob is a Logprob with the tokens' text.
type TextLogprob struct {
	Token   uint32
	Text    string // may hold U+FFFD where the token is no whole rune; Bytes is exact
	Bytes   []byte
	Logprob float32
	None    bool          // there is no Logprob: nothing stands before the token
	Offset  int           // characters of text, the echoed prompt's included, that were complete before the token
	Top     []TextLogprob // best first; their Top is nil
}
