// An explanation is what the call would do: for random engagements, callers and requests the two are held against each other. 200
// engagements here, 5,000 in the deep run.
import fc from "fast-check";
import { expect, test } from "vitest";
import type { MagicError } from "#contract/errors.ts";
import type { GatewayConfig } from "#contract/project-gateway.ts";
import type { CallingController } from "#daemon/gateway/call.ts";
import { temporaryStorage } from "#test/temporary.ts";
import { type Ecosystem, good } from "./good-answers.ts";
import { principal, testGateway } from "./pipeline.ts";
import { upstreamOfFile } from "./upstream.ts";

const RUNS = process.env["MAGIC_TEST_DEEP"] ? 5_000 : 200;
const upstream = upstreamOfFile();

const models = [
  "openai/gpt-4o-mini",
  "openai/gpt-5",
  "anthropic/claude-haiku-4-5",
  "anthropic/claude-opus-4-8",
  "google/gemini-2.5-flash",
  "bedrock/amazon.nova-lite-v1:0",
  "azure/mine",
  "local/llama3",
  "gone/x",
  "sandbox/echo",
  "sandbox/none",
  "gpt-4o-mini",
];
const patterns = [
  "*",
  "openai/*",
  "anthropic/*",
  "*/gpt-4o-mini",
  "google/gemini-2.5-flash",
  "local/*",
  "sandbox/*",
  "OpenAI/GPT-5",
];
const names = [...models, "p", "q", "policy:p", "fast", "auto", "nothing"];

const some = <T>(from: readonly T[], max = 4) => fc.uniqueArray(fc.constantFrom(...from), { maxLength: max });
const rarely = <T, N>(of: fc.Arbitrary<T>, nil: N) =>
  fc.oneof({ weight: 6, arbitrary: fc.constant(nil) }, { weight: 1, arbitrary: of });
