"""The official OpenAI SDK against a running graph: sdk.py BASE_URL."""

import sys

import openai

client = openai.OpenAI(base_url=sys.argv[1], api_key="unused", max_retries=0)
messages = [{"role": "user", "content": "What is the capital of France?"}]

assert [m.id for m in client.models.list()] == ["smollm2"]

whole = client.chat.completions.create(model="smollm2", messages=messages, temperature=0, max_tokens=24)
text = whole.choices[0].message.content
assert "Paris" in text, text
assert whole.choices[0].message.role == "assistant"
assert whole.usage.total_tokens == whole.usage.prompt_tokens + whole.usage.completion_tokens
print("chat:", repr(text))

streamed, usage, finish = "", None, None
with client.chat.completions.create(
    model="smollm2", messages=messages, temperature=0, max_tokens=24, stream=True, stream_options={"include_usage": True}
) as chunks:
    for c in chunks:
        if c.usage:
            usage = c.usage
        for choice in c.choices:
            streamed += choice.delta.content or ""
            finish = choice.finish_reason or finish
assert streamed == text, (streamed, text)
assert (usage.prompt_tokens, usage.completion_tokens) == (whole.usage.prompt_tokens, whole.usage.completion_tokens), (usage, whole.usage)
assert finish == whole.choices[0].finish_reason

helper = ""
with client.chat.completions.stream(model="smollm2", messages=messages, temperature=0, max_tokens=24) as events:
    for e in events:
        if e.type == "content.delta":
            helper += e.delta
assert helper == text

lp = client.chat.completions.create(model="smollm2", messages=messages, temperature=0, max_tokens=4, logprobs=True, top_logprobs=3)
for entry in lp.choices[0].logprobs.content:
    assert len(entry.top_logprobs) == 3 and entry.logprob <= 0
    assert entry.top_logprobs[0].logprob >= entry.top_logprobs[1].logprob
    assert entry.logprob == entry.top_logprobs[0].logprob  # greedy

two = client.chat.completions.create(model="smollm2", messages=messages, temperature=1, max_tokens=8, n=2, seed=7)
again = client.chat.completions.create(model="smollm2", messages=messages, temperature=1, max_tokens=8, n=2, seed=7)
assert [c.index for c in two.choices] == [0, 1]
assert [c.message.content for c in two.choices] == [c.message.content for c in again.choices]

legacy = client.completions.create(model="smollm2", prompt="The capital of France is", temperature=0, max_tokens=8, stop=["\n"])
assert "Paris" in legacy.choices[0].text, legacy.choices[0].text

try:
    client.chat.completions.create(model="nope", messages=messages)
    raise SystemExit("an unknown model was accepted")
except openai.NotFoundError as e:
    assert "nope" in str(e) and "smollm2" in str(e), e
try:
    client.chat.completions.create(model="smollm2", messages=messages, temperature=9)
    raise SystemExit("temperature 9 was accepted")
except openai.BadRequestError as e:
    assert e.param == "temperature", e
try:
    client.completions.create(model="smollm2", prompt="word " * 20000, max_tokens=1)
    raise SystemExit("a prompt over the context was accepted")
except openai.BadRequestError as e:
    assert e.code == "context_length_exceeded", e
print("all passed")
