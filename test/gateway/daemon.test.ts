// The gateway in the whole daemon: over HTTP, with the runtime file's tokens, as its users see it.
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type App, createApp } from "#daemon/app.ts";
import { createLogStream } from "#daemon/telemetry/log-stream.ts";
import { folderOfFile } from "#test/temporary.ts";
import { completion, stream } from "./pipeline.ts";
import { type Upstream, upstreamOfFile } from "./upstream.ts";

const upstream = upstreamOfFile();
let app: App;
const folder = folderOfFile();
const lines: string[] = [];
const CANARY_KEY = "sk-canary-key-7f3a9b2c4d5e6f70";
const CANARY_PROMPT = "canary-prompt-zebra-quartz-1234";

beforeAll(async () => {
  const { port } = new URL(upstream.url);
  writeFileSync(
    join(folder, "magic.yaml"),
    JSON.stringify({
      version: 1,
      gateway: {
        providers: { openai: { api_key: CANARY_KEY, base_url: `${upstream.url}/v1` } },
        policies: { p: { candidates: ["openai/gpt-4o-mini"], timeout_ms: 300 } },
      },
      egress: { allow_private: [`127.0.0.1:${port}`] },
    }),
  );
  const env = { ...process.env, MAGIC_HOME: join(folder, "home") };
  const logStream = createLogStream();
  let seen = 0;
  logStream.subscribe(() => {
    const read = logStream.read(seen, 1_000);
    seen = read.next;
    lines.push(...read.lines.map(({ text }) => text));
  });
  app = await createApp({ root: folder, env, logStream });
  await app.listen();
});
afterAll(() => app.close());

const post = (path: string, body: unknown, token = app.credentials.gateway_token, headers: object = {}) =>
  fetch(`${app.url}${path}`, {
    method: "POST",
    headers: { authorization: `Bearer ${token}`, "content-type": "application/json", ...headers },
    body: JSON.stringify(body),
  });
const get = (path: string, headers: Record<string, string> = {}) =>
  fetch(`${app.url}${path}`, { headers: { authorization: `Bearer ${app.credentials.local_token}`, ...headers } });
const chat = (more: object = {}) => ({
  model: "openai/gpt-4o-mini",
  messages: [{ role: "user", content: CANARY_PROMPT }],
  user: "ada",
  ...more,
});

/** The same moment as the clocks of another zone show it. */
function zoned(moment: Date, hours: number): string {
  const shown = new Date(moment.getTime() + hours * 3_600_000).toISOString().slice(0, -1);
  return `${shown}${hours < 0 ? "-" : "+"}${String(Math.abs(hours)).padStart(2, "0")}:00`;
}