const money = fc.constantFrom(0, 1e-9, 0.00001, 0.0001, 0.01, 1, 100, 100, 100, 100, 100);
const usd = fc.constantFrom(0, 0.15, 1, 30);
const price = fc.record({ input: usd, output: usd, cache_read: usd }, { requiredKeys: [] });
const policy = fc.record(
  {
    candidates: fc.uniqueArray(fc.constantFrom(...models), { minLength: 1, maxLength: 4 }),
    strategy: fc.constantFrom("priority", "weighted", "cheapest", "fastest", "sticky"),
    retries: fc.constantFrom(0, 1),
  },
  { requiredKeys: ["candidates"] },
);
const config = fc.record({
  without: some(["openai", "anthropic", "google", "bedrock", "azure", "local"], 1),
  keyless: some(["openai", "anthropic", "google", "bedrock", "azure"], 1),
  allow: rarely(some(patterns), undefined),
  deny: rarely(some(patterns, 1), undefined),
  alias: fc.constantFrom("openai/gpt-4o-mini", "local/llama3", "p"),
  byDefault: fc.option(fc.constantFrom(...names), { nil: undefined }),
  policies: fc.record({ p: policy, q: policy }),
  prices: fc.dictionary(fc.constantFrom(...models, "mine", "openai/*", "openai/gpt-5@priority"), price, { maxKeys: 3 }),
  budgets: fc.array(
    fc.record(
      {
        scope: fc.constantFrom("engagement", "token", "user", "team", "project", "controller"),
        name: fc.constantFrom("u", "t", "triage"),
        usd: money,
        per: fc.constantFrom("day", "month"),
      },
      { requiredKeys: ["scope", "usd"] },
    ),
    { maxLength: 2 },
  ),
  allowUnpriced: fc.boolean(),
  drop: fc.boolean(),
});
const caller = fc.record({
  environment: fc.constantFrom("live", "live", "live", "sandbox"),
  models: rarely(some(names), null),
  budget: fc.option(money, { nil: null }),
  user: fc.constantFrom(null, "u"),
  team: fc.constantFrom(null, "t"),
  controller: rarely(fc.record({ models: rarely(some(names), null), usdPerDay: rarely(money, null) }), null),
});
const part = fc.constantFrom<object>(
  { type: "text", text: "hello ".repeat(40) },
  { type: "text", text: "x".repeat(30_000) },
  { type: "image_url", image_url: { url: "data:image/png;base64,iVBORw0KGgo=" } },
  { type: "image_url", image_url: { url: "data:image/tiff;base64,SUkqAA==" } },
  { type: "file", file: { filename: "x", file_data: "data:application/zip;base64,UEsDBA==" } },
  { type: "input_audio", input_audio: { data: "AAAA", format: "wav" } },
  { type: "nonsense" },
);
const tool = { type: "function", function: { name: "look", parameters: { type: "object", properties: {} } } };
const text = fc.constantFrom<unknown>(
  "hello ".repeat(30),
  "h".repeat(50),
  "hello there ".repeat(9),
  "x".repeat(30_000),
  " ",
  7,
  "",
);
const message = fc.record({
  role: fc.constantFrom("user", "user", "user", "assistant"),
  content: fc.oneof(
    { weight: 3, arbitrary: text },
    { weight: 1, arbitrary: fc.array(part, { minLength: 1, maxLength: 2 }) },
  ),
});
const schema = { name: "a", schema: { type: "object", properties: {}, additionalProperties: false } };
const parameters = {
  max_tokens: fc.constantFrom(1, 100, 100, 10_000_000, 0),
  max_completion_tokens: fc.constantFrom(5, 1000),
  n: fc.constantFrom(1, 2, 9),
  seed: fc.constantFrom(1, 2 ** 40),
  temperature: fc.constantFrom(0.5, 1.5, 3),
  top_p: fc.constantFrom(0.5),
  tools: fc.constant([tool]),
  tool_choice: fc.constantFrom<unknown>("auto", "required", { type: "function", function: { name: "no" } }),
  reasoning_effort: fc.constantFrom("none", "low", "high"),
  service_tier: fc.constantFrom("priority", "scale"),
  stop: fc.constantFrom("x", " "),
  user: fc.constantFrom("u", "v"),
  stream: fc.boolean(),
  drop_unsupported: fc.boolean(),
  response_format: fc.constantFrom<unknown>({ type: "json_object" }, { type: "json_schema", json_schema: schema }),
  logprobs: fc.boolean(),
};
const body = fc
  .record({
    model: fc.constantFrom(...names, "p", "q", "p", "q"),
    messages: fc.array(message, { minLength: 1, maxLength: 2 }),
    more: fc.uniqueArray(fc.constantFrom(...Object.keys(parameters)), { maxLength: 4 }),
    all: fc.record(parameters),
  })
  .map(({ model, messages, more, all }) => ({
    model,
    messages,
    ...(Object.fromEntries(Object.entries(all).filter(([name]) => more.includes(name))) as Partial<typeof all>),
  }));

type Made<T> = T extends fc.Arbitrary<infer U> ? U : never;

function configured(made: Made<typeof config>): GatewayConfig {
  const base = { base_url: upstream.url };
  const key = (name: string) => (made.keyless.includes(name as "openai") ? {} : { api_key: "k" });
  const providers: Record<string, object> = {
    openai: { base_url: `${upstream.url}/v1`, ...key("openai") },
    anthropic: { ...base, ...key("anthropic") },
    google: { ...base, ...key("google") },
    bedrock: { ...base, region: "us-east-1", ...key("bedrock") },
    azure: { ...base, ...key("azure") },
    local: { type: "openai", base_url: `${upstream.url}/v1`, models: ["llama3"] },
  };
  for (const name of made.without) delete providers[name];
  const { allow, deny, byDefault } = made;
  return {
    providers,
    models: { ...(allow && { allow }), ...(deny && { deny }), aliases: { fast: made.alias } },
    ...(byDefault && { default: byDefault }),
    policies: made.policies,
    prices: made.prices,
    budgets: made.budgets,
    allow_unpriced: made.allowUnpriced,
    drop_unsupported: made.drop,
  } as GatewayConfig;
}

