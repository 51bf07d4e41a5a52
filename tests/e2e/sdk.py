"""The official OpenAI SDK against a running graph, one that is busy and one that is broken: sdk.py URL URL URL."""

import asyncio
import sys
import threading
import time

import openai

base = sys.argv[1]
client = openai.OpenAI(base_url=base, api_key="unused", max_retries=0, timeout=120)
chat = client.chat.completions.create
messages = [{"role": "user", "content": "What is the capital of France?"}]
greedy = {"model": "smollm2", "messages": messages, "temperature": 0, "max_tokens": 24}


def refused(error, call, **params):
    """The error that a call raises, which must be of the class given."""
    try:
        call(**params)
    except error as e:
        return e
    raise SystemExit(f"accepted: {params}")


def models():
    assert [m.id for m in client.models.list()] == ["smollm2"]
    m = client.models.retrieve("smollm2")
    assert m.object == "model" and m.created > 1e9 and m.owned_by
    refused(openai.NotFoundError, client.models.retrieve, model="org/name")


def whole_and_streamed():
    whole = chat(**greedy)
    text = whole.choices[0].message.content
    assert "Paris" in text, text
    assert whole.choices[0].message.role == "assistant"
    assert whole.usage.total_tokens == whole.usage.prompt_tokens + whole.usage.completion_tokens
    streamed, usage, finish, usages = "", None, None, 0
    with chat(**greedy, stream=True, stream_options={"include_usage": True}) as chunks:
        for c in chunks:
            assert c.object == "chat.completion.chunk"
            if c.usage:
                usage, usages = c.usage, usages + 1
                assert c.choices == []
            for choice in c.choices:
                streamed += choice.delta.content or ""
                finish = choice.finish_reason or finish
    assert streamed == text, (streamed, text)
    assert usages == 1 and (usage.prompt_tokens, usage.completion_tokens) == (whole.usage.prompt_tokens, whole.usage.completion_tokens), (usage, whole.usage)
    assert finish == whole.choices[0].finish_reason
    assert all(c.usage is None for c in chat(**greedy, stream=True))
    helper = ""
    with client.chat.completions.stream(**greedy) as events:
        for e in events:
            if e.type == "content.delta":
                helper += e.delta
        assert events.get_final_completion().choices[0].message.content == text
    assert helper == text


def logprobs():
    lp = chat(**greedy | {"max_tokens": 4}, logprobs=True, top_logprobs=3)
    for entry in lp.choices[0].logprobs.content:
        assert len(entry.top_logprobs) == 3 and entry.logprob <= 0
        assert entry.top_logprobs[0].logprob >= entry.top_logprobs[1].logprob
        assert entry.logprob == entry.top_logprobs[0].logprob  # greedy
    said = b"".join(bytes(e.bytes) for e in lp.choices[0].logprobs.content)
    assert said.decode() == lp.choices[0].message.content
    assert all(e.top_logprobs == [] for e in chat(**greedy, logprobs=True).choices[0].logprobs.content)
    streamed = []
    for c in chat(**greedy | {"max_tokens": 4}, logprobs=True, top_logprobs=3, stream=True):
        for choice in c.choices:
            streamed += choice.logprobs.content if choice.logprobs else []
    assert streamed == lp.choices[0].logprobs.content
    assert chat(**greedy).choices[0].logprobs is None


def choices_and_seeds():
    hot = {"model": "smollm2", "messages": messages, "temperature": 1, "max_tokens": 12}
    two, again = chat(**hot, n=3, seed=7), chat(**hot, n=3, seed=7)
    texts = [c.message.content for c in two.choices]
    assert [c.index for c in two.choices] == [0, 1, 2]
    assert texts == [c.message.content for c in again.choices]
    assert len(set(texts)) > 1, texts
    assert chat(**hot, seed=7).choices[0].message.content == texts[0]
    assert two.usage.completion_tokens <= 36 and two.usage.prompt_tokens == chat(**hot, seed=7).usage.prompt_tokens
    parts = ["", "", ""]
    for c in chat(**hot, n=3, seed=7, stream=True):
        for choice in c.choices:
            parts[choice.index] += choice.delta.content or ""
    assert parts == texts, (parts, texts)
    assert len({chat(**hot).choices[0].message.content for _ in range(4)}) > 1, "without a seed answers vary"
    assert len({c.message.content for c in chat(**greedy, n=2).choices}) == 1


