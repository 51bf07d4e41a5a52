// The official OpenAI SDK for Node against a running graph, one that is busy and one that is broken: sdk.mjs NODE_MODULES URL URL URL.
import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { join, resolve } from "node:path";

const OpenAI = createRequire(join(resolve(process.argv[2]), "x.js"))("openai").default;
const [base, busyURL, brokenURL] = process.argv.slice(3);
const connect = (baseURL) => new OpenAI({ baseURL, apiKey: "unused", maxRetries: 0, timeout: 120_000 });
const client = connect(base);
const messages = [{ role: "user", content: "What is the capital of France?" }];
const greedy = { model: "smollm2", messages, temperature: 0, max_tokens: 24 };

const tests = {
  async models() {
    const ids = [];
    for await (const m of client.models.list()) ids.push(m.id);
    assert.deepEqual(ids, ["smollm2"]);
    await assert.rejects(client.models.retrieve("org/name"), OpenAI.NotFoundError);
  },

  async wholeAndStreamed() {
    const whole = await client.chat.completions.create(greedy);
    const text = whole.choices[0].message.content;
    assert.match(text, /Paris/);
    let streamed = "", usage;
    for await (const c of await client.chat.completions.create({ ...greedy, stream: true, stream_options: { include_usage: true } })) {
      streamed += c.choices[0]?.delta.content ?? "";
      usage = c.usage ?? usage;
    }
    assert.equal(streamed, text);
    assert.deepEqual([usage.prompt_tokens, usage.completion_tokens], [whole.usage.prompt_tokens, whole.usage.completion_tokens]);
    const helper = client.chat.completions.stream(greedy);
    assert.equal((await helper.finalChatCompletion()).choices[0].message.content, text);
  },

  async parameters() {
    const q = { model: "smollm2", messages, temperature: 1, max_tokens: 12, n: 3, seed: 7 };
    const texts = async () => (await client.chat.completions.create(q)).choices.map((c) => c.message.content);
    const first = await texts();
    assert.deepEqual(await texts(), first);
    const stopped = await client.chat.completions.create({ ...greedy, stop: ["zzz", "Paris"] });
    assert.equal(stopped.choices[0].finish_reason, "stop");
    assert.doesNotMatch(stopped.choices[0].message.content, /Par/);
    const lp = (await client.chat.completions.create({ ...greedy, logprobs: true, top_logprobs: 2 })).choices[0];
    assert.equal(Buffer.from(lp.logprobs.content.flatMap((t) => t.bytes)).toString(), lp.message.content);
    const echo = (await client.completions.create({ model: "smollm2", prompt: "The capital of France is", max_tokens: 4, temperature: 0, echo: true, logprobs: 1 })).choices[0];
    assert.equal(echo.logprobs.token_logprobs[0], null);
    assert.equal(echo.logprobs.tokens.join(""), echo.text);
  },

  async errors() {
    const bad = (more) => client.chat.completions.create({ ...greedy, ...more });
    await assert.rejects(bad({ model: "nope" }), (e) => e instanceof OpenAI.NotFoundError && e.code === "model_not_found" && !!e.requestID);
    await assert.rejects(bad({ temperature: 9 }), (e) => e instanceof OpenAI.BadRequestError && e.param === "temperature");
    await assert.rejects(bad({ max_tokens: 0, stream: true }), OpenAI.BadRequestError);
    await assert.rejects(bad({ max_tokens: 100000 }), (e) => e.code === "context_length_exceeded");
    const { response } = await client.chat.completions.create(greedy, { headers: { "x-request-id": "mine-9" } }).withResponse();
    assert.equal(response.headers.get("x-request-id"), "mine-9");
  },

  async cancelled() {
    for (let i = 0; i < 6; i++) {
      const s = await client.chat.completions.create({ ...greedy, max_tokens: 2000, ignore_eos: true, stream: true });
      let n = 0;
      for await (const _ of s) if (++n === 3) break; // which aborts the request
    }
    await assert.rejects(client.chat.completions.create({ ...greedy, max_tokens: 2000, ignore_eos: true }, { timeout: 500 }), OpenAI.APIConnectionTimeoutError);
    const begin = Date.now();
    await client.chat.completions.create(greedy);
    assert.ok(Date.now() - begin < 5000, `${Date.now() - begin} ms after streams that were left`);
  },

  async concurrent() {
    const q = (i) => ({ ...greedy, messages: [{ role: "user", content: `Spell the number ${i}.` }] });
    const alone = [];
    for (let i = 0; i < 8; i++) alone.push((await client.chat.completions.create(q(i))).choices[0].message.content);
    const together = await Promise.all(
      alone.map(async (_, i) => {
        let text = "";
        for await (const c of await client.chat.completions.create({ ...q(i), stream: true })) text += c.choices[0].delta.content ?? "";
        return text;
      }),
    );
    assert.deepEqual(together, alone);
  },

  async refusals() {
    const busy = connect(busyURL);
    const ask = { model: "any", messages, max_tokens: 40, ignore_eos: true };
    const held = await busy.chat.completions.create({ ...ask, max_tokens: 4000, stream: true });
    await assert.rejects(busy.chat.completions.create(ask), OpenAI.RateLimitError);
    setTimeout(() => held.controller.abort(), 500);
    assert.equal((await busy.chat.completions.create(ask, { maxRetries: 3 })).usage.completion_tokens, 40);
    await assert.rejects(connect(brokenURL).chat.completions.create(ask), (e) => e instanceof OpenAI.InternalServerError && e.status === 503);
  },
};

for (const [name, test] of Object.entries(tests)) {
  const begin = Date.now();
  await test();
  console.log(`${name}: ${((Date.now() - begin) / 1000).toFixed(1)} s`);
}
console.log("all passed");
