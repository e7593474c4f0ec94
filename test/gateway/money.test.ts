// Money: golden costs by hand from the published prices, budgets that hold under concurrency and across a crash, a ledger whose
// sums are the sums.
import { beforeAll, describe, expect, test } from "vitest";
import { createBudgets } from "#daemon/gateway/budgets/budgets.ts";
import { compileEngagement } from "#daemon/gateway/engagement/engagement.ts";
import { priceFor } from "#daemon/gateway/engagement/prices.ts";
import { type TokenUsage, usageFromWire, wireUsage } from "#daemon/gateway/format/usage.ts";
import { createLedger } from "#daemon/gateway/ledger/ledger.ts";
import { createCatalogue } from "#daemon/gateway/pricing/catalogue.ts";
import { attachmentsAtMost, estimateChatTokens } from "#daemon/gateway/pricing/estimate.ts";
import { maxOutputTokens } from "#daemon/gateway/pricing/output-limits.ts";
import { costOf, dollars, overridePrice, worstCost } from "#daemon/gateway/pricing/price.ts";
import { anthropicUsage } from "#daemon/gateway/providers/anthropic/usage.ts";
import { converseUsage } from "#daemon/gateway/providers/bedrock/usage.ts";
import { googleUsage } from "#daemon/gateway/providers/google/usage.ts";
import { gatewayStores } from "#daemon/gateway/stores.ts";
import { silentLogger } from "#daemon/telemetry/log.ts";
import { systemClock } from "#shared/clock.ts";
import { temporaryStorage } from "#test/temporary.ts";
import { eventStreamBytes } from "./event-stream.ts";
import { ledgerRow } from "./ledger-row.ts";
import { completion, principal, stream, testGateway } from "./pipeline.ts";
import { upstreamOfFile } from "./upstream.ts";

const upstream = upstreamOfFile();

