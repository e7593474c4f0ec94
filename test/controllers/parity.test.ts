// The fakes of magic/sdk/testing against the daemon itself: the same handler, the same inputs, the same answers and the same error codes.
import { mkdtempSync, rmSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { pathToFileURL } from "node:url";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { App } from "#daemon/app.ts";
import { createApp } from "#daemon/app.ts";
import type { HandlerRequest } from "#sdk/request.ts";
import { testHandler } from "#sdk/testing.ts";
import { put } from "./harness.ts";

/** Through Node's own client: the answer's status and text, or its error. */
function asked(what: string): string {
  return `(async (http) => new Promise((done, fail) => http.request(${what}, (answer) => answer.toArray().then((all) => done([answer.statusCode, answer.statusMessage, Buffer.concat(all).toString()]), fail)).on("error", fail).end("x")))(await import("node:http"))`;
}

/** Handler code by name; what it returns or throws must be the same on both sides. */
const cases: Record<string, string> = {
  request:
    "return { input: request.input, controller: request.controller, environment: request.environment, left: request.deadline > Date.now(), aborted: request.signal.aborted }",
  "a bare output": "return { a: 1 }",
  "what JSON leaves out":
    "return { a: undefined, b: new Date(0), c: [undefined, () => 1], d: NaN, e: new Map([[1, 2]]) }",
  "no output": "return undefined",
  "an output that is not JSON": "return { a: 1n }",
  "a generator": "return (function* () { yield 1 })()",
  "an async generator": "return (async function* () { yield 1 })()",
  "a Map for an output": "return reply(new Map([[1, 2]]))",
  "an empty output": "return {}",
  "a circle": "const a = {}; a.a = a; return a",
  "an output that does not fit": "return reply({ label: 7 })",
  "an output too large": "return 'x'.repeat(9 << 20)",
  "SDK errors": "throw new NotFound('no ticket 7')",
  "an error of a foreign code": "throw new HandlerError('upstream_timeout', 'late')",
  chat: "const c = await request.llm.chat({ messages: [{ role: 'user', content: 'hi there' }] }); return [c.object, c.choices[0].message, c.choices[0].finish_reason, typeof c.usage.cost_usd]",
  "chat, streamed":
    "let text = ''; for await (const c of await request.llm.chat({ stream: true, messages: [{ role: 'user', content: 'hi there' }] })) text += c.choices[0]?.delta.content ?? ''; return text",
  "chat by a model of a pattern":
    "const c = await request.llm.chat({ model: 'sandbox/echo', messages: [{ role: 'user', content: 'x' }] }); return c.choices[0].message.content",
  "chat with a tool, streamed":
    "const tools = [{ type: 'function', function: { name: 'look', parameters: { type: 'object' } } }]; const calls = []; let usage = false; for await (const c of await request.llm.chat({ stream: true, stream_options: { include_usage: true }, tools, tool_choice: 'required', messages: [{ role: 'user', content: 'call' }] })) { for (const one of c.choices[0]?.delta.tool_calls ?? []) calls[one.index] = (calls[one.index] ?? '') + (one.function?.name ?? ''); usage ||= Boolean(c.usage); } return [calls, usage]",
  "chat by a model that is not listed":
    "return await request.llm.chat({ model: 'sandbox/large', messages: [{ role: 'user', content: 'x' }] })",
  "chat without messages": "return await request.llm.chat({})",
  "chat with no message": "return await request.llm.chat({ messages: [] })",
  kv: "const { kv } = request; await kv.set('k', { a: [1, undefined], at: new Date(0) }); const one = await kv.get('k'); await kv.delete('k'); return [one, await kv.get('k'), await kv.get('absent')]",
  "kv that expires":
    "const { kv } = request; await kv.set('t', 1, { ttl_s: 0.05 }); await kv.set('u', 1, { ttl_s: 60 }); await new Promise((r) => setTimeout(r, 80)); return [await kv.get('t'), await kv.get('u')]",
  "kv of many keys at once":
    "const { kv } = request; await Promise.all(Array.from({ length: 300 }, (_, i) => kv.set('k' + i, i))); return await kv.get('k299')",
  "kv without a value": "await request.kv.set('k', undefined)",
  "kv of a bad key": "await request.kv.get(7)",
  "kv of a long key": "await request.kv.set('k'.repeat(600), 1)",
  "kv of a large value": "await request.kv.set('k', 'v'.repeat(300_000))",
  "kv of a large value where another one is":
    "const { kv } = request; await kv.set('held', 1); await kv.set('held', 'v'.repeat(300_000)).catch(() => {}); return await kv.get('held')",
  "kv of half a character": "await request.kv.set('\\ud800', 1)",
  "kv of a key with NUL": "return await request.kv.get('a\\0b')",
  "kv of a time that is no number": "await request.kv.set('k', 1, { ttl_s: NaN })",
  "kv of an endless time": "await request.kv.set('k', 1, { ttl_s: Infinity })",
  "kv of a time alone": "await request.kv.set('k', 1, 60)",
  "kv of another option": "await request.kv.set('k', 1, { ttl: 60 })",
  "kv of a bad time": "await request.kv.set('k', 1, { ttl_s: -1 })",
  "a secret": "return await request.secrets.get('TOKEN')",
  "a secret that is not listed": "return await request.secrets.get('OTHER')",
  "a secret that is not there": "return await request.secrets.get('ABSENT')",
  rows: "return await request.db.query('main', 'select id, name, bytes from t where id = $1', [1])",
  "a parameter of every kind":
    "const seen = []; for (const p of [5n, null, 'x', 1.5]) seen.push((await request.db.query('main', 'select id from t where name = $1', [p])).row_count); return seen",
  "a parameter that is no number": "return await request.db.query('main', 'select id from t where id = $1', [NaN])",
  "a parameter that is no date":
    "return await request.db.query('main', 'select id from t where id = $1', [new Date(NaN)])",
  "a transaction":
    "return await request.db.transaction('main', async (tx) => (await tx.query('select id from t')).rows)",
  "a transaction that is over":
    "let kept; await request.db.transaction('main', async (tx) => { kept = tx; }); return await kept.query('select id from t')",
  "a transaction that fails":
    "return await request.db.transaction('main', async () => { throw new Conflict('taken'); })",
  "control of the transaction": "return await request.db.query('main', 'commit')",
  "a write with a read grant": "return await request.db.query('main', \"insert into t values (9, 'x', null)\")",
  "a database that is not listed": "return await request.db.query('other', 'select 1')",
  "SQL that is none": "return await request.db.query('main', 7)",
  "parameters that are none": "return await request.db.query('main', 'select 1', 'x')",
  fetch:
    "const r = await request.fetch(request.input.url + '/ok#part'); return [r.status, r.ok, r.url.endsWith('/ok'), r.redirected, await r.text()]",
  "the global fetch":
    "const r = await fetch(request.input.url + '/ok', { method: 'POST', body: 'x' }); return [r.status, await r.text()]",
  "a redirect":
    "const r = await fetch(request.input.url + '/away', { method: 'POST', body: 'x' }); return [r.status, r.url.endsWith('/ok'), r.redirected, await r.text()]",
  "a redirect not followed": "return (await fetch(request.input.url + '/away', { redirect: 'manual' })).status",
  "a redirect refused": "return (await fetch(request.input.url + '/away', { redirect: 'error' })).status",
  "a redirect to an undeclared host": "return (await fetch(request.input.url + '/out')).status",
  "a redirect without end": "return (await fetch(request.input.url + '/loop')).status",
  "a host that is not listed": "return await fetch('https://elsewhere.example/')",
  "a method that is not listed": "return await fetch(request.input.url, { method: 'DELETE' })",
  "a request by Node's client": `return await ${asked("request.input.url + '/ok', { method: 'POST', agent: new http.Agent({ keepAlive: true }) }")}`,
  "a redirect of Node's client": `return await ${asked("request.input.url + '/away'")}`,
  "a method of Node's client that is not listed": `return await ${asked("request.input.url, { method: 'DELETE' }")}`,
  "a socket of one's own": `return await ${asked("{ socketPath: '/run/docker.sock' }")}`,
  "a file": "return await fetch('file:///etc/passwd')",
  "an address that is none": "return await fetch('/relative')",
  "another controller": "return await request.controllers.invoke('echo', { at: new Date(0) })",
  "a controller that is not listed": "return await request.controllers.invoke('secret', {})",
  "a controller that is not there": "return await request.controllers.invoke('absent', {})",
  "a sync that is not listed": "return await request.syncs.trigger('sync_2')",
};
const undeclared: Record<string, string> = {
  llm: "await request.llm.chat({ messages: [] })",
  fetch: "await fetch('https://example.com/')",
  "Node's client": `await ${asked("'http://example.com/'")}`,
  db: "await request.db.query('main', 'select 1')",
  transaction: "await request.db.transaction('main', async () => 1)",
  secrets: "await request.secrets.get('TOKEN')",
  "kv.get": "await request.kv.get('k')",
  "kv.set": "await request.kv.set('k', 1)",
  "kv.delete": "await request.kv.delete('k')",
  controllers: "await request.controllers.invoke('echo', {})",
  syncs: "await request.syncs.trigger('sync_1')",
};
const late = { "a deadline": "await new Promise(() => {})" };
const sources = { all: cases, none: undeclared, hasty: late };
type Deployed = keyof typeof sources;

const handlerOf = (bodies: Record<string, string>): string => `
import { reply, HandlerError, NotFound, Conflict } from "magic/sdk";
const cases = {${Object.entries(bodies).map(([name, body]) => `${JSON.stringify(name)}: async (request) => { ${body} }`)}};
export default (request) => cases[request.input.name](request);`;

let root: string;
let app: App;
let base: string;
const outside = createServer((request, response) => {
  const location = { "/away": "/ok", "/out": "http://undeclared.example/", "/loop": "/loop" }[request.url ?? ""];
  if (location) response.writeHead(307, { location }).end();
  else response.end(`${request.method} ok`);
}).listen(0, "127.0.0.1");

async function api(method: string, path: string, body: object): Promise<Record<string, unknown>> {
  const headers = { authorization: `Bearer ${app.credentials.local_token}`, "content-type": "application/json" };
  return (await (await fetch(base + path, { method, headers, body: JSON.stringify(body) })).json()) as never;
}

beforeAll(async () => {
  root = mkdtempSync(join(tmpdir(), "magic-parity-"));
  process.env["MAGIC_HOME"] = join(root, "home");
  const { port } = outside.address() as AddressInfo;
  const database = new DatabaseSync(join(root, "data.sqlite"));
  database.exec(
    "create table t (id integer primary key, name text, bytes blob); insert into t values (1, 'one', x'0102')",
  );
  database.close();
  put(
    join(root, "magic.yaml"),
    JSON.stringify({
      version: 1,
      databases: { main: { url: "sqlite:data.sqlite" } },
      secrets: { TOKEN: "the token" },
      egress: { allow_private: [`127.0.0.1:${port}`] },
    }),
  );
  const common = {
    version: "1.0.0",
    input_schema: { type: "object" },
    output_schema: { properties: { label: { type: "string" } } },
  };
  const contracts = {
    all: {
      ...{ name: "all", ...common, limits: { timeout_ms: 25_000 } },
      capabilities: [
        "llm:chat",
        "http:egress",
        "db:query",
        "secrets:read",
        "kv:read",
        "kv:write",
        "controller:invoke",
        "sync:trigger",
      ],
      scopes: {
        llm: { models: ["sandbox/ec*", "sandbox/echo"] },
        http: [{ host: "127.0.0.1", port, methods: ["GET", "POST"] }],
        db: [{ name: "main" }],
        ...{ secrets: ["TOKEN", "ABSENT"], controllers: ["echo", "absent"], syncs: ["sync_1"] },
      },
    },
    none: { name: "none", ...common },
    hasty: { name: "hasty", ...common, limits: { timeout_ms: 300 } },
    echo: { name: "echo", ...common },
  };
  app = await createApp({ root });
  base = await app.listen();
  for (const [name, contract] of Object.entries(contracts)) {
    const folder = join(root, "controllers", name);
    put(join(folder, "contract.yaml"), JSON.stringify(contract));
    put(
      join(folder, "handler.ts"),
      name === "echo" ? "export default ({ input }) => input;" : handlerOf(sources[name as never]),
    );
    const artifact = await api("POST", "/v1/dev/builds", { folder });
    expect(await api("POST", "/v1/controllers", artifact)).toMatchObject({ name });
  }
}, 120_000);

afterAll(async () => {
  await app?.close();
  outside.close();
  rmSync(root, { recursive: true, force: true });
});

/** The handler's module with the SDK of this working copy, as a unit test loads it. */
async function faked(controller: Deployed) {
  const source = handlerOf(sources[controller]).replace(
    '"magic/sdk"',
    JSON.stringify(import.meta.resolve("#sdk/index.ts")),
  );
  const file = join(root, `${controller}-faked.mts`);
  put(file, source);
  const { default: handler } = (await import(pathToFileURL(file).href)) as { default: never };
  return testHandler(handler, {
    folder: join(root, "controllers", controller),
    llm: (asked) => {
      const text = String(asked.messages.at(-1)?.content);
      return text === "call" ? calling : text;
    },
    fetch: async (request) => {
      const { pathname } = new URL(request.url);
      const location = { "/away": "/ok", "/out": "http://undeclared.example/", "/loop": "/loop" }[pathname];
      return location
        ? new Response(null, { status: 307, headers: { location } })
        : new Response(`${request.method} ok`);
    },
    db: (sql, params) => (sql.includes("select") && (params.length === 0 || params[0] === 1) ? [rowOf(sql)] : []),
    secrets: { TOKEN: "the token", OTHER: "never" },
    controllers: { echo: (input) => input, secret: () => "never" },
  });
}

const rowOf = (sql: string): object =>
  sql.includes("bytes") ? { id: 1, name: "one", bytes: new Uint8Array([1, 2]) } : { id: 1 };

const calling = {
  ...{ id: "chatcmpl-1", object: "chat.completion" as const, created: 0, model: "sandbox/echo" },
  choices: [
    {
      index: 0,
      message: {
        role: "assistant" as const,
        content: null,
        tool_calls: [{ id: "call_1", type: "function" as const, function: { name: "look", arguments: "{}" } }],
      },
      finish_reason: "tool_calls",
    },
  ],
  usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 },
};