def stops():
    text = chat(**greedy).choices[0].message.content
    at = text.index("Paris")
    for stop in ("Paris", ["zzz", "Paris"], ["Par", "Paris"], ["ris", "aris", "Paris"]):
        r = chat(**greedy, stop=stop)
        cut = at + (0 if "Par" in str(stop) or stop == "Paris" else 1)
        assert r.choices[0].message.content == text[:cut] and r.choices[0].finish_reason == "stop", (stop, r)
        assert "".join(c.choices[0].delta.content or "" for c in chat(**greedy, stop=stop, stream=True)) == text[:cut]
    kept = chat(**greedy, stop="Paris", extra_body={"include_stop_str_in_output": True})
    assert kept.choices[0].message.content == text[: at + 5]


def completions():
    prompt = "The capital of France is"
    legacy = client.completions.create(model="smollm2", prompt=prompt, temperature=0, max_tokens=8, stop=["\n"])
    assert "Paris" in legacy.choices[0].text, legacy.choices[0].text
    assert client.completions.create(model="smollm2", prompt=prompt).usage.completion_tokens <= 16

    e = client.completions.create(model="smollm2", prompt=prompt, temperature=0, max_tokens=8, echo=True, logprobs=2).choices[0]
    assert e.text.startswith(prompt)
    lp = e.logprobs
    assert lp.token_logprobs[0] is None and lp.top_logprobs[0] is None and all(p <= 0 for p in lp.token_logprobs[1:]), lp
    assert len(lp.tokens) == len(lp.token_logprobs) == len(lp.top_logprobs) == len(lp.text_offset)
    assert "".join(lp.tokens) == e.text
    assert all(e.text[o:].startswith(t) for o, t in zip(lp.text_offset, lp.tokens)), lp
    assert all(t in top and 2 <= len(top) <= 3 for t, top in zip(lp.tokens[1:], lp.top_logprobs[1:])), lp

    # The prompt alone, as evaluation harnesses ask for it: the same figures.
    alone = client.completions.create(model="smollm2", prompt=prompt, temperature=0, max_tokens=0, echo=True, logprobs=2)
    n = alone.usage.prompt_tokens
    assert alone.choices[0].text == prompt and alone.usage.completion_tokens == 0
    assert alone.choices[0].logprobs.tokens == lp.tokens[:n]
    assert alone.choices[0].logprobs.token_logprobs == lp.token_logprobs[:n]

    text, tokens = "", []
    for c in client.completions.create(model="smollm2", prompt=prompt, temperature=0, max_tokens=8, echo=True, logprobs=2, stream=True):
        text += c.choices[0].text
        tokens += c.choices[0].logprobs.tokens if c.choices[0].logprobs else []
    assert text == e.text and tokens == lp.tokens

    many = client.completions.create(model="smollm2", prompt=[prompt, "Once upon"], n=2, temperature=0, max_tokens=4)
    assert [c.index for c in many.choices] == [0, 1, 2, 3]
    assert many.choices[0].text == many.choices[1].text != many.choices[2].text == many.choices[3].text
    ids = client.completions.create(model="smollm2", prompt=[504, 3575, 282], temperature=0, max_tokens=4)
    assert ids.usage.prompt_tokens == 3


def errors():
    e = refused(openai.NotFoundError, chat, model="nope", messages=messages)
    assert e.code == "model_not_found" and "smollm2" in str(e), e
    e = refused(openai.BadRequestError, chat, model="smollm2", messages=messages, temperature=9)
    assert e.param == "temperature" and e.type == "invalid_request_error", e
    refused(openai.BadRequestError, chat, **greedy | {"stream": True, "max_tokens": 0})
    e = refused(openai.BadRequestError, client.completions.create, model="smollm2", prompt="word " * 20000, max_tokens=1)
    assert e.code == "context_length_exceeded", e
    e = refused(openai.BadRequestError, chat, **greedy | {"max_tokens": 100000})
    assert e.code == "context_length_exceeded" and "8192" in str(e) and "100000" in str(e), e
    e = refused(openai.BadRequestError, chat, **greedy, tools=[{"type": "function", "function": {"name": "f"}}])
    assert e.param == "tools", e
    refused(openai.NotFoundError, client.embeddings.create, model="smollm2", input="a")
    assert e.request_id, "errors carry the request's id"