describe("golden costs", () => {
  const engagement = compileEngagement({
    providers: {
      openai: { api_key: "k" },
      anthropic: { api_key: "k" },
      google: { api_key: "k" },
      bedrock: { api_key: "k", region: "us-east-1" },
      azure: { api_key: "k", base_url: "https://x.openai.azure.com" },
      own: { type: "openai", base_url: "http://127.0.0.1:1/v1" },
      far: { type: "openai", base_url: "https://llm.example.com/v1" },
      groq: { type: "openai", base_url: "https://api.groq.com/openai/v1", api_key: "k" },
      openrouter: { type: "openai", base_url: "https://openrouter.ai/api/v1", api_key: "k" },
      "my-openai": { type: "openai", base_url: "https://proxy.example.com/v1", api_key: "k" },
    },
    prices: {
      "openai/gpt-4o": { input: 3, output: 12, cache_read: 1, reasoning: 20 },
      "far/*": { input: 0.07, output: 0.123456 },
      "gpt-4.1": { input: 4, output: 5 },
      "gpt-4.1*": { input: 40, output: 50 },
      "azure/gpt-4.1": { input: 6, output: 7 },
    },
  });
  const catalogue = createCatalogue();
  beforeAll(() => catalogue.load());
  const cost = (name: string, [input, cached, cache_write, output, reasoning]: readonly number[]) => {
    const [provider = "", ...rest] = name.split("/");
    const configured = engagement.providers.get(provider);
    if (!configured) throw new Error(name);
    const price = priceFor(engagement, catalogue, configured, rest.join("/"));
    const usage = { input, cached, cache_write, output, reasoning } as Parameters<typeof costOf>[1];
    return price && dollars(costOf(price, usage));
  };

  test("what a price does not name of a direction, or of both, is as it would be without it", () => {
    const known = { "openai/gpt-4o-mini": { cache_read: 0.01 }, "openai/o3": {}, "openai/gpt-4.1": { input: 3 } };
    const prices = { ...known, x: { reasoning: 1 }, y: {}, z: { input: 1 } };
    const tiers = { "openai/gpt-4o-mini@flex": { cache_write: 1 } };
    const own = compileEngagement({ providers: { openai: { api_key: "k" } }, prices: { ...prices, ...tiers } });
    const openai = own.providers.get("openai");
    const of = (model: string) => (openai ? priceFor(own, catalogue, openai, model) : null);
    const usage = { input: 1e6, cached: 1e6, cache_write: 1e6, output: 1e6, reasoning: 1e6 };
    const priced = (tier?: "flex") => {
      const price = of("gpt-4o-mini");
      return price && dollars(costOf(price, { ...usage, tier }));
    };
    expect([priced(), priced("flex")]).toEqual([1.51, 2.36]);
    expect([of("x"), of("y")]).toEqual([null, null]);
    const whole = ["o3", "gpt-4.1", "z"].map((model) => {
      const price = of(model);
      return price && dollars(costOf(price, usage));
    });
    expect(whole).toEqual([2 + 0.5 + 2 + 8 + 8, 3 + 3 + 3 + 8 + 8, 1 + 1 + 1]);
  });

  test("a price for long prompts says what is different from that of shorter ones, for the whole call", () => {
    const prices = {
      "google/own": {
        input: 1,
        output: 10,
        cache_read: 0.1,
        long_prompts: [
          { above: 500, output: 40 },
          { above: 200, input: 2, output: 20 },
        ],
      },
      // The rest of it, and from where it holds, is the published price's: 1.25 and 10, beyond 200,000 tokens 2.5 and 15.
      "google/gemini-2.5-pro": { cache_read: 0.5, long_prompts: [{ above: 1000, cache_read: 1 }] },
      // 0.3 and 2.5.
      "google/gemini-2.5-flash": { long_prompts: [{ above: 1000, input: 1 }] },
    };
    const own = compileEngagement({ providers: { google: { api_key: "k" } }, prices });
    const google = own.providers.get("google");
    const of = (model: string, input: number, cached: number) => {
      const price = google && priceFor(own, catalogue, google, model);
      if (!price) throw new Error(model);
      return costOf(price, { input, cached, cache_write: 0, output: 1, reasoning: 1 }) / 1e6;
    };
    expect([of("own", 100, 100), of("own", 100, 101), of("own", 0, 500), of("own", 1, 500)]).toEqual([
      100 + 10 + 20,
      200 + 10.1 + 40,
      50 + 40,
      2 + 50 + 80,
    ]);
    const pro = [of("gemini-2.5-pro", 900, 100), of("gemini-2.5-pro", 900, 101), of("gemini-2.5-pro", 2e5, 1)];
    expect(pro).toEqual([1125 + 50 + 20, 1125 + 101 + 20, 5e5 + 1 + 30]);
    expect([of("gemini-2.5-flash", 1000, 0), of("gemini-2.5-flash", 1001, 0)]).toEqual([300 + 5, 1001 + 5]);
  });

  test("a call reserves what a shorter prompt than it may have would cost, where that is dearer", () => {
    const price = overridePrice({ input: 2, output: 1, long_prompts: [{ above: 100, input: 1 }] });
    expect(worstCost(price, 150, 10, {})).toBe(310e6);
  });

  test("no price is so high that a call costs no number: a budget holds", async () => {
    upstream.answer = (response) =>
      void response.writeHead(200, { "content-type": "application/json" }).end(completion());
    const { chat } = await testGateway({
      providers: { openai: { api_key: "k", base_url: `${upstream.url}/v1` } },
      prices: { "openai/x": { input: 1e303, output: 1e303 } },
    });
    const poor = principal({ id: "gt_poor" }, { budget_usd: 1 });
    await expect(chat({ model: "openai/x" }, { principal: poor })).rejects.toMatchObject({
      code: "insufficient_quota",
    });
    expect(Number((await chat({ model: "openai/x" })).headers["x-magic-cost-usd"])).toBeGreaterThan(9007);
  });

  // Dollars per million tokens of the vendors' price pages: input / cached / cache write / output (reasoning is output).
  test.each([
    // 0.15 / 0.075 / - / 0.60: 900 x 0.15 + 100 x 0.075 + 50 x 0.6
    ["openai/gpt-4o-mini", [900, 100, 0, 50, 0], 0.0001725],
    // 2 / 0.5 / - / 8: 1000 x 2 + 24 x 0.5 + (7 + 640) x 8
    ["openai/o3", [1000, 24, 0, 7, 640], 0.007188],
    // 1 / 0.1 / 1.25 / 5: 11 x 1 + 20000 x 0.1 + 3000 x 1.25 + 333 x 5
    ["anthropic/claude-haiku-4-5", [11, 20000, 3000, 333, 0], 0.007426],
    // up to 200,000 tokens 1.25 / 0.125 / - / 10
    ["google/gemini-2.5-pro", [150000, 50000, 0, 100, 900], 0.20375],
    // beyond 2.50 / 0.25 / - / 15, for the whole request
    ["google/gemini-2.5-pro", [150001, 50000, 0, 100, 900], 0.4025025],
    // regional: 1.1 / 0.11 / 1.375 / 5.5
    ["bedrock/us.anthropic.claude-haiku-4-5-20251001-v1:0", [100, 10, 8, 3, 0], 0.0001386],
    // 2.5 / 1.25 / - / 10
    ["azure/gpt-4o", [1, 1, 0, 1, 0], 0.00001375],
    // the override: 3 / 1 / as input / 12, reasoning 20
    ["openai/gpt-4o", [10, 10, 10, 10, 10], 0.00039],
    ["far/llama", [1_000_000, 0, 0, 1, 0], 0.070000123456],
    // a bare id is the model's wherever it is served, but where its full name has a price
    ["openai/gpt-4.1", [1, 0, 0, 1, 0], 0.000009],
    ["azure/gpt-4.1", [1, 0, 0, 1, 0], 0.000013],
    ["openai/gpt-4.1-mini", [1, 0, 0, 1, 0], 0.00009],
    // a price of more than six decimals, a twelfth of a dollar: 10 x 0.1 + 12000 / 12 + 5 x 0.4
    ["openrouter/google/gemini-2.5-flash-lite", [10, 0, 12_000, 5, 0], 0.001003],
    ["own/anything", [1_000_000, 5, 5, 1_000_000, 5], 0],
    ["sandbox/echo", [1_000_000, 0, 0, 1, 0], 0],
  ] as const)("%s %j", (name, usage, expected) => {
    expect(cost(name, usage)).toBe(expected);
  });

  const priced = (provider: string, model: string, usage: TokenUsage | null) => {
    const configured = engagement.providers.get(provider);
    const price = configured && priceFor(engagement, catalogue, configured, model);
    return price && usage && dollars(costOf(price, usage));
  };

  test("what the cache keeps for an hour costs more than what it keeps for five minutes", () => {
    // claude-sonnet-4-5, 3 / - / 3.75 (an hour: 6) / 15: 100 x 3 + 400 x 3.75 + 600 x 6 + 10 x 15
    const counted = () => expect.unreachable("nothing is guessed");
    const anthropic = {
      input_tokens: 100,
      cache_creation_input_tokens: 1_000,
      cache_creation: { ephemeral_5m_input_tokens: 400, ephemeral_1h_input_tokens: 600 },
      output_tokens: 10,
    };
    const usage = anthropicUsage(anthropic, counted);
    expect(priced("anthropic", "claude-sonnet-4-5", usage)).toBe(0.00555);
    const converse = {
      inputTokens: 100,
      cacheWriteInputTokens: 1_000,
      cacheDetails: [
        { ttl: "5m", inputTokens: 400 },
        { ttl: "1h", inputTokens: 600 },
      ],
      outputTokens: 10,
    };
    expect(converseUsage(converse, undefined, counted)).toEqual(usage);
    // At Bedrock the list has no price for an hour: twice the input's, as everywhere. Regional endpoints cost a tenth more.
    expect(priced("bedrock", "global.anthropic.claude-sonnet-4-5-20250929-v1:0", usage)).toBe(0.00555);
    expect(priced("bedrock", "us.anthropic.claude-sonnet-4-5-20250929-v1:0", usage)).toBe(0.006105);
  });

  test("what Claude says it served in the United States costs a tenth more, unless magic.yaml has the price", () => {
    // claude-opus-4-6, 5 / 0.5 / 6.25 / 25: (100 x 5 + 1,000 x 0.5 + 10 x 25) x 1.1
    const served = (inference_geo: string) =>
      anthropicUsage({ input_tokens: 100, cache_read_input_tokens: 1_000, output_tokens: 10, inference_geo }, () =>
        expect.unreachable("nothing is guessed"),
      );
    expect(priced("anthropic", "claude-opus-4-6", served("us"))).toBe(0.001375);
    for (const elsewhere of ["global", "not_available"])
      expect(priced("anthropic", "claude-opus-4-6", served(elsewhere))).toBe(0.00125);
    expect(costOf(overridePrice({ input: 1, output: 1, cache_read: 1 }), served("us"))).toBe(1_110_000_000);
  });

  test("what Qwen writes to its cache is counted as written", () => {
    const details = { cached_tokens: 20, cache_creation_input_tokens: 30 };
    const usage = usageFromWire({ prompt_tokens: 100, completion_tokens: 5, prompt_tokens_details: details });
    expect(usage).toEqual({ input: 50, cached: 20, cache_write: 30, output: 5, reasoning: 0 });
  });

  test("what Gemini does not count is what its total leaves", () => {
    const of = (usage: object) => googleUsage({ totalTokenCount: 100, thoughtsTokenCount: 20, ...usage });
    expect(of({ promptTokenCount: 30 })).toMatchObject({ input: 30, output: 50, reasoning: 20 });
    expect(of({ candidatesTokenCount: 30 })).toMatchObject({ input: 50, output: 30, reasoning: 20 });
    expect(of({ promptTokenCount: 80 })).toMatchObject({ input: 80, output: 0, reasoning: 20 });
  });

  test("audio and images are counted, and cost what the list has for it", () => {
    // gemini-2.5-flash, 0.30 (audio 1) / 0.03 (audio 0.10) / - / 2.50: 300 x 0.3 + 500 x 1 + 100 x 0.03 + 100 x 0.1 + 10 x 2.5
    const usage = googleUsage({
      promptTokenCount: 1_000,
      promptTokensDetails: [
        { modality: "TEXT", tokenCount: 400 },
        { modality: "AUDIO", tokenCount: 600 },
      ],
      cachedContentTokenCount: 200,
      cacheTokensDetails: [{ modality: "AUDIO", tokenCount: 100 }],
      candidatesTokenCount: 10,
    });
    expect(priced("google", "gemini-2.5-flash", usage)).toBe(0.000628);
    expect(usage && wireUsage(usage).prompt_tokens_details).toMatchObject({ cached_tokens: 200, audio_tokens: 600 });
    const openai = usageFromWire({
      prompt_tokens: 100,
      completion_tokens: 50,
      prompt_tokens_details: { audio_tokens: 90, cached_tokens: 20 },
      completion_tokens_details: { audio_tokens: 40 },
    });
    // gemini-2.5-flash-image, 0.30 / 2.50 (images 30): 10 x 0.3 + 10 x 2.5 + 1290 x 30
    const drawn = googleUsage({
      promptTokenCount: 10,
      candidatesTokenCount: 1_300,
      candidatesTokensDetails: [{ modality: "IMAGE", tokenCount: 1_290 }],
    });
    expect(priced("google", "gemini-2.5-flash-image", drawn)).toBe(0.038728);
    // Never more than its class, whatever a server says.
    expect(openai?.parts).toEqual({ input_audio: 80, output_audio: 40 });
  });

  test("a server is priced as a vendor by its address, never by a name that merely resembles one", () => {
    expect(cost("groq/llama-3.1-8b-instant", [1_000_000, 0, 0, 0, 0])).toBe(0.05);
    expect(cost("my-openai/gpt-4o", [1, 0, 0, 0, 0])).toBeNull();
  });
});