async function bothSides(controller: Deployed, name: string): Promise<[unknown, unknown]> {
  const { port } = outside.address() as AddressInfo;
  const input = { name, url: `http://127.0.0.1:${port}` };
  const real = await api("POST", `/v1/controllers/${controller}/invoke`, { input });
  const fake = await (await faked(controller)).invoke(input).then(
    ({ output }) => ({ output }),
    (error: { code?: string; message: string; add?: string }) => error,
  );
  return [real, fake];
}

test.each(Object.keys(cases))("%s: the same in a cell and in a unit test", async (name) => {
  const [real, fake] = (await bothSides("all", name)) as Record<string, unknown>[];
  // What is no HandlerError is told to callers as handler_error; a unit test gets it as it was thrown.
  if ("output" in (real ?? {})) expect(fake).toEqual({ output: real?.["output"] });
  else expect((fake as { code?: string }).code ?? "handler_error").toBe(real?.["code"]);
});

test("a handler past its deadline: timeout in a cell and in a unit test", async () => {
  const [real, fake] = await bothSides("hasty", "a deadline");
  const { detail } = real as { detail: string };
  expect(real).toMatchObject({ code: "timeout" });
  expect(fake).toMatchObject({ code: "timeout", message: detail });
});

test.each(Object.keys(undeclared))(
  "%s, undeclared: refused with the same words and the same line to add",
  async (name) => {
    const [real, fake] = (await bothSides("none", name)) as Record<string, unknown>[];
    expect(real?.["code"]).toBe("capability_denied");
    expect(fake).toMatchObject({ code: "capability_denied", message: real?.["detail"], add: real?.["add"] });
  },
);