test("a call is answered, priced, metered and traced", async () => {
  upstream.answer = (response) => void response.end(completion(1000, 500));
  const answer = await post("/v1/chat/completions", chat());
  expect(answer.status).toBe(200);
  const body = (await answer.json()) as { usage: { cost_usd: number } };
  // 1000 x $0.15/M + 500 x $0.60/M
  expect(body.usage.cost_usd).toBe(0.00045);
  expect(answer.headers.get("x-magic-cost-usd")).toBe("0.00045");
  expect(answer.headers.get("x-magic-attempts")).toBe("1");
  upstream.answer = (response) => {
    response.writeHead(200, { "content-type": "text/event-stream" });
    response.end(stream(1000, 500));
  };
  const streamed = await (
    await post("/v1/chat/completions", chat({ stream: true, stream_options: { include_usage: true } }))
  ).text();
  expect(streamed).toContain('"cost_usd":0.00045');
  const usage = (await (await get("/v1/usage?by=model")).json()) as { data: unknown[] };
  expect(usage.data).toMatchObject([
    { key: "openai/gpt-4o-mini", requests: 2, prompt_tokens: 2000, completion_tokens: 1000, cost_usd: 0.0009 },
  ]);
  const byUser = (await (await get("/v1/usage?by=user")).json()) as { data: unknown[] };
  expect(byUser.data).toMatchObject([{ key: "ada", requests: 2 }]);
  const at = new Date();
  const between = async (since: Date | string, until: Date | string) => {
    const [from, to] = [since, until].map((moment) =>
      typeof moment === "string" ? moment : zoned(moment, -5).replace(".000", ""),
    );
    const answer = await get(`/v1/usage?${new URLSearchParams({ since: from ?? "", until: to ?? "" })}`);
    return ((await answer.json()) as { data?: unknown[] }).data?.length ?? answer.status;
  };
  // In any zone, and to the second: the first millisecond of a second is after its beginning.
  const [before, after] = [-60, 60].map((seconds) => new Date(Math.floor(at.getTime() / 1000 + seconds) * 1000));
  expect(await between(before ?? at, after ?? at)).toBe(1);
  expect(await between(after ?? at, zoned(new Date(at.getTime() + 3_600_000), 0))).toBe(0);
  // West of Greenwich the last second of 9999 is one of a year that no text of a time can name.
  expect(await between(before ?? at, "9999-12-31T23:59:59-05:00")).toBe(1);
  for (const none of ["2026-13-01", "2026-02-30", "2026-11-22T24:00:00Z", "2026-11-22T10:00:00"])
    expect([none, await between(none, at)]).toEqual([none, 422]);
  const csv = await (await get("/v1/usage?by=day&format=csv")).text();
  expect(csv).toMatch(/^day,requests,.*,unpriced_requests\r\n\d{4}-\d\d-\d\d,2,2000,1000,0\.0009,/);
  expect(await (await get("/v1/usage?by=day", { accept: "text/csv" })).text()).toBe(csv);
  const trace = (await (await get(`/v1/traces/${answer.headers.get("x-request-id")}`)).json()) as {
    spans: { name: string; attributes: Record<string, unknown> }[];
  };
  expect(trace.spans.map(({ name }) => name)).toEqual(["chat openai/gpt-4o-mini", "attempt openai/gpt-4o-mini"]);
  expect(trace.spans[0]?.attributes).toMatchObject({
    "gen_ai.usage.input_tokens": 1000,
    "gen_ai.provider.name": "openai",
  });
});

test("usage comes in pages, nobody's of the other environment, and a cursor that is none is told so", async () => {
  expect((await post("/v1/chat/completions", chat({ model: "sandbox/echo" }))).status).toBe(200);
  const headers = { authorization: `Bearer ${app.credentials.admin_key}` };
  const ask = (path: string) => fetch(`${app.url}${path}`, { headers });
  const key = { authorization: `Bearer ${app.credentials.api_key}` };
  const foreign = await fetch(`${app.url}/v1/usage?environment=live`, { headers: key });
  expect(await foreign.json()).toMatchObject({ data: [] });
  type Page = { data: { key: string }[]; has_more: boolean; next_cursor: string | null };
  const first = await ask("/v1/usage?by=model&limit=1");
  const page = (await first.json()) as Page;
  expect(page).toMatchObject({ data: [{ key: "openai/gpt-4o-mini" }], has_more: true });
  const next = /^<(.*)>; rel="next"$/.exec(first.headers.get("link") ?? "")?.[1] ?? "";
  expect(next).toContain(page.next_cursor ?? "-");
  expect(await (await ask(next)).json()).toMatchObject({
    data: [{ key: "sandbox/echo" }],
    has_more: false,
    next_cursor: null,
  });
  for (const cursor of ["x", "W10", Buffer.from('["a","-1"]').toString("base64url")])
    expect((await ask(`/v1/usage?starting_after=${cursor}`)).status).toBe(422);
});

test("a call counts as use: a daemon that serves nothing else does not end as idle", async () => {
  await new Promise((resolve) => setTimeout(resolve, 50));
  const at = performance.now();
  expect((await post("/v1/chat/completions", chat({ model: "sandbox/echo" }))).status).toBe(200);
  expect(app.activity.idleFor()).toBeLessThan(performance.now() - at);
});

test("the sandbox works offline without configuration, and models say what they cost", async () => {
  expect((await post("/v1/chat/completions", chat({ model: "sandbox/echo" }))).status).toBe(200);
  const models = await fetch(`${app.url}/v1/models`, {
    headers: { authorization: `Bearer ${app.credentials.gateway_token}` },
  });
  const { data } = (await models.json()) as { data: { id: string; price: unknown }[] };
  expect(data.map(({ id }) => id)).toEqual(expect.arrayContaining(["auto", "p", "openai/gpt-4o-mini", "sandbox/echo"]));
  expect(data.find(({ id }) => id === "openai/gpt-4o-mini")?.price).toMatchObject({ input: 0.15, output: 0.6 });
});