const priced = (more: object = {}) => ({
  providers: { openai: { api_key: "k", base_url: `${upstream.url}/v1` } },
  prices: { "openai/m": { input: 1, output: 10, cache_read: 0.5, reasoning: 20 } },
  ...more,
});

test("a stream costs what the same answer costs whole, asked for or not, cached and reasoning tokens included", async () => {
  const details = {
    prompt_tokens_details: { cached_tokens: 600 },
    completion_tokens_details: { reasoning_tokens: 300 },
  };
  upstream.answer = (response, _request, body) => {
    const streamed = body.includes('"stream":true');
    response.writeHead(200, { "content-type": streamed ? "text/event-stream" : "application/json" });
    response.end(streamed ? stream(1000, 500, details) : completion(1000, 500, details));
  };
  const { chat, gateway } = await testGateway(priced());
  // 400 x 1 + 600 x 0.5 + 200 x 10 + 300 x 20
  const whole = await chat({ model: "openai/m" });
  expect((whole.json["usage"] as { cost_usd: number }).cost_usd).toBe(0.0087);
  const shown = await chat({ model: "openai/m", stream: true, stream_options: { include_usage: true } });
  expect(shown.text.match(/"cost_usd":[\d.]+/g)).toEqual(['"cost_usd":0.0087']);
  const hidden = await chat({ model: "openai/m", stream: true });
  expect(hidden.text).not.toContain('"usage":{');
  const [sum] = await gateway.usage({ by: "model" });
  expect(sum).toMatchObject({ requests: 3, prompt_tokens: 3000, completion_tokens: 1500, cost_pico: "26100000000" });
});

test("what Gemini's imitation of OpenAI counts in its total alone was thought, whole and streamed", async () => {
  upstream.answer = (response, _request, body) => {
    const streamed = body.includes('"stream":true');
    response.writeHead(200, { "content-type": streamed ? "text/event-stream" : "application/json" });
    response.end((streamed ? stream : completion)(9, 1, { total_tokens: 103 }));
  };
  const providers = { gemini: { type: "openai" as const, api_key: "k", base_url: `${upstream.url}/v1` } };
  const { chat, gateway } = await testGateway({
    providers,
    prices: { "gemini/gemini-2.5-flash": { input: 1, output: 10 }, "gemini/m": { input: 1, output: 10 } },
  });
  const cost = async (model: string, more: object = {}) => {
    const { text } = await chat({ model: `gemini/${model}`, ...more });
    return JSON.parse(text.match(/"cost_usd":([\d.]+)/)?.[1] ?? "");
  };
  expect(await cost("gemini-2.5-flash")).toBe(0.000949);
  expect(await cost("gemini-2.5-flash", { stream: true, stream_options: { include_usage: true } })).toBe(0.000949);
  expect(await cost("m")).toBe(0.000019);
  const [sum] = await gateway.usage({ by: "model" });
  expect(sum).toMatchObject({ key: "gemini/gemini-2.5-flash", requests: 2, completion_tokens: 188 });
});

test("what is served on a service tier costs what magic.yaml says of it, whole and streamed; the dearest is reserved", async () => {
  const tier = (text: string) => text.replaceAll('"model":"m"', '"model":"m","service_tier":"priority"');
  upstream.answer = (response, _request, body) => {
    if (!body.includes('"stream":true')) return void response.end(tier(completion(10, 5)));
    response.writeHead(200, { "content-type": "text/event-stream" }).end(tier(stream(10, 5)));
  };
  const { chat, gateway } = await testGateway({
    providers: { openai: { api_key: "k", base_url: `${upstream.url}/v1` } },
    prices: {
      "openai/m": { input: 1, output: 2 },
      "openai/*@priority": { input: 4, output: 6 },
      "openai/m@priority": { input: 3, output: 5 },
      "openai/m@flex": { input: 0.5, output: 1 },
      "openai/quick": { input: 1, output: 2 },
      "openai/quick@fast": { input: 3, output: 5 },
    },
  });
  expect((await chat({ model: "openai/m" })).json["usage"]).toMatchObject({ cost_usd: 0.000055 });
  // Whoever asks OpenAI for `fast` is told `priority`.
  expect((await chat({ model: "openai/quick" })).json["usage"]).toMatchObject({ cost_usd: 0.000055 });
  const asked = { stream: true, stream_options: { include_usage: true } };
  expect((await chat({ model: "openai/m", ...asked })).text).toContain('"cost_usd":0.000055');
  expect((await gateway.usage({ by: "model" })).map(({ cost_pico }) => cost_pico)).toEqual(["110000000", "55000000"]);
  const body = { model: "openai/m", messages: [{ role: "user", content: "x" }], max_tokens: 1_000_000 };
  const { decision } = await gateway.explain({ body, principal: principal(), controller: null });
  expect(decision?.estimated_cost_usd).toBeGreaterThan(5);
  expect((await gateway.models(principal())).filter(({ id }) => id.includes("@"))).toEqual([]);
});

test("ultrafast goes to OpenAI, and an answer that says so is passed on as it came, at its price", async () => {
  const tier = (text: string) => text.replaceAll('"model":"m"', '"model":"m","service_tier":"ultrafast"');
  upstream.answer = (response, _request, body) => {
    const streamed = body.includes('"stream":true');
    response.writeHead(200, { "content-type": streamed ? "text/event-stream" : "application/json" });
    response.end(tier(streamed ? stream() : completion()));
  };
  const { chat } = await testGateway({
    providers: { openai: { api_key: "k", base_url: `${upstream.url}/v1` } },
    prices: { "openai/m": { input: 1, output: 2 }, "openai/m@ultrafast": { input: 6, output: 12 } },
  });
  const asked = { model: "openai/m", service_tier: "ultrafast" };
  const { json } = await chat(asked);
  expect(json).toMatchObject({ service_tier: "ultrafast", usage: { cost_usd: 0.00012 } });
  expect(JSON.parse(upstream.requests[0]?.body ?? "")).toMatchObject({ service_tier: "ultrafast" });
  const { text } = await chat({ ...asked, stream: true, stream_options: { include_usage: true } });
  expect(text).toContain('"cost_usd":0.00012');
  expect(text.split('"service_tier":"ultrafast"').length - 1).toBe(4);
});

