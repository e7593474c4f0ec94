// Sends one request through a provider to a server that a test plays, and shows what arrived there.
import { afterAll, beforeAll, beforeEach } from "vitest";
import type { ChatCall, ChatOutcome } from "#daemon/gateway/providers/adapter.ts";
import { createProviders } from "#daemon/gateway/providers/registry.ts";
import { type Ecosystem, good } from "./good-answers.ts";
import { agent, callOf, optionsOf, startUpstream, targetOf, type Upstream } from "./upstream.ts";

export let upstream: Upstream;
export const providers = createProviders(agent);
export const PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg==";

/** To be called once by a test file. */
export function playUpstream(): void {
  beforeAll(async () => {
    upstream = await startUpstream();
  });
  afterAll(() => upstream.close());
  beforeEach(() => {
    upstream.requests.length = 0;
  });
}

export interface Sent {
  readonly body: Record<string, unknown>;
  readonly path: string;
  readonly headers: Record<string, string>;
  readonly outcome: ChatOutcome;
}

export async function send(
  kind: Ecosystem,
  request: object,
  model: string,
  more: Partial<ChatCall> = {},
): Promise<Sent> {
  upstream.answer = (response) =>
    void response.writeHead(200, { "content-type": "application/json" }).end(good[kind].json);
  const outcome = await providers[kind].chat(callOf(request, more), targetOf(kind, upstream, model), optionsOf());
  const seen = upstream.requests.at(-1);
  const body = seen ? JSON.parse(seen.body) : {};
  return { body, path: seen?.path ?? "", headers: (seen?.headers ?? {}) as Record<string, string>, outcome };
}

export const tool = (name: string) => ({
  type: "function",
  function: {
    name,
    description: `does ${name}`,
    parameters: { type: "object", properties: { a: { type: "string" } } },
  },
});
export const user = (content: unknown) => ({ role: "user", content });
export const called = (...ids: string[]) => ({
  role: "assistant",
  content: "let me see",
  tool_calls: ids.map((id) => ({ id, type: "function", function: { name: `f_${id}`, arguments: `{"a":"${id}"}` } })),
});
export const result = (id: string, content: string) => ({ role: "tool", tool_call_id: id, content });
export const conversation = [
  { role: "system", content: "one" },
  { role: "developer", content: [{ type: "text", text: "two" }] },
  user("go"),
  called("t1", "t2"),
  result("t1", "sunny"),
  result("t2", '{"degrees": 20}'),
  user("and?"),
];
export const schema = { type: "object", properties: { n: { type: "integer" } }, required: ["n"] };
export const jsonSchema = { type: "json_schema", json_schema: { name: "answer", schema } };