test("who asks for what OpenAI has and this gateway lacks, or under a wrong base URL, is told in OpenAI's form what there is", async () => {
  const paths = [
    "/v1/responses",
    "/v1/threads",
    "/v1/messages",
    "/chat/completions",
    "/v1/chat/completions/",
    "//v1/chat/completions",
    "/v1/v1/chat/completions",
    "/models",
  ];
  for (const path of paths) {
    const answer = await post(path, chat());
    expect([path, answer.status]).toEqual([path, 404]);
    const { error } = (await answer.json()) as { error: object };
    expect(error).toMatchObject({ code: "not_found", message: expect.stringContaining("POST /v1/chat/completions") });
  }
  expect(await (await post("/v1/nothing", {})).json()).toMatchObject({ code: "not_found", status: 404 });
  // What cannot be routed at all passes no hook.
  const torn = await fetch(`${app.url}/v1/models/%zz`);
  expect([torn.status, await torn.json()]).toMatchObject([400, { error: { code: "invalid_request" } }]);
});

test("a route is explained without a call", async () => {
  const answer = await post("/v1/route/explain", { model: "p", input: { messages: [], max_tokens: 1000 } });
  expect(await answer.json()).toMatchObject({
    policy: "p",
    decision: { model: "openai/gpt-4o-mini" },
    candidates: [{ eligible: true, rank: 1, price: { input: 0.15, output: 0.6 } }],
  });
  expect(upstream.requests.length).toBe(0);
});

test("neither key nor prompt stands in any log, trace, metric or database file, whatever fails", async () => {
  const answers: Upstream["answer"][] = [
    (response, _request, body) => void response.writeHead(400).end(`{"error":{"message":${JSON.stringify(body)}}}`),
    (response, request) => void response.writeHead(401).end(`bad key ${request.headers.authorization}`),
    (response, _request, body) => void response.writeHead(500).end(body),
    (response, _request, body) => void response.end(`${body}{`),
    (response) => void response.socket?.destroy(),
    () => {},
    // In the middle of a stream: an error that repeats what was asked, and an end too early.
    (response, request, body) => {
      response.writeHead(200, { "content-type": "text/event-stream" });
      const said = `data: {"error":{"message":${JSON.stringify(`${body} ${request.headers.authorization}`)}}}\n\n`;
      response.end(stream(1, 1).split("data: [DONE]")[0] + said);
    },
    (response) => {
      response.writeHead(200, { "content-type": "text/event-stream" });
      response.end(stream(1, 1).split("data: [DONE]")[0]);
    },
  ];
  const requestIds: string[] = [];
  const traces: string[] = [];
  for (const answer of answers)
    for (const streamed of [false, true]) {
      upstream.answer = answer;
      const sent = await post("/v1/chat/completions", chat({ model: "p", stream: streamed }), undefined, {
        "idempotency-key": `k-${answers.indexOf(answer)}-${streamed}`,
      });
      const text = await sent.text();
      // A stream that has begun has its status.
      expect(sent.status >= 400 || text.includes('"error"')).toBe(true);
      expect(text).not.toContain("[DONE]");
      expect(text).not.toContain(CANARY_KEY);
      requestIds.push(sent.headers.get("x-request-id") ?? "");
    }
  for (const id of requestIds) traces.push(await (await get(`/v1/traces/${id}`)).text());
  expect(traces.every((trace) => trace.includes('"spans"'))).toBe(true);
  await post("/v1/chat/completions", {
    ...chat({ model: "sandbox/echo" }),
    messages: [{ role: "nobody", content: CANARY_PROMPT }],
  });
  await app.tracer.flush();
  const metrics = await (await get("/metrics")).text();
  const everything = [...lines, ...traces, metrics].join("\n");
  expect(everything).not.toContain(CANARY_KEY);
  expect(everything).not.toContain(CANARY_PROMPT);
  const { readdirSync, readFileSync } = await import("node:fs");
  for (const file of readdirSync(app.state)) {
    if (!file.startsWith("magic.db")) continue;
    const bytes = readFileSync(join(app.state, file));
    expect(bytes.includes(CANARY_KEY)).toBe(false);
    expect(bytes.includes(CANARY_PROMPT)).toBe(false);
  }
  const audit = await (await get("/v1/audit?limit=100")).text();
  expect(audit).not.toContain(CANARY_PROMPT);
  expect(audit).not.toContain(CANARY_KEY);
});