test.each([false, true])(
  "Gemini's and Bedrock's service tiers are asked for, and cost what magic.yaml says where they were given (streamed: %s)",
  async (streamed) => {
    const counts = { promptTokenCount: 10, candidatesTokenCount: 5, totalTokenCount: 15 };
    const gemini = (serviceTier: string) =>
      JSON.stringify({
        candidates: [{ content: { parts: [{ text: "hi" }] }, finishReason: "STOP" }],
        usageMetadata: { ...counts, serviceTier },
      });
    const usage = { inputTokens: 10, outputTokens: 5, totalTokens: 15 };
    const converse = (type: string) => {
      if (!streamed) {
        const output = { message: { role: "assistant", content: [{ text: "hi" }] } };
        return JSON.stringify({ output, stopReason: "end_turn", usage, serviceTier: { type } });
      }
      const events = [
        { messageStart: { role: "assistant" } },
        { contentBlockDelta: { contentBlockIndex: 0, delta: { text: "hi" } } },
        { messageStop: { stopReason: "end_turn" } },
        { metadata: { usage, serviceTier: { type } } },
      ];
      return eventStreamBytes(events.map((event) => JSON.stringify(event)));
    };
    let given = "priority";
    const sent: Record<string, unknown>[] = [];
    upstream.answer = (response, request, body) => {
      sent.push(JSON.parse(body));
      if (request.url?.includes("converse")) return void response.end(converse(given));
      response.end(streamed ? `data: ${gemini(given)}\n\n` : gemini(given));
    };
    const { chat } = await testGateway({
      providers: {
        google: { api_key: "k", base_url: upstream.url },
        bedrock: { api_key: "k", region: "us-east-1", base_url: upstream.url },
      },
      prices: { m: { input: 1, output: 2 }, "m@priority": { input: 3, output: 5 } },
    });
    for (const [provider, asked] of [
      ["google", "priority"],
      ["bedrock", { type: "priority" }],
    ] as const) {
      const ask = async (service_tier: string) => {
        const body = {
          model: `${provider}/m`,
          service_tier,
          stream: streamed,
          ...(streamed && { stream_options: { include_usage: true } }),
        };
        return (await chat(body)).text;
      };
      given = "priority";
      const served = await ask("priority");
      expect(served).toContain('"cost_usd":0.000055');
      // In a stream beside its finish reason, where LangChain looks for it, and in its last chunk.
      expect(served.split('"service_tier":"priority"')).toHaveLength(streamed ? 3 : 2);
      expect(sent.at(-1)).toMatchObject({ serviceTier: asked });
      await ask("fast");
      expect(sent.at(-1)).toMatchObject({ serviceTier: asked });
      given = provider === "google" ? "standard" : "default";
      const downgraded = await ask("priority");
      expect(downgraded).toContain('"cost_usd":0.00002');
      expect(downgraded).toContain('"service_tier":"default"');
      expect(await ask("default")).toContain('"cost_usd":0.00002');
      expect(sent.at(-1)).not.toHaveProperty("serviceTier");
      for (const other of ["scale", "ultrafast"]) await expect(ask(other)).rejects.toThrow("flex and priority");
    }
  },
);

test("the sandbox at a price reserves what it will say, however long that is", async () => {
  const { gateway, chat } = await testGateway({ prices: { "sandbox/echo": { input: 0, output: 1 } } });
  const who = (id: string, budget_usd: number) => principal({ id, environment: "sandbox" }, { budget_usd });
  const body = { model: "sandbox/echo", messages: [{ role: "user", content: "x".repeat(40_000) }] };
  const { decision } = await gateway.explain({ body, principal: who("gt_any", 1), controller: null });
  expect(decision?.estimated_cost_usd).toBe(0.01);
  await expect(chat(body, { principal: who("gt_poor", 0.0099) })).rejects.toMatchObject({ code: "insufficient_quota" });
  expect((await chat(body, { principal: who("gt_able", 0.01) })).headers["x-magic-cost-usd"]).toBe("0.01");
});

test("the sandbox at a price counts of a prompt what was reserved for it", async () => {
  const { gateway, chat } = await testGateway({ prices: { "sandbox/echo": { input: 1, output: 0 } } });
  const sandbox = principal({ environment: "sandbox" });
  const many = Array.from({ length: 50 }, (_, index) => ({ role: "user", content: `${index}` }));
  for (const messages of [many, [{ role: "user", content: "漢字".repeat(500) }]]) {
    const body = { model: "sandbox/echo", messages };
    const { decision } = await gateway.explain({ body, principal: sandbox, controller: null });
    const { headers } = await chat(body, { principal: sandbox });
    expect(Number(headers["x-magic-cost-usd"])).toBe(decision?.estimated_cost_usd);
  }
});

test("what a call may cost at most includes the thinking that comes on top, and scripts that take more tokens", async () => {
  const aws = { region: "us-east-1", access_key_id: "a", secret_access_key: "s" };
  const { gateway } = await testGateway({
    providers: { anthropic: { api_key: "k" }, openai: { api_key: "k" }, bedrock: aws },
  });
  const most = async (model: string, more: object, content = "x") => {
    const body = { model, messages: [{ role: "user", content }], ...more };
    const { decision, prompt_tokens: prompt } = await gateway.explain({
      body,
      principal: principal(),
      controller: null,
    });
    return { prompt, usd: decision?.estimated_cost_usd ?? Number.NaN };
  };
  const haiku = "anthropic/claude-haiku-4-5";
  // 8 prompt tokens, all of them perhaps written to the cache (1.25), 100 + 16384 of the answer at 5 a million
  expect((await most(haiku, { max_tokens: 100, reasoning_effort: "high" })).usd).toBe(0.08243);
  expect((await most(haiku, { max_tokens: 100, reasoning_effort: "none" })).usd).toBe(0.00051);
  // kept for an hour: 2 a million
  const messages = [{ role: "user", content: [{ type: "text", text: "x", cache_control: { ttl: "1h" } }] }];
  expect((await most(haiku, { max_tokens: 100, messages })).usd).toBe(0.000516);
  const thinking = { max_completion_tokens: 100, reasoning_effort: "low" };
  const plain = await most("bedrock/us.anthropic.claude-haiku-4-5-20251001-v1:0", { max_tokens: 100 });
  const thought = await most("bedrock/us.anthropic.claude-haiku-4-5-20251001-v1:0", thinking);
  // 2048 at 5.5 a million
  expect(thought.usd - plain.usd).toBeCloseTo(0.011264, 9);
  // gpt-audio: 2.5 and 10 a million for text, 32 and 64 for audio
  const audible = await most("openai/gpt-audio", { max_tokens: 100, modalities: ["text", "audio"] });
  expect(audible.usd).toBe((audible.prompt * 32 + 100 * 64) / 1e6);
  expect((await most("openai/gpt-audio", { max_tokens: 100 })).usd).toBeLessThan(0.0011);
  expect((await most(haiku, {}, "漢字".repeat(500))).prompt).toBeGreaterThan(700);
  expect((await most(haiku, {}, "word".repeat(500))).prompt).toBeLessThan(520);
});

test("images and files are reserved for as where they are dearest, up to the context, and take up no room in it", async () => {
  const { gateway } = await testGateway({ providers: { anthropic: { api_key: "k" }, openai: { api_key: "k" } } });
  const reserved = async (model: string, part: object) => {
    const body = { model, messages: [{ role: "user", content: [part] }], max_tokens: 1 };
    const { candidates } = await gateway.explain({ body, principal: principal(), controller: null });
    return candidates[0]?.estimated_cost_usd;
  };
  const image = { type: "image_url", image_url: { url: "data:image/png;base64,AA==" } };
  // 5008 tokens at 1.25 a million, one of the answer at 5; then as many as GPT-4o mini makes of one, at 0.15 and 0.6
  expect(await reserved("anthropic/claude-haiku-4-5", image)).toBe(0.00626375);
  expect(await reserved("openai/gpt-4o-mini", image)).toBe(0.00750165);
  const file = (data: string) => ({ type: "file", file: { filename: "a", file_data: data } });
  const pdf = `data:application/pdf;base64,${"A".repeat(80_000)}`;
  expect(await reserved("anthropic/claude-haiku-4-5", file(pdf))).toBe(0.05126375);
  expect(await reserved("anthropic/claude-haiku-4-5", file(pdf + "A".repeat(5_000_000)))).toBe(0.2 * 1.25 + 0.000005);
  const text = `data:text/plain;base64,${"A".repeat(80_000)}`;
  expect(await reserved("anthropic/claude-haiku-4-5", file(text))).toBeCloseTo(0.015 * 1.25, 4);
});

test("speech is estimated by its time, and reserved for as if it were compressed", () => {
  // 3.84 million bytes: two minutes at 256 kbit/s, sixteen at 32.
  const said = (format: string) => {
    const messages = [{ content: [{ type: "input_audio", input_audio: { data: "A".repeat(5_120_000), format } }] }];
    return [estimateChatTokens({ messages }), attachmentsAtMost(messages, "gpt-audio")];
  };
  expect(said("mp3")).toEqual([9_607, 0]);
  expect(said("wav")).toEqual([1_207, 8_400]);
});

