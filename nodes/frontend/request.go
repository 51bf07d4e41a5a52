package frontend

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/dynamograph/dynamo/graph/flow/llm"
)

// Limits of what a request may ask for.
const (
	maxChoices    = 128
	maxStops      = 32
	maxOutput     = 1 << 20 // tokens
	maxTop        = 20      // alternatives a token, chat
	maxTopClassic = 5       // completions
)

// call is one HTTP request: one chat request a choice.
type call struct {
	chat     bool
	requests []*llm.ChatRequest // choice i belongs to prompt i/n
	n        int                // choices a prompt
	model    string
	id       string // in the answer's body
	request  string // in logs and traces
	created  int64
	stream   bool
	usage    bool // a last chunk with usage
	logprobs bool
	// constraint is the field that says what form the output has; "" where none does.
	constraint string
	// quiet says that the client does not want to see the reasoning.
	quiet bool
}

// unsupported are OpenAI's (and vLLM's) fields that would change the answer and that we do not have.
var unsupported = map[string]string{
	"functions":                 "its successor is tools",
	"function_call":             "its successor is tool_choice",
	"audio":                     "audio is not supported",
	"prediction":                "predicted output is not supported",
	"verbosity":                 "not supported",
	"web_search_options":        "web search is not supported",
	"guided_decoding_backend":   "there is one implementation",
	"guided_whitespace_pattern": "there is one form of whitespace",
	"prompt_logprobs":           "not supported; use echo with logprobs",
	"bad_words":                 "not supported; use logit_bias",
	"suffix":                    "insertion is not supported",
	"nvext":                     "extensions of other servers are not supported",
	"extra_body":                "send its fields at the top level (the OpenAI client does that)",
}

// idle asks for the fields that are accepted because they never change an answer: labels, and switches in the position that we are in.
func (f *fields) idle() {
	f.str("user")
	f.str("safety_identifier")
	f.str("prompt_cache_key")
	f.object("metadata")
	if f.boolean("store") {
		f.fail(bad("store", "store: answers are not kept; send false or nothing"))
	}
	if t := f.str("service_tier"); t != "" && t != "auto" && t != "default" {
		f.fail(bad("service_tier", "service_tier: there is one tier; send \"auto\" or nothing, not %q", clip(t)))
	}
	if l, ok := f.list("modalities"); ok {
		for _, v := range l {
			if s, _ := text(v); s != "text" {
				f.fail(bad("modalities", "modalities: only \"text\" is supported"))
			}
		}
	}
}

// common reads what both routes have, into a request that the choices are copies of.
func (x *exchange) common(f *fields, c *call, prefix string) llm.ChatRequest {
	q := llm.ChatRequest{
		Trace: traceparent(x.r.Header.Get("traceparent")), Session: clip(x.r.Header.Get("X-Dynamo-Session-Id")), Tenant: x.tenant,
	}
	c.model = f.str("model")
	q.Model = c.model
	switch {
	case f.err != nil:
	case c.model == "":
		f.fail(bad("model", "model must be set"))
	default:
		if !x.f.known(c.model) {
			f.fail(x.f.unknownModel(c.model))
		}
	}
	c.id, c.created, c.request = prefix+x.id, time.Now().Unix(), x.requestID()
	c.stream = f.boolean("stream")
	if o := f.object("stream_options"); o != nil && f.err == nil {
		so := newFields(o)
		c.usage = so.boolean("include_usage")
		if so.boolean("continuous_usage_stats") {
			so.fail(bad("", "continuous_usage_stats is not supported"))
		}
		so.strict(nil)
		if e := so.err; e != nil {
			e.Param, e.Msg = "stream_options", "stream_options: "+e.Msg
			f.fail(e)
		} else if !c.stream {
			f.fail(bad("stream_options", "stream_options is only allowed with stream: true"))
		}
	}
	c.n = int(f.integer("n", 1, maxChoices, 1))

	s := &q.Sampling
	s.Temperature = f.number("temperature", 0, 2, 1)
	if s.TopP = f.number("top_p", 0, 1, 1); s.TopP == 0 {
		s.TopP = math.SmallestNonzeroFloat32 // the best token alone; 0 would mean "off" further down
	}
	if s.TopK = int(f.integer("top_k", -1, math.MaxInt32, 0)); s.TopK < 0 {
		s.TopK = 0
	}
	s.MinP = f.number("min_p", 0, 1, 0)
	s.FrequencyPenalty = f.number("frequency_penalty", -2, 2, 0)
	s.PresencePenalty = f.number("presence_penalty", -2, 2, 0)
	s.RepetitionPenalty = f.number("repetition_penalty", 0, 2, 1)
	if f.has("repetition_penalty") && s.RepetitionPenalty == 0 {
		f.fail(bad("repetition_penalty", "repetition_penalty must be above 0"))
	}
	s.LogitBias = f.bias("logit_bias", x.f.vocabulary(c.model))
	s.Seed = uint64(f.integer("seed", math.MinInt64, math.MaxInt64, 0))
	if !f.has("seed") {
		s.Seed = rand.Uint64()
	}

	least := int64(1)
	if !c.chat && f.boolean("echo") { // 0: the prompt alone, for its log-probabilities
		least = 0
	}
	q.Stop.MaxTokens = int(f.integer("max_tokens", least, maxOutput, 0))
	q.NoOutput = f.has("max_tokens") && q.Stop.MaxTokens == 0
	if m := int(f.integer("max_completion_tokens", 1, maxOutput, 0)); m > 0 {
		if q.Stop.MaxTokens > 0 && q.Stop.MaxTokens != m {
			f.fail(bad("max_tokens", "max_tokens (%d) and max_completion_tokens (%d) differ; send one of them", q.Stop.MaxTokens, m))
		}
		q.Stop.MaxTokens = m
	}
	q.Stop.MinTokens = int(f.integer("min_tokens", 0, maxOutput, 0))
	if q.Stop.MaxTokens > 0 && q.Stop.MinTokens > q.Stop.MaxTokens {
		f.fail(bad("min_tokens", "min_tokens (%d) is above max_tokens (%d)", q.Stop.MinTokens, q.Stop.MaxTokens))
	}
	q.Stop.IgnoreEOS = f.boolean("ignore_eos")
	q.Stop.IDs = f.tokens("stop_token_ids", x.f.vocabulary(c.model))
	q.StopStrings = f.stops()
	q.IncludeStop = f.boolean("include_stop_str_in_output")
	q.KeepSpecial = f.has("skip_special_tokens") && !f.boolean("skip_special_tokens")
	f.asked = append(f.asked, "skip_special_tokens")
	q.Salt = f.str("cache_salt")
	q.Priority = int(f.integer("priority", math.MinInt32, math.MaxInt32, 0))
	c.constraint = f.constraint(&q)
	f.idle()
	return q
}

