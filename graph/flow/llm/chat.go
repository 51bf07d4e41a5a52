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
	Tools              json.RawMessage // JSON array or nil: OpenAI's {"type":"function","function":{…}}, names distinct
	ToolChoice         ToolChoice
	OneCall            bool            // parallel_tool_calls: false
	Effort             string          // reasoning_effort: "none", "minimal", "low", "medium", "high"; "" is the model's default
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

// ToolChoice says whether the model may, must or must not call a tool.
type ToolChoice struct {
	Mode ToolMode
	Name string // with ToolNamed: the one function
}

// ToolMode is a mode of ToolChoice.
type ToolMode uint8

// The modes. Without Tools only ToolAuto and ToolNone are valid, and mean the same.
const (
	ToolAuto     ToolMode = iota // as the model likes
	ToolNone                     // tools are not shown to the model, and what it writes is content
	ToolRequired                 // one call at least
	ToolNamed                    // calls of one function
)

// ChatDelta is what an answer gained. It has one of Text, Reasoning and Calls, or none: their order over the deltas of an answer is the
// order in which the model wrote them.
type ChatDelta struct {
	Text      string // content: valid UTF-8, or "" while a rune is incomplete
	Reasoning string // likewise
	Calls     []CallDelta
	Tokens    []uint32
	Logprobs  []TextLogprob
	Finish    FinishReason
	Usage     *Usage // on the last delta; PromptTokens is already known on the first
	Instance  string
}

// CallDelta is what a tool call gained. Calls are numbered from 0 in the order of their begin.
type CallDelta struct {
	Index     int
	ID        string // on the first delta of a call, else ""
	Name      string // likewise, whole
	Arguments string // a piece of the arguments' JSON text; may be "" on the first
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