test("names that clients invent never hold up the ledger", async () => {
  upstream.answer = (response) => void response.end(completion());
  const { chat, gateway } = await testGateway(priced({ allow_unpriced: true }));
  for (const user of ["a\0b", "\ud800", "x".repeat(100_000), "'; drop table gateway_ledger; --"])
    await chat({ model: `openai/m${user.length}`, user });
  const keys = (await gateway.usage({ by: "user" })).map(({ key }) => key);
  expect(keys.toSorted()).toEqual(
    ["'; drop table gateway_ledger; --", "a\ufffdb", "x".repeat(256), "\ufffd"].toSorted(),
  );
});

test.each([
  { messages: [{ role: "assistant", refusal: "x".repeat(4_000) }] },
  { messages: [{ role: "assistant", content: [{ type: "refusal", refusal: "x".repeat(8_000) }] }] },
  { messages: [{ role: "assistant", content: "", reasoning_content: "x".repeat(4_000) }] },
  { messages: [{ role: "assistant", function_call: { name: "f", arguments: "x".repeat(4_000) } }] },
  { messages: [], prediction: { type: "content", content: "x".repeat(4_000) } },
  { messages: [], tools: [{ type: "function", function: { name: "f", description: "語".repeat(1_400) } }] },
])("a prompt is estimated wherever it stands (%#)", (body) => {
  expect(estimateChatTokens(body)).toBeGreaterThan(1_000);
});

test("embeddings that a server does not count are estimated, shown and charged", async () => {
  const data = [{ object: "embedding", index: 0, embedding: [0.5] }];
  const { gateway, chat } = await testGateway(priced({ prices: { "openai/m": { input: 1 } } }));
  for (const usage of [undefined, { prompt_tokens: -3, total_tokens: -3 }]) {
    upstream.answer = (response) => void response.end(JSON.stringify({ object: "list", data, model: "m", usage }));
    const answered = await chat({ model: "openai/m", input: "twelve chars" }, { operation: "embeddings" });
    expect(answered.json).toEqual({
      ...{ object: "list", data, model: "m" },
      usage: { prompt_tokens: 3, total_tokens: 3, cost_usd: 0.000003 },
    });
  }
  expect(await gateway.usage({ by: "model" })).toMatchObject([{ prompt_tokens: 6, cost_pico: "6000000" }]);
});

test("a model without a price is refused with the line to add; allow_unpriced serves it at an unknown cost", async () => {
  upstream.answer = (response) => void response.end(completion());
  const config = { providers: { openai: { api_key: "k", base_url: `${upstream.url}/v1` } } };
  const { chat } = await testGateway(config);
  await expect(chat({ model: "openai/unheard-of" })).rejects.toMatchObject({
    code: "model_unpriced",
    message: expect.stringContaining('prices: { "openai/unheard-of": { input: 0.00, output: 0.00 } }'),
  });
  const open = await testGateway({ ...config, allow_unpriced: true });
  const answered = await open.chat({ model: "openai/unheard-of" });
  expect((answered.json["usage"] as { cost_usd: number | null }).cost_usd).toBeNull();
  expect(answered.headers["x-magic-cost-usd"]).toBeUndefined();
  expect(await open.gateway.usage({ by: "model" })).toMatchObject([{ requests: 1, unpriced: 1, cost_pico: "0" }]);
});

