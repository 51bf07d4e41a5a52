package external

import (
	"encoding/json"
	"strconv"

	"github.com/dynamograph/dynamo/graph/flow"
	"github.com/dynamograph/dynamo/graph/flow/llm"
)

// request writes a chat as OpenAI's API takes it, and says to which path it goes. Fields that OpenAI's own server does not know are sent only
// where the client set them: servers that know them answer, others refuse them by name.
func (n *Node) request(q *llm.ChatRequest) ([]byte, string, error) {
	refuse := func(param string) ([]byte, string, error) {
		return nil, "", &flow.Error{Class: flow.NotImplemented, Reason: "external.unsupported", Param: param, Msg: param + ": not passed on to other servers"}
	}
	m := map[string]any{"model": q.Model, "stream": true, "stream_options": map[string]any{"include_usage": true}}
	if there := n.c.Models[q.Model]; there != "" {
		m["model"] = there
	}
	path, limit := "/chat/completions", "max_completion_tokens"
	switch {
	case q.Messages != nil:
		m["messages"] = q.Messages
	case q.Logprobs >= 0:
		return refuse("logprobs") // of completions: their form has no bytes
	case q.Tokens != nil:
		path, limit, m["prompt"] = "/completions", "max_tokens", q.Tokens
	default:
		path, limit, m["prompt"] = "/completions", "max_tokens", q.Prompt
	}
	set := func(name string, v any, is bool) {
		if is {
			m[name] = v
		}
	}
	s := &q.Sampling
	set("temperature", s.Temperature, s.Temperature != 1)
	set("top_p", s.TopP, s.TopP > 0 && s.TopP < 1)
	set("top_k", s.TopK, s.TopK > 0)
	set("min_p", s.MinP, s.MinP > 0)
	set("frequency_penalty", s.FrequencyPenalty, s.FrequencyPenalty != 0)
	set("presence_penalty", s.PresencePenalty, s.PresencePenalty != 0)
	set("repetition_penalty", s.RepetitionPenalty, s.RepetitionPenalty != 0 && s.RepetitionPenalty != 1)
	set("seed", int64(s.Seed>>1), s.Temperature != 0) // 63 bits: servers take no more
	if len(s.LogitBias) > 0 {
		bias := make(map[string]float32, len(s.LogitBias))
		for id, b := range s.LogitBias {
			bias[strconv.FormatUint(uint64(id), 10)] = b
		}
		m["logit_bias"] = bias
	}
	set(limit, q.Stop.MaxTokens, q.Stop.MaxTokens > 0 || q.NoOutput)
	if q.Stop.MaxTokens == 0 && !q.NoOutput {
		set(limit, q.Limit, q.Limit > 0)
	}
	set("min_tokens", q.Stop.MinTokens, q.Stop.MinTokens > 0)
	set("stop_token_ids", q.Stop.IDs, len(q.Stop.IDs) > 0)
	set("ignore_eos", true, q.Stop.IgnoreEOS)
	set("stop", q.StopStrings, len(q.StopStrings) > 0)
	set("include_stop_str_in_output", true, q.IncludeStop)
	set("skip_special_tokens", false, q.KeepSpecial)
	set("tools", q.Tools, q.Tools != nil)
	set("tool_choice", choice(q.ToolChoice), q.Tools != nil && q.ToolChoice.Mode != llm.ToolAuto)
	set("parallel_tool_calls", false, q.Tools != nil && q.OneCall)
	set("reasoning_effort", q.Effort, q.Effort != "")
	if name, v := form(q.Constraint); name != "" {
		m[name] = v
	}
	set("chat_template_kwargs", q.TemplateArgs, q.TemplateArgs != nil)
	set("add_generation_prompt", false, q.NoGenerationPrompt || q.Continue)
	set("continue_final_message", true, q.Continue)
	set("echo", true, q.Echo)
	set("cache_salt", q.Salt, q.Salt != "")
	set("priority", q.Priority, q.Priority != 0)
	if q.Logprobs >= 0 {
		m["logprobs"] = true
		set("top_logprobs", q.Logprobs, q.Logprobs > 0)
	}
	b, err := json.Marshal(m)
	if err != nil {
		return nil, "", flow.Errorf(flow.InvalidRequest, "external.request", "the request cannot be written as JSON: %v", err)
	}
	return b, path, nil
}

// choice is a tool_choice in OpenAI's words.
func choice(c llm.ToolChoice) any {
	switch c.Mode {
	case llm.ToolNone:
		return "none"
	case llm.ToolRequired:
		return "required"
	case llm.ToolNamed:
		return map[string]any{"type": "function", "function": map[string]any{"name": c.Name}}
	}
	return "auto"
}

// form is the field that binds the output, "" for none: OpenAI's where it has one, else vLLM's. A schema is sent as a strict one, since servers
// do not hold others: one that is too wide for the server is refused there.
func form(c *llm.Constraint) (name string, v any) {
	switch {
	case c == nil:
		return "", nil
	case c.JSONSchema == `{"type":"object"}`:
		return "response_format", map[string]any{"type": "json_object"}
	case c.JSONSchema != "":
		return "response_format", map[string]any{
			"type": "json_schema", "json_schema": map[string]any{"name": "answer", "strict": true, "schema": json.RawMessage(c.JSONSchema)},
		}
	case c.Tags != "":
		return "response_format", json.RawMessage(c.Tags)
	case c.Regex != "":
		return "structured_outputs", map[string]any{"regex": c.Regex}
	case c.Grammar != "":
		return "structured_outputs", map[string]any{"grammar": c.Grammar}
	}
	return "structured_outputs", map[string]any{"choice": c.Choice}
}