function wireAt(path: string): Ecosystem {
  if (path.includes("converse")) return "bedrock";
  if (path.includes("enerateContent")) return "google";
  return path.includes("/messages") ? "anthropic" : "openai";
}

// Who is asked for several answers by their number gives as many.
function ofNumber(json: string, count = 1): string {
  if (count === 1) return json;
  const answer = JSON.parse(json);
  const name = "candidates" in answer ? "candidates" : "choices";
  return JSON.stringify({
    ...answer,
    [name]: Array.from({ length: count }, (_, index) => ({ ...answer[name][0], index })),
  });
}

test("a call goes where its explanation says, costs no more, and is refused for the reasons that it names", async () => {
  upstream.answer = (response, request, sent) => {
    const path = request.url ?? "";
    const { contentType, events, json } = good[wireAt(path)];
    const { stream, generationConfig, n } = JSON.parse(sent);
    const streamed = /converse-stream|streamGenerate/.test(path) || stream === true;
    response.writeHead(200, { "content-type": streamed ? contentType : "application/json" });
    response.end(streamed ? Buffer.concat(events) : ofNumber(json, generationConfig?.candidateCount ?? n));
  };
  const storage = await temporaryStorage();
  let id = 0;
  const seen = { served: 0, refused: 0, invalid: 0, thrown: 0 };
  await fc.assert(
    fc.asyncProperty(config, caller, fc.array(body, { minLength: 1, maxLength: 4 }), async (made, who, bodies) => {
      const { gateway, chat } = await testGateway(configured(made), { storage, random: () => 0.3 });
      const token = principal(
        { id: `gt_${process.pid}_${++id}`, environment: who.environment },
        { user: who.user && `${who.user}`, team: who.team, models: who.models, budget_usd: who.budget },
      );
      const controller = who.controller && ({ name: `triage${id}`, ...who.controller } as unknown as CallingController);
      for (const asked of bodies) {
        await gateway.flush();
        const call = { body: asked as Record<string, unknown>, principal: token, controller };
        const explained = await gateway.explain(call).catch((error: MagicError) => error);
        const said = await chat(asked, { principal: token, controller }).catch((error: MagicError) => error);
        if (explained instanceof Error) {
          seen.thrown++;
          expect(said).toMatchObject({ message: explained.message, code: explained.code });
          continue;
        }
        const { decision, candidates } = explained;
        if (!decision) {
          if (said instanceof Error) {
            seen.refused++;
            const reasons = candidates.map(({ reason }) => reason ?? "");
            expect(reasons.some((reason) => said.message.includes(reason.replace(/\.$/, "")))).toBe(true);
            if (candidates.every(({ rule }) => rule === "budget")) expect(said.code).toBe("insufficient_quota");
            continue;
          }
          seen.invalid++;
          const first = candidates.find(({ rule }) => rule === "invalid");
          expect(said).toMatchObject({ status: 400, json: { error: { message: first?.reason } } });
          continue;
        }
        seen.served++;
        if (said instanceof Error) throw said;
        const { "x-magic-provider": provider, "x-magic-model": model, "x-magic-cost-usd": cost } = said.headers;
        expect([said.status, `${provider}/${model}`]).toEqual([200, decision.model]);
        // The upstream says the same to everyone: 9 tokens of a prompt, 4 of an answer.
        const sound = explained.prompt_tokens >= 9 && (asked.max_tokens ?? 4) >= 4;
        if (cost !== undefined && decision.estimated_cost_usd !== null && sound)
          expect(Number(cost)).toBeLessThanOrEqual(decision.estimated_cost_usd);
      }
      await gateway.close();
    }),
    { numRuns: RUNS, seed: 28 },
  );
  // None of the four would be a check of nothing.
  expect(Math.min(...Object.values(seen))).toBeGreaterThan(5);
});