describe("budgets", () => {
  const who = principal({}, { team: "research" });
  // Ten answers of 100 tokens at $10 a million, and nothing for the prompt.
  const config = (usd: number) => ({
    ...priced({ prices: { "openai/m": { input: 0, output: 10 } } }),
    budgets: [{ scope: "team" as const, name: "research", usd, per: "day" as const }],
  });

  test("for ten under five hundred at once admits ten, and goes on where the others left off", async () => {
    upstream.answer = (response) => void setTimeout(() => response.end(completion(10, 100)), 20);
    upstream.requests.length = 0;
    const { chat, gateway, storage } = await testGateway(config(0.01));
    const settled = await Promise.allSettled(
      Array.from({ length: 500 }, () => chat({ model: "openai/m", max_tokens: 100 }, { principal: who })),
    );
    expect(settled.filter(({ status }) => status === "fulfilled").length).toBe(10);
    const refused = settled.find((one): one is PromiseRejectedResult => one.status === "rejected");
    expect(refused?.reason).toMatchObject({ code: "insufficient_quota", retryAfterS: undefined });
    expect(refused?.reason.message).toContain('team "research", $0.01 per day');
    expect(upstream.requests.length).toBe(10);
    await gateway.close();
    const again = await testGateway(config(0.01), { storage });
    await expect(again.chat({ model: "openai/m", max_tokens: 1 }, { principal: who })).rejects.toMatchObject({
      code: "insufficient_quota",
    });
    const larger = await testGateway(config(0.012), { storage });
    const more = await Promise.allSettled(
      Array.from({ length: 20 }, () => larger.chat({ model: "openai/m", max_tokens: 100 }, { principal: who })),
    );
    expect(more.filter(({ status }) => status === "fulfilled").length).toBe(2);
  });

  test("what was spent of a period before its budget was configured counts, asked of the ledger once", async () => {
    upstream.answer = (response) => void response.end(completion(10, 100));
    const storage = await temporaryStorage();
    let now = Date.parse("2026-03-10T12:00:00Z");
    const clock = { ...systemClock, now: () => now };
    const stores = gatewayStores(storage, clock);
    let asked = 0;
    const usage: typeof stores.ledger.usage = (query) => {
      asked++;
      return stores.ledger.usage(query);
    };
    const parts = { storage, clock, stores: { ...stores, ledger: { ...stores.ledger, usage } } };
    const { budgets: _none, ...unbounded } = config(0);
    const { chat, gateway } = await testGateway(unbounded, parts);
    // A tenth of a cent each.
    const call = (team: string, user: string | null = null, from = chat) =>
      from({ model: "openai/m", max_tokens: 100 }, { principal: principal({}, { team, user }) });
    const admitted = async (calls: number, team: string, user?: string, from = chat) => {
      const settled = await Promise.allSettled(Array.from({ length: calls }, () => call(team, user, from)));
      return settled.filter(({ status }) => status === "fulfilled").length;
    };
    for (const [team, user] of [["research"], ["research", "ann"], ["sales", "bob"]] as const) await call(team, user);

    gateway.reconfigure({ ...unbounded, budgets: [{ scope: "team", name: "research", usd: 0.004 }] });
    expect(await admitted(20, "research")).toBe(2);
    expect(await admitted(5, "sales")).toBe(5);
    expect(asked).toBe(1);
    // What the sales spent before the first of these budgets and after it.
    const each = { scope: "team", usd: 0.008 } as const;
    gateway.reconfigure({ ...unbounded, budgets: [each, { scope: "user", usd: 0.002, per: "day" }] });
    expect([await admitted(20, "sales"), await admitted(20, "research"), await admitted(20, "other")]).toEqual([
      2, 4, 8,
    ]);
    expect([await admitted(9, "x", "ann"), await admitted(9, "y", "bob"), await admitted(9, "z", "eve")]).toEqual([
      1, 1, 2,
    ]);
    gateway.reconfigure({ ...unbounded, budgets: [{ scope: "engagement", usd: 0.03 }] });
    expect(await admitted(20, "research")).toBe(30 - 3 - 7 - 14 - 4);
    expect(asked).toBe(4);
    await gateway.close();

    const again = await testGateway({ ...unbounded, budgets: [each] }, parts);
    expect([await admitted(9, "sales", "eve", again.chat), await admitted(9, "new", "eve", again.chat)]).toEqual([
      0, 8,
    ]);
    // A month that begins under the budget has cost nothing before.
    now = Date.parse("2026-04-01T00:00:00Z");
    expect(await admitted(9, "sales", "eve", again.chat)).toBe(8);
    expect(asked).toBe(4);
  });

  test("what costs nothing is served although more than the budget is spent", async () => {
    const own = { type: "openai" as const, base_url: `${upstream.url}/v1` };
    const { chat } = await testGateway({
      ...config(0.001),
      providers: { ...priced().providers, own },
    });
    upstream.answer = (response) => void response.end(completion(1_000, 500));
    expect((await chat({ model: "openai/m", max_tokens: 1 }, { principal: who })).status).toBe(200);
    const refused = chat({ model: "openai/m", max_tokens: 1 }, { principal: who });
    await expect(refused).rejects.toMatchObject({ code: "insufficient_quota" });
    expect((await chat({ model: "own/m" }, { principal: who })).status).toBe(200);
  });

  test("a reservation is given back down to the actual cost, and wholly when the call failed", async () => {
    const { chat } = await testGateway(config(0.01));
    upstream.answer = (response) => void response.writeHead(500).end("{}");
    for (let i = 0; i < 5; i++)
      expect((await chat({ model: "openai/m", max_tokens: 1000 }, { principal: who })).status).toBe(502);
    upstream.answer = (response) => void response.end(completion(10, 100));
    for (let i = 0; i < 9; i++)
      expect((await chat({ model: "openai/m", max_tokens: 200 }, { principal: who })).status).toBe(200);
    await expect(chat({ model: "openai/m", max_tokens: 200 }, { principal: who })).rejects.toMatchObject({
      code: "insufficient_quota",
    });
    expect((await chat({ model: "openai/m", max_tokens: 100 }, { principal: who })).status).toBe(200);
  });

  test("what failed attempts were charged is covered too: no attempt is made that the budget does not cover beside them", async () => {
    const usage = { prompt_tokens: 1_000_000, completion_tokens: 0, total_tokens: 1_000_000 };
    const charged = JSON.stringify({
      id: "c",
      object: "chat.completion.chunk",
      created: 1,
      model: "m",
      choices: [],
      usage,
    });
    let calls = 0;
    upstream.answer = (response) => {
      calls++;
      response.writeHead(200, { "content-type": "text/event-stream" });
      response.end(`data: ${charged}\n\ndata: {"error":{"message":"busy","type":"overloaded_error"}}\n\n`);
    };
    const { chat, gateway } = await testGateway({
      ...priced({ prices: { "openai/m": { input: 1, output: 1 } } }),
      policies: { p: { candidates: ["openai/m"], retries: 9 } },
      budgets: [{ scope: "user", usd: 3.5, per: "month" }],
    });
    const who = principal({ id: "gt_charged" }, { user: "charged" });
    const answered = await chat({ model: "p", stream: true, max_tokens: 10 }, { principal: who });
    expect(answered.status).toBe(503);
    // A dollar each, which nobody could foresee: after the fourth nothing is left.
    expect(calls).toBe(4);
    const [sum] = await gateway.usage({ by: "user" });
    expect(sum?.cost_pico).toBe("4000000000000");
  });

  test("a daemon that dies with calls in flight charges them: rather too much than too little", async () => {
    const storage = await temporaryStorage();
    const stores = gatewayStores(storage, systemClock);
    const after = gatewayStores(storage, systemClock);
    const account = { key: "team:x:day:2026-01-01", limit: 1_000, label: "", remedy: "", alerts: [] };
    const dying = createBudgets(stores.budgets, silentLogger);
    const reservations = await Promise.all([300, 300, 300].map((amount) => dying.reserve([account], amount)));
    reservations[0]?.settle(50);
    // Neither the settled nor the open ones were written when it died.
    const charged = await after.budgets.recover();
    expect(charged).toEqual([{ key: account.key, charged: expect.any(Number) }]);
    const next = createBudgets(after.budgets, silentLogger);
    await expect(next.reserve([account], 200)).rejects.toMatchObject({ code: "insufficient_quota" });
    await next.reserve([account], 50);
  });

  test("a batch that is stored gives nothing to a call that waits for what another daemon has in flight", async () => {
    const account = { key: "team:x:day:2026-01-01", limit: 100, label: "", remedy: "", alerts: [] };
    let elsewhere = 60;
    const budgets = createBudgets(
      {
        shared: true,
        begin: async () => {},
        load: async () => [],
        raise: async ({ key, lease, limit }) => ({
          key,
          spent: 0,
          elsewhere,
          lease: Math.min(lease, limit - elsewhere),
        }),
        recover: async () => [],
        forget: async () => null,
      },
      silentLogger,
    );
    const first = await budgets.reserve([account], 40);
    const second = budgets.reserve([account], 40);
    await new Promise((resolve) => setTimeout(resolve, 10));
    first.settle(10);
    const { accounts, stored, failed } = budgets.takeChanges();
    expect(accounts).toEqual([{ key: account.key, spent: 10, lease: 30 }]);
    failed(new Error("its COMMIT was not answered"));
    stored();
    elsewhere = 0;
    await second;
  });

  test("however many accounts have changed, a batch takes some of them, and the next ones the others", async () => {
    const storage = await temporaryStorage();
    const stores = gatewayStores(storage, systemClock);
    const budgets = createBudgets(stores.budgets, silentLogger);
    const batches: number[] = [];
    const append: typeof stores.ledger.append = (number, rows, accounts) => {
      batches.push(accounts.length);
      return stores.ledger.append(number, rows, accounts);
    };
    const ledger = createLedger({ ...stores.ledger, append }, budgets, silentLogger);
    const keys = Array.from({ length: 1_200 }, (_, i) => `user:${i}:total`);
    const reserve = (key: string) => budgets.reserve([{ key, limit: 1_000, label: "", remedy: "", alerts: [] }], 10);
    for (const reservation of await Promise.all(keys.map(reserve))) reservation.settle(7);
    await ledger.close();
    expect(batches.slice(0, 3)).toEqual([500, 500, 500]);
    expect(Math.max(...batches)).toBe(500);
    const stored = await stores.budgets.load(keys);
    expect(stored.filter(({ spent, elsewhere }) => spent === 7 && elsewhere === 0)).toHaveLength(1_200);
    expect(await gatewayStores(storage, systemClock).budgets.recover()).toEqual([]);
  });

  test("a budget beyond nine thousand dollars is served after a restart as before it", async () => {
    upstream.answer = (response) => void response.end(completion(10, 100));
    const storage = await temporaryStorage();
    const day = new Date().toISOString().slice(0, 10);
    const key = `team:research:day:${day}`;
    const now = new Date().toISOString();
    await storage.units.budget.change({ changes: [{ key, spent: 2 ** 53, lease: 0 }], process: "dead", now });
    await storage.units.budget.change({ changes: [{ key, spent: 1, lease: 2 ** 54 }], process: "dead", now });
    const { chat, gateway } = await testGateway(config(1_000_000), { storage });
    expect((await chat({ model: "openai/m", max_tokens: 100 }, { principal: who })).status).toBe(200);
    await gateway.close();
    const [account] = await storage.units.budget.load({ keys: [key], process: "" });
    expect(account?.spent).toBe(Number(2n ** 53n + 1n + 2n ** 54n + 1_000_000_000n));
    const full = await testGateway(config(27_021), { storage });
    await expect(full.chat({ model: "openai/m", max_tokens: 100_000 }, { principal: who })).rejects.toMatchObject({
      code: "insufficient_quota",
    });
  });

  test("a call that passes midnight is counted for the day whose budget it was taken from", async () => {
    let now = Date.parse("2026-03-31T23:59:59.900Z");
    const clock = { ...systemClock, now: () => now };
    upstream.answer = (response) => {
      now += 1_000;
      response.end(completion(100, 0));
    };
    const { chat, gateway } = await testGateway(
      {
        providers: { openai: { api_key: "k", base_url: `${upstream.url}/v1` } },
        prices: { "openai/m": { input: 10_000, output: 0 } },
        budgets: [{ scope: "user", usd: 1.5, per: "day" }],
      },
      { clock },
    );
    const call = () => chat({ model: "openai/m", max_tokens: 1 }, { principal: principal({}, { user: "u" }) });
    for (let calls = 0; calls < 2; calls++) expect((await call()).status).toBe(200);
    const days = (await gateway.usage({ by: "day" })).map(({ key, cost_pico }) => [key, cost_pico]);
    expect(days).toEqual([
      ["2026-03-31", "1000000000000"],
      ["2026-04-01", "1000000000000"],
    ]);
  });

  test("a team's own budget beside everybody's is one account: nothing counts twice, the smaller limit binds, both warn", async () => {
    upstream.answer = (response) => void response.end(completion(10, 100));
    const each = { scope: "team" as const, per: "day" as const };
    const { chat, lines } = await testGateway({
      ...config(0),
      budgets: [
        { ...each, usd: 0.1, alert_at: 0.02 },
        { ...each, name: "research", usd: 0.005, alert_at: 0.5 },
      ],
    });
    const calls = () => chat({ model: "openai/m", max_tokens: 100 }, { principal: who });
    for (let i = 0; i < 5; i++) expect((await calls()).status).toBe(200);
    await expect(calls()).rejects.toMatchObject({ message: expect.stringContaining("$0.005 per day") });
    const alerts = lines.filter((line) => line.includes("gateway.budget_alert")).map((line) => JSON.parse(line));
    expect(alerts).toMatchObject([
      { share: 0.02, limit_usd: 0.1 },
      { share: 0.5, limit_usd: 0.005 },
    ]);
  });

  test("whoever leaves before the answer has spent the prompt, and cannot read on for nothing", async () => {
    const { gateway, chat } = await testGateway({
      ...priced({ prices: { "openai/m": { input: 10, output: 10 } } }),
      budgets: [{ scope: "user", usd: 0.025, per: "month" }],
    });
    const who = principal({ id: "gt_leaver" }, { user: "leaver" });
    const body = { model: "openai/m", max_tokens: 1, messages: [{ role: "user", content: "x".repeat(4_000) }] };
    for (const stream of [false, true]) {
      const leave = new AbortController();
      upstream.answer = () => leave.abort();
      expect((await chat({ ...body, stream }, { principal: who, signal: leave.signal })).status).toBe(499);
    }
    await expect(chat(body, { principal: who })).rejects.toMatchObject({ code: "insufficient_quota" });
    const [sum] = await gateway.usage({ by: "user", where: { user: "leaver" } });
    expect(sum).toMatchObject({ requests: 2, prompt_tokens: 2 * 1007, cost_pico: "20140000000" });
  });

  test("whoever waits in vain has spent the prompt too, as has whose answer breaks off; who was refused has not", async () => {
    const { gateway, chat } = await testGateway({
      ...priced({ prices: { "openai/m": { input: 10, output: 10 } } }),
      policies: { p: { candidates: ["openai/m"], timeout_ms: 150 }, patient: { candidates: ["openai/m"] } },
    });
    const messages = [{ role: "user", content: "x".repeat(4_000) }];
    const spent = async (more: object, operation: "chat" | "embeddings" = "chat") => {
      const user = `${Math.random()}`;
      const who = principal({ id: `gt_${user}` }, { user });
      expect((await chat({ model: "p", max_tokens: 1, ...more }, { principal: who, operation })).status).not.toBe(200);
      return (await gateway.usage({ by: "user", where: { user } }))[0]?.prompt_tokens;
    };
    upstream.answer = () => undefined;
    expect(await spent({ messages })).toBe(1007);
    expect(await spent({ messages, stream: true })).toBe(1007);
    expect(await spent({ input: "x".repeat(4_000) }, "embeddings")).toBe(1000);
    upstream.answer = (response) => {
      response.writeHead(200, { "content-type": "application/json" }).write("{");
      setTimeout(() => response.destroy(), 5);
    };
    expect(await spent({ messages })).toBe(1007);
    expect(await spent({ input: "x".repeat(4_000) }, "embeddings")).toBe(1000);
    upstream.answer = (response) => void response.destroy();
    expect(await spent({ messages, model: "patient" })).toBe(0);
    upstream.answer = (response) => void response.writeHead(504).end("{}");
    expect(await spent({ messages, model: "patient" })).toBe(0);
    upstream.answer = (response) => void response.end(JSON.stringify({ error: { message: "no" } }));
    expect(await spent({ messages, model: "patient" })).toBe(0);
  });

  test("what a call may cost covers whichever of the two limits of its answer a server obeys", async () => {
    upstream.answer = (response) => void response.end(completion(10, 100));
    const { chat } = await testGateway(config(0.01));
    const both = { model: "openai/m", max_completion_tokens: 1, max_tokens: 5_000 };
    await expect(chat(both, { principal: who })).rejects.toMatchObject({ code: "insufficient_quota" });
  });

  test("a policy passes over whom the budget does not cover, as its explanation says, and refuses when none is left", async () => {
    upstream.answer = (response) => void response.end(completion(10, 100));
    const { chat, gateway } = await testGateway({
      ...config(0.002),
      prices: { "openai/dear": { input: 0, output: 50 }, "openai/m": { input: 0, output: 10 } },
      policies: { p: { candidates: ["openai/dear", "openai/m"] } },
    });
    const body = { model: "p", max_tokens: 100 };
    const told = async () => {
      const { decision, candidates } = await gateway.explain({ body, principal: who, controller: null });
      return [decision?.model, ...candidates.map(({ model, rank, rule }) => [model, rank, rule])];
    };
    const dear = ["openai/dear", null, "budget"];
    expect(await told()).toEqual(["openai/m", ["openai/m", 1, null], dear]);
    for (let calls = 0; calls < 2; calls++)
      expect((await chat(body, { principal: who })).headers).toMatchObject({
        "x-magic-model": "m",
        "x-magic-attempts": "1",
      });
    const refused = chat(body, { principal: who });
    await expect(refused).rejects.toMatchObject({
      code: "insufficient_quota",
      message: expect.stringContaining("$0.005"),
    });
    expect(await told()).toEqual([undefined, dear, ["openai/m", null, "budget"]]);
  });

  test("a user of the body is one short, storable name in budgets, ledger and log", async () => {
    upstream.answer = (response) => void response.end(completion(10, 100));
    const { gateway, chat, lines } = await testGateway({
      ...config(1),
      budgets: [{ scope: "user", usd: 1, per: "month" }],
    });
    await chat({ model: "openai/m", user: `nul\0 ${"u".repeat(100_000)}` });
    const name = `nul\ufffd ${"u".repeat(251)}`;
    expect(await gateway.usage({ by: "user", where: { user: name } })).toMatchObject([{ requests: 1 }]);
    const line = lines.find((one) => one.includes('"gateway.call"')) ?? "";
    expect(JSON.parse(line)["user"]).toBe(name);
    expect(line.length).toBeLessThan(2_000);
  });

  test("a token's own budget and a controller's bind as well, and warnings are logged before the end", async () => {
    upstream.answer = (response) => void response.end(completion(10, 100));
    const { chat, lines } = await testGateway(config(1));
    const poor = principal({ id: "gt_poor" }, { budget_usd: 0.002 });
    for (let i = 0; i < 2; i++) await chat({ model: "openai/m", max_tokens: 100 }, { principal: poor });
    await expect(chat({ model: "openai/m", max_tokens: 100 }, { principal: poor })).rejects.toMatchObject({
      message: expect.stringContaining("--budget-usd"),
    });
    expect(lines.filter((line) => line.includes("gateway.budget_alert")).length).toBe(1);
    const controller = { name: "triage", models: null, usdPerDay: 0.001 };
    await chat({ model: "openai/m", max_tokens: 100 }, { controller });
    await expect(chat({ model: "openai/m", max_tokens: 100 }, { controller })).rejects.toMatchObject({
      message: expect.stringContaining("usd_per_day"),
    });
  });
});