// fan makes one request a choice out of a request a prompt.
func (c *call) fan(prompts []llm.ChatRequest) {
	for _, p := range prompts {
		for k := range c.n {
			q := p
			q.ID = c.request
			if i := len(c.requests); len(prompts)*c.n > 1 {
				q.ID = fmt.Sprintf("%s-%d", c.request, i)
			}
			// Choices differ although the client sent one seed, and are the same again when it sends that seed again.
			q.Sampling.Seed += uint64(k) * 0x9e3779b97f4a7c15
			c.requests = append(c.requests, &q)
		}
	}
}

// vocabulary is the number of token ids of a served model; 0 is unknown.
func (f *Frontend) vocabulary(model string) int {
	if m := f.models[model]; m != nil {
		return m.Facts.Vocabulary
	}
	return 0
}

func (f *fields) bias(name string, vocabulary int) map[uint32]float32 {
	o := f.object(name)
	if o == nil || f.err != nil {
		return nil
	}
	in := newFields(o)
	if in.err != nil {
		f.fail(bad(name, "%s: %s", name, in.err.Msg))
		return nil
	}
	out := make(map[uint32]float32, len(in.names))
	for _, k := range in.names {
		id, err := strconv.ParseUint(k, 10, 32)
		if err != nil || vocabulary > 0 && id >= uint64(vocabulary) {
			f.fail(bad(name, "%s: %q is not a token id of this model", name, clip(k)))
			return nil
		}
		out[uint32(id)] = in.number(k, -100, 100, 0)
	}
	if in.err != nil {
		f.fail(bad(name, "%s: %s", name, in.err.Msg))
	}
	return out
}

func (f *fields) tokens(name string, vocabulary int) []uint32 {
	l, ok := f.list(name)
	if !ok {
		return nil
	}
	out := make([]uint32, len(l))
	for i, v := range l {
		n, ok := whole(v)
		if !ok || n < 0 || n > math.MaxUint32 || vocabulary > 0 && n >= int64(vocabulary) {
			f.fail(bad(name, "%s: %s is not a token id of this model", name, what(v)))
			return nil
		}
		out[i] = uint32(n)
	}
	return out
}

// stops reads one stop string or an array of them.
func (f *fields) stops() []string {
	v, ok := f.get("stop")
	if !ok {
		return nil
	}
	if s, ok := text(v); ok {
		if s == "" {
			f.fail(bad("stop", "stop must not be empty"))
		}
		return []string{s}
	}
	l, ok := elements(v)
	if !ok {
		f.fail(bad("stop", "stop must be a string or an array of strings, not %s", what(v)))
		return nil
	}
	if len(l) > maxStops {
		f.fail(bad("stop", "stop holds %d strings; at most %d are allowed", len(l), maxStops))
		return nil
	}
	out := make([]string, len(l))
	for i, v := range l {
		s, ok := text(v)
		if !ok || s == "" {
			f.fail(bad("stop", "stop must hold strings that are not empty, not %s", what(v)))
			return nil
		}
		out[i] = s
	}
	return out
}

// traceparent returns a W3C trace context if it is one, else "".
func traceparent(s string) string {
	if len(s) != 55 || s[2] != '-' || s[35] != '-' || s[52] != '-' {
		return ""
	}
	for i, c := range []byte(s) {
		if i == 2 || i == 35 || i == 52 {
			continue
		}
		if (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return ""
		}
	}
	return s
}

func parseChat(x *exchange, f *fields) *call {
	c := &call{chat: true}
	q := x.common(f, c, "chatcmpl-")
	q.Logprobs = -1
	top := int(f.integer("top_logprobs", 0, maxTop, 0))
	if c.logprobs = f.boolean("logprobs"); c.logprobs {
		q.Logprobs = top
	} else if f.has("top_logprobs") {
		f.fail(bad("top_logprobs", "top_logprobs is only allowed with logprobs: true"))
	}
	q.TemplateArgs = f.object("chat_template_kwargs")
	q.NoGenerationPrompt = f.has("add_generation_prompt") && !f.boolean("add_generation_prompt")
	q.Continue = f.boolean("continue_final_message")
	if q.Continue && f.boolean("add_generation_prompt") {
		f.fail(bad("continue_final_message", "continue_final_message and add_generation_prompt exclude each other"))
	}
	f.asked = append(f.asked, "add_generation_prompt")
	f.messages(c.model, q.Continue)
	q.Messages = f.raw["messages"]
	f.tools(&q)
	f.conflict(&q, c.constraint)
	q.Effort = f.effort()
	c.quiet = !f.boolean("include_reasoning") && f.has("include_reasoning")
	f.strict(unsupported)
	c.fan([]llm.ChatRequest{q})
	return c
}