def headers():
    raw = client.chat.completions.with_raw_response.create(**greedy, extra_headers={"x-request-id": "mine-7"})
    assert raw.headers["x-request-id"] == "mine-7" and raw.parse()._request_id == "mine-7"
    a, b = client.chat.completions.with_raw_response.create(**greedy), client.chat.completions.with_raw_response.create(**greedy)
    assert a.headers["x-request-id"] != b.headers["x-request-id"]
    assert a.headers["content-type"] == "application/json"
    with client.chat.completions.with_streaming_response.create(**greedy, stream=True) as s:
        assert s.headers["content-type"].startswith("text/event-stream") and s.headers["x-request-id"]
        assert list(s.iter_lines())[-2:] == ["data: [DONE]", ""]


def cancelled():
    begin = time.monotonic()
    chat(**greedy)
    calm = time.monotonic() - begin
    for _ in range(6):
        long = chat(model="smollm2", messages=messages, max_tokens=2000, stream=True, extra_body={"ignore_eos": True})
        for i, _ in enumerate(long):
            if i == 3:
                long.close()
                break
    refused(openai.APITimeoutError, client.with_options(timeout=0.5).chat.completions.create, model="smollm2", messages=messages, max_tokens=2000, extra_body={"ignore_eos": True})
    begin = time.monotonic()
    chat(**greedy)
    took = time.monotonic() - begin
    assert took < 3 * calm + 2, f"{took:.1f} s after streams that were left, {calm:.1f} s before: seven answers of 2000 tokens go on"


def concurrent():
    async def run():
        async with openai.AsyncOpenAI(base_url=base, api_key="unused", max_retries=0, timeout=120) as c:

            async def one(i):
                text = ""
                s = await c.chat.completions.create(**asked(i), stream=True)
                async for chunk in s:
                    text += chunk.choices[0].delta.content or ""
                return text

            return await asyncio.gather(*(one(i) for i in range(16)))

    def asked(i):
        return greedy | {"messages": [{"role": "user", "content": f"What is {i} times {i + 1}? Explain."}], "temperature": (i % 2) * 0.9, "seed": i}

    alone = [chat(**asked(i)).choices[0].message.content for i in range(16)]
    together = asyncio.run(run())
    assert together == alone, [(a, b) for a, b in zip(alone, together) if a != b]


def busy():
    """The graph at argv[2] takes one request at a time: 429, and the SDK's retries get through when the first is over."""
    one = openai.OpenAI(base_url=sys.argv[2], api_key="unused", max_retries=0, timeout=30)
    ask = {"model": "any", "messages": messages, "max_tokens": 40, "extra_body": {"ignore_eos": True}}
    held = one.chat.completions.create(**ask | {"max_tokens": 4000}, stream=True)
    next(held)
    e = refused(openai.RateLimitError, one.chat.completions.create, **ask)
    assert e.type == "rate_limit_error" and int(e.response.headers["retry-after"]) >= 1 and e.request_id, e
    threading.Timer(0.5, held.close).start()
    begin = time.monotonic()
    raw = one.with_options(max_retries=3).chat.completions.with_raw_response.create(**ask)
    assert raw.retries_taken >= 1 and time.monotonic() - begin >= 0.5, raw.retries_taken
    assert raw.parse().usage.completion_tokens == 40


def broken():
    """The worker of the graph at argv[3] fails: 503, streamed or not, which the SDK takes for what may be tried again."""
    c = openai.OpenAI(base_url=sys.argv[3], api_key="unused", max_retries=0, timeout=30)
    for stream in (False, True):
        e = refused(openai.InternalServerError, c.chat.completions.create, model="any", messages=messages, stream=stream)
        assert e.status_code == 503 and e.type == "server_error" and int(e.response.headers["retry-after"]) >= 1, e
    begin = time.monotonic()
    refused(openai.InternalServerError, c.with_options(max_retries=2).chat.completions.create, model="any", messages=messages)
    assert time.monotonic() - begin >= 2, "the SDK waits as retry-after says, twice"


for test in (models, whole_and_streamed, logprobs, choices_and_seeds, stops, completions, errors, headers, cancelled, concurrent, busy, broken):
    begin = time.monotonic()
    test()
    print(f"{test.__name__}: {time.monotonic() - begin:.1f} s", flush=True)
print("all passed")