test("of a batch that storage refuses for what one row or account holds, all else is stored and no spending lost", async () => {
  const storage = await temporaryStorage();
  const stores = gatewayStores(storage, systemClock);
  const budgets = createBudgets(stores.budgets, silentLogger);
  let ill = "user:13:total";
  const append: typeof stores.ledger.append = async (number, rows, accounts) => {
    if (accounts.some(({ key }) => key === ill)) throw Object.assign(new Error("out of range"), { code: "22003" });
    await stores.ledger.append(number, rows, accounts);
  };
  const lines: string[] = [];
  const logger = {
    ...silentLogger,
    error: (event: string, more?: object) => lines.push(JSON.stringify([event, more])),
  };
  const ledger = createLedger({ ...stores.ledger, append }, budgets, logger);
  const account = (i: number) => ({ key: `user:${i}:total`, limit: 1_000, label: "", remedy: "", alerts: [] });
  const reservations = await Promise.all(Array.from({ length: 20 }, (_, i) => budgets.reserve([account(i)], 10)));
  for (const [i, reservation] of reservations.entries()) {
    // Storage keeps no row that does not say what was done.
    ledger.record(ledgerRow({ request_id: `req_${i}`, cost_pico: 7, ...(i === 7 && { operation: null as never }) }));
    reservation.settle(7);
  }
  await ledger.flush();
  const [sum] = await ledger.usage({ by: "model" });
  expect(sum?.requests).toBe(19);
  expect(lines.filter((line) => line.includes('"lost":1')).length).toBeGreaterThan(0);
  const spent = async () => {
    const stored = await stores.budgets.load(reservations.map((_, i) => account(i).key));
    return stored.reduce((total, { spent: amount }) => total + amount, 0);
  };
  expect(await spent()).toBe(19 * 7);
  ill = "";
  await ledger.close();
  expect(await spent()).toBe(20 * 7);
  expect(await gatewayStores(storage, systemClock).budgets.recover()).toEqual([]);
});