test("the fake store has room for as many keys as a controller's own", async () => {
  const handler = async ({ input, kv }: HandlerRequest<{ keys: number }>) => {
    for (let n = 0; n < input.keys; n++) await kv.set(`k${n}`, n, n === 0 ? { ttl_s: 0.000_001 } : {});
    return {};
  };
  const { invoke } = testHandler(handler, { folder: join(root, "controllers", "all") });
  // The first one has expired when room is needed.
  await invoke({ keys: 10_001 });
  await expect(invoke({ keys: 10_002 })).rejects.toMatchObject({
    code: "limit_exceeded",
    message: "all holds 10000 keys, and no more fit",
  });
});

test("a unit test sees errors among a line's fields as the log has them", async () => {
  const handler = async ({ log }: HandlerRequest<unknown>) => {
    const error = Object.assign(new TypeError("broken"), { code: "E_BROKEN" });
    log.error("held", { error, big: 1n, own: { toJSON: () => "own" } });
    log.error("bare", error as never);
    log.error(error, { n: 1 });
    log.error(error, error as never);
    log.error(error, "words" as never);
    log.error("deep", { list: [{ error }] });
    return {};
  };
  const { logs } = await testHandler(handler, { folder: join(root, "controllers", "all") }).invoke({});
  const said = { name: "TypeError", message: "broken", code: "E_BROKEN", stack: expect.stringContaining("broken\n") };
  const deep = { list: [{ error: said }] };
  expect(logs.map(({ fields }) => fields)).toEqual([
    { error: said, big: "1", own: "own" },
    said,
    { error: said, n: 1 },
    { error: said, fields: said },
    { error: said, fields: "words" },
    deep,
  ]);
});
