package llm

import (
	"time"

	"github.com/dynamograph/dynamo/graph/flow"
)

// The ports of an inference graph. Calls (chat, tokens) go from the edge's From to its To; kv, events and load are served by From and
// called by To.
var (
	Chat   = flow.Port[*ChatRequest, *ChatDelta]{Type: "chat"}
	Tokens = flow.Port[*TokensRequest, *TokensDelta]{Type: "tokens"}
	KV     = flow.Port[*KVFetch, *KVBlock]{Type: "kv"}
	Events = flow.Port[*Subscribe, *EventBatch]{Type: "events"}
	Loads  = flow.Port[*Subscribe, *Load]{Type: "load"}
)

// TokensRequest asks an engine to continue a sequence of tokens. Stages must not change a request that they did not make: they copy the
// struct (the slices may be shared).
type TokensRequest struct {
	ID       string // unique; the same over all attempts and hops
	Model    string // served name
	Adapter  string // LoRA; "" is the base model
	Tenant   string // KV is never shared between tenants
	Salt     string // nor between salts
	Session  string
	Priority int       // higher first
	Deadline time.Time // zero: none
	Trace    string    // W3C traceparent

	Tokens    []uint32 // prompt, then the Generated tokens of earlier attempts
	Generated int      // how many of the last Tokens are output of an earlier attempt: they count against MaxTokens, as output for penalties, and never again as output

	Sampling       Sampling
	Stop           Stop
	Logprobs       int  // top alternatives a token; 0: only the chosen token's, -1: none
	PromptLogprobs bool // also those of the prompt, for echo
	Constraint     *Constraint
	Media          []MediaItem

	Routing Routing
	Phase   Phase
	HandOff *HandOff          // given to decode: where the prompt's KV lies
	Extra   map[string]string // for foreign engines; an engine that does not know a key refuses
}

// Phase says which part of the work is wanted.
type Phase uint8

// The phases.
const (
	PhaseAll     Phase = iota // prompt and output
	PhasePrefill              // compute the prompt, sample one token, and answer with a HandOff on the last delta
	PhaseDecode               // continue from HandOff; compute the prompt where the hand-off fails
)

// String returns "all", "prefill" or "decode".
func (p Phase) String() string {
	switch p {
	case PhasePrefill:
		return "prefill"
	case PhaseDecode:
		return "decode"
	}
	return "all"
}

// Sampling says how the next token is chosen. Zero values mean "off" but for those named; see Greedy.
type Sampling struct {
	Temperature       float32 // 0 is greedy
	TopP              float32 // 0 or 1: off
	TopK              int     // 0: off
	MinP              float32 // 0: off
	FrequencyPenalty  float32 // over generated tokens
	PresencePenalty   float32 // over generated tokens
	RepetitionPenalty float32 // over prompt and generated tokens; 0 or 1: off
	LogitBias         map[uint32]float32
	Seed              uint64 // the n-th output token of a sequence depends on (Seed, n) alone, not on batch mates, attempt or instance
}

// Stop says when a sequence ends.
type Stop struct {
	MaxTokens int      // output tokens in all, Generated included; 0: until the context is full
	MinTokens int      // no stop id acts before this many
	IDs       []uint32 // stop token ids beside the model's own; not part of the output
	IgnoreEOS bool     // the model's own end tokens do not stop
}

// Constraint restricts the output: to what one of JSONSchema, Regex, Choice, Grammar and Tags allows, to its end. Output that is complete and
// can go on may end or go on.
type Constraint struct {
	JSONSchema string   // a JSON Schema; "{}" is any JSON object or value
	Regex      string   // of the whole output
	Choice     []string // one of them
	Grammar    string   // GBNF or Lark-like EBNF
	Tags       string   // a structural tag in xgrammar's JSON: {"type":"structural_tag","format":{…}}

	// After, if set, is a text of which the first occurrence ends a free part: what follows it is restricted. It is how reasoning stays free.
	After string
}

// MediaItem is one image or clip in the prompt: its tokens are placeholders at Offset.
type MediaItem struct {
	Hash   string // of the content
	Offset int    // first placeholder in Tokens
	Length int
}

// Routing carries pins and what earlier attempts learnt.
type Routing struct {
	Pin     string   // instance that must take it; "" is any
	Exclude []string // instances that failed this request
}

// FinishReason says why a sequence ended; "" while it goes on.
type FinishReason string

// The reasons.
const (
	FinishStop   FinishReason = "stop"   // a stop id or the model's end
	FinishLength FinishReason = "length" // MaxTokens or the context
	FinishAbort  FinishReason = "abort"  // the engine gave up; an error follows
)

// TokensDelta is what a sequence gained by one engine step.
type TokensDelta struct {
	Tokens   []uint32
	Logprobs []Logprob // len(Tokens), or nil where not asked for
	Prompt   []Logprob // on the first delta where PromptLogprobs was set: one a prompt token, the first empty
	Finish   FinishReason
	StopID   uint32   // valid where Finish is FinishStop: the token that ended it, which is not in Tokens
	HandOff  *HandOff // on the last delta of PhasePrefill
	Usage    *Usage   // on the last delta
	Instance string   // who computed it; "" is unknown
}

// Logprob is the chosen token's natural-log probability, after penalties and bias, before temperature and cut-offs, with the best alternatives.
type Logprob struct {
	Token   uint32
	Logprob float32
	Top     []TopLogprob // best first
}

// TopLogprob is one alternative.
type TopLogprob struct {
	Token   uint32
	Logprob float32
}

// Usage counts tokens: Prompt excludes Generated of earlier attempts, Completion includes them.
type Usage struct {
	Prompt, Completion int
	Cached             int // prompt tokens whose KV was found, not computed
	Reasoning          int // of Completion: tokens of which the text is reasoning; known above the tokens port alone
}
