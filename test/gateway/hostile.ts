// Bodies that no client would send: a sound request with one or more places replaced by something strange, and texts that are no request
// at all. Seeded, so that a failing one can be made again.
import { seededRandom } from "#daemon/gateway/providers/sandbox/random.ts";

const base = {
  model: "sandbox/echo",
  messages: [
    { role: "system", content: "s" },
    {
      role: "user",
      content: [
        { type: "text", text: "t" },
        { type: "image_url", image_url: { url: "data:image/png;base64,iVBORw0KGgo=" } },
      ],
    },
    {
      role: "assistant",
      content: null,
      tool_calls: [{ id: "c1", type: "function", function: { name: "f", arguments: "{}" } }],
      reasoning_details: [
        { type: "reasoning.text", text: "t", signature: "s", format: "anthropic-claude-v1", index: 0 },
      ],
      extra_content: { google: { thought_signature: "c2ln" } },
    },
    { role: "tool", tool_call_id: "c1", content: "r" },
    { role: "user", content: "go" },
  ],
  tools: [
    {
      type: "function",
      function: { name: "f", parameters: { type: "object", properties: { a: { type: "string", pattern: "^a+$" } } } },
    },
  ],
  tool_choice: "auto",
  response_format: {
    type: "json_schema",
    json_schema: { name: "n", schema: { type: "object", properties: { b: { type: "integer" } }, required: ["b"] } },
  },
  temperature: 1,
  top_p: 0.5,
  n: 1,
  max_tokens: 10,
  stop: ["x"],
  seed: 1,
  logprobs: true,
  top_logprobs: 2,
  logit_bias: { "1": 1 },
  stream: false,
  user: "u",
  metadata: { a: "b" },
  reasoning_effort: "low",
  modalities: ["text"],
  stream_options: null,
  parallel_tool_calls: true,
  function_call: null,
  functions: null,
  presence_penalty: 0,
  service_tier: "auto",
  verbosity: null,
};

const deep = (levels: number) => {
  let text = "1";
  for (let i = 0; i < levels; i++) text = `[${text}]`;
  return JSON.parse(text) as unknown;
};

const strange: readonly (() => unknown)[] = [
  () => null,
  () => true,
  () => -1,
  () => 1e308,
  () => 0.5,
  () => "",
  () => "\u0000",
  () => "\ud800",
  () => "x".repeat(5000),
  () => [],
  () => {
    return {};
  },
  () => [null, [], {}],
  () => ({ type: "object", $ref: "#" }),
  () => ({ allOf: [{ $ref: "#" }, { $ref: "#" }, { $ref: "#" }] }),
  () => ({ type: "string", pattern: "(a+)+$((((((((((" }),
  () => ({ type: "string", pattern: "^(a|a)*((b{9999}){9999}){9999}$" }),
  () => ({ type: "array", minItems: 1e9, items: { type: "string", minLength: 1e9 } }),
  () => JSON.parse('{"__proto__": {"x": 1}, "constructor": {"prototype": {}}}') as unknown,
  () => deep(100),
  () => "function",
  () => ({ role: "tool", tool_call_id: "none", content: "x" }),
  () => ({ type: "json_schema" }),
  () => ["__proto__", "toString"],
];

const texts: readonly string[] = [
  "",
  " ",
  "null",
  "[]",
  '"x"',
  "1",
  "{",
  '{"model":',
  "{'a':1}",
  '{"messages":[{"role":"user","content":"\u0000"}]}',
  `${"[".repeat(100_000)}`,
  `{"a":${"[".repeat(5000)}${"]".repeat(5000)}}`,
  `{"messages":[${"{},".repeat(1000)}{}]}`,
  '{"messages":[{"role":"user","content":"x"}],"messages":1}',
  "\ufeff{}",
  "undefined",
  "<xml/>",
];

/** Body number `index` of a seed, for one of the models. */
export function hostileBody(seed: number, index: number, models: readonly string[]): Buffer {
  const random = seededRandom(`${seed}/${index}`);
  if (random.below(20) === 0) return Buffer.from(random.pick(texts));
  const request = structuredClone(base) as unknown as Record<string, unknown>;
  request["model"] = random.pick(models);
  // Left out, so that single strange values are not hidden behind what a translated provider lacks anyway.
  if (random.below(3) > 0) for (const key of ["logprobs", "top_logprobs", "logit_bias", "seed"]) delete request[key];
  const changes = 1 + random.below(3);
  for (let n = 0; n < changes; n++) mutate(request, random);
  const bytes = Buffer.from(JSON.stringify(request));
  // Bad UTF-8, or a byte that is cut off.
  if (random.below(15) === 0) bytes[random.below(bytes.length)] = 0xff;
  return random.below(30) === 0 ? bytes.subarray(0, random.below(bytes.length)) : bytes;
}

function mutate(root: Record<string, unknown>, random: ReturnType<typeof seededRandom>): void {
  let at: Record<string, unknown> = root;
  for (;;) {
    const keys = Object.keys(at);
    const key = keys.length === 0 || random.below(12) === 0 ? "unknown_field" : random.pick(keys);
    const child = at[key];
    if (typeof child === "object" && child !== null && random.below(3) > 0) at = child as Record<string, unknown>;
    else {
      if (random.below(6) === 0) delete at[key];
      else at[key] = random.pick(strange)();
      return;
    }
  }
}