test("what was recorded is stored in time, however much comes meanwhile", async () => {
  const storage = await temporaryStorage();
  const stores = gatewayStores(storage, systemClock);
  let batches = 0;
  const append: typeof stores.ledger.append = async (...batch) => {
    // More has come each time that a batch is written, as under load.
    if (++batches < 20) ledger.record(ledgerRow({ request_id: `req_${batches}` }));
    await stores.ledger.append(...batch);
  };
  const ledger = createLedger({ ...stores.ledger, append }, createBudgets(stores.budgets, silentLogger), silentLogger);
  ledger.record(ledgerRow({ request_id: "req_0" }));
  await ledger.stored();
  expect(batches).toBe(1);
  await ledger.close();
  expect(
    await createLedger(stores.ledger, createBudgets(stores.budgets, silentLogger), silentLogger).usage({ by: "model" }),
  ).toMatchObject([{ requests: batches }]);
});

test("ledger, budgets and reports agree after any mixture of operations, over a storage that fails or whose word is lost", async () => {
  const storage = await temporaryStorage();
  const stores = gatewayStores(storage, systemClock);
  const budgets = createBudgets(stores.budgets, silentLogger);
  let ends: "well" | "unstored" | "unheard" = "well";
  const append: typeof stores.ledger.append = async (...batch) => {
    if (ends === "unstored") throw new Error("it was not stored");
    await stores.ledger.append(...batch);
    if (ends === "unheard") throw new Error("it was stored, and the word of it lost");
  };
  const ledger = createLedger({ ...stores.ledger, append }, budgets, silentLogger);
  let seed = 42;
  const random = (below: number) => {
    seed = (Math.imul(seed, 1_103_515_245) + 12_345) & 0x7fffffff;
    return seed % below;
  };
  const operations = process.env["MAGIC_TEST_DEEP"] ? 100_000 : 5_000;
  const expected = new Map<string, { requests: number; prompt: number; completion: number; cost: bigint }>();
  const accounts = Array.from({ length: 5 }, (_, i) => ({
    key: `team:t${i}:month:2026-01`,
    limit: Number.MAX_SAFE_INTEGER,
    label: "",
    remedy: "",
    alerts: [],
  }));
  const spent = new Map<string, bigint>();
  for (let i = 0; i < operations; i++) {
    const team = random(5);
    const account = accounts[team];
    if (!account) throw new Error("no account");
    const cost = random(1_000_000) * 1_000;
    const reservation = await budgets.reserve([account], cost * 2);
    const usage = {
      input: random(1000),
      cached: random(100),
      cache_write: random(10),
      output: random(500),
      reasoning: random(50),
    };
    const unpriced = random(50) === 0;
    ledger.record({
      at: new Date(Date.UTC(2026, 0, 1 + random(30))).toISOString(),
      request_id: `req_${i}`,
      operation: "chat",
      environment: "live",
      token: "gt_x",
      user: null,
      team: `t${team}`,
      project: null,
      controller: null,
      provider: "p",
      model: `m${random(3)}`,
      outcome: "completed",
      status: 200,
      stream: false,
      attempts: 1,
      requests: 1,
      ...usage,
      estimated: false,
      cost_pico: unpriced ? null : cost,
      duration_ms: 1,
      first_token_ms: null,
    });
    reservation.settle(unpriced ? 0 : cost);
    spent.set(account.key, (spent.get(account.key) ?? 0n) + BigInt(unpriced ? 0 : cost));
    const sum = expected.get(`t${team}`) ?? { requests: 0, prompt: 0, completion: 0, cost: 0n };
    sum.requests++;
    sum.prompt += usage.input + usage.cached + usage.cache_write;
    sum.completion += usage.output + usage.reasoning;
    sum.cost += BigInt(unpriced ? 0 : cost);
    expected.set(`t${team}`, sum);
    if (random(500) === 0)
      for (ends of ["unstored", "unheard", "unheard", "well"] as const) await ledger.flush().catch(() => undefined);
  }
  for (const by of ["team", "model", "day"] as const) {
    const sums = await ledger.usage({ by });
    expect(sums.reduce((total, { requests }) => total + Number(requests), 0)).toBe(operations);
    const cost = sums.reduce((total, { cost_pico }) => total + BigInt(cost_pico), 0n);
    expect(cost).toBe([...expected.values()].reduce((total, sum) => total + sum.cost, 0n));
  }
  for (const sum of await ledger.usage({ by: "team" })) {
    const own = expected.get(sum.key ?? "");
    expect([sum.requests, sum.prompt_tokens, sum.completion_tokens, BigInt(sum.cost_pico)]).toEqual([
      own?.requests,
      own?.prompt,
      own?.completion,
      own?.cost,
    ]);
  }
  await ledger.close();
  const stored = await stores.budgets.load(accounts.map(({ key }) => key));
  expect(new Map(stored.map(({ key, spent: amount }) => [key, BigInt(amount)]))).toEqual(spent);
  expect(await gatewayStores(storage, systemClock).budgets.recover()).toEqual([]);
});

test.each([
  ["us.anthropic.claude-opus-4-6-v1", 128_000],
  ["anthropic.claude-sonnet-5", 128_000],
  ["anthropic.claude-opus-4-1-20250805-v1:0", 32_000],
  ["claude-3-5-haiku-20241022", 8_192],
  ["us.amazon.nova-2-lite-v1:0", 65_536],
  ["amazon.nova-pro-v1:0", 10_000],
  ["us.deepseek.r1-v1:0", 32_768],
  ["gemini-flash-latest", 65_536],
  ["openai/gpt-oss-120b", 65_536],
  ["anthropic/claude-opus-4.6", 128_000],
  ["arn:aws:bedrock:us-east-1:123456789012:inference-profile/us.anthropic.claude-3-7-sonnet-20250219-v1:0", 64_000],
  ["ft:gpt-4o-mini-2024-07-18:acme::abc123", 16_384],
  ["gpt-6-sol", 128_000],
  ["openai.gpt-6-luna", 128_000],
  ["deepseek-v4-pro", 384_000],
  ["mine", undefined],
])("%s answers with at most %s tokens: so much is reserved where nobody says less", (model, tokens) => {
  expect(maxOutputTokens(model)).toBe(tokens);
});
