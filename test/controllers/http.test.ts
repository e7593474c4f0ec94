// The controller routes as callers see them: exact answers, problem documents, the development stream.
import { randomUUID } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { Trace, TraceSpan } from "#contract/wire/traces.ts";
import type { App } from "#daemon/app.ts";
import { createApp } from "#daemon/app.ts";
import { contractOf, put } from "./harness.ts";

let root: string;
let app: App;
let url: string;

beforeAll(async () => {
  root = mkdtempSync(join(tmpdir(), "magic-http-"));
  process.env["MAGIC_HOME"] = join(root, "home");
  put(join(root, "magic.yaml"), "version: 1\ncontrollers: controllers\n");
  put(
    join(root, "controllers/echo/contract.yaml"),
    JSON.stringify(contractOf("echo", { input_schema: { type: "object", required: ["a"] } })),
  );
  put(
    join(root, "controllers/echo/handler.ts"),
    "export default ({ input }) => { if (input.a === 0) throw new Error('zero'); return input; };",
  );
  app = await createApp({ root });
  url = await app.listen();
}, 120_000);

afterAll(async () => {
  await app?.close();
  rmSync(root, { recursive: true, force: true });
});

function call(method: string, path: string, body?: unknown, signal?: AbortSignal): Promise<Response> {
  const headers = { authorization: `Bearer ${app.credentials.local_token}`, "x-request-id": "req_from_caller" };
  const init = body === undefined ? {} : { body: JSON.stringify(body) };
  const json = body === undefined ? {} : { "content-type": "application/json" };
  return fetch(url + path, { method, headers: { ...headers, ...json }, ...init, ...(signal && { signal }) });
}

test("a controller is built, deployed, invoked, listed and removed over HTTP", async () => {
  const artifact = (await (
    await call("POST", "/v1/dev/builds", { folder: join(root, "controllers/echo") })
  ).json()) as Record<string, unknown>;
  const tampered = await call("POST", "/v1/controllers", { ...artifact, code: `${artifact["code"]};` });
  expect(await tampered.json()).toMatchObject({ code: "invalid_request" });
  const deployed = await call("POST", "/v1/controllers", artifact);
  expect(deployed.status).toBe(201);
  expect(await deployed.json()).toMatchObject({
    name: "echo",
    version: "1.0.0",
    digest: artifact["digest"],
    alias: "latest",
  });

  const answer = await call("POST", "/v1/controllers/echo/invoke", { input: { a: 1 } });
  expect(answer.status).toBe(200);
  expect(await answer.json()).toEqual({
    output: { a: 1 },
    request_id: "req_from_caller",
    version: "1.0.0",
    duration_ms: expect.any(Number),
    usage: expect.any(Object),
  });
  const cases: [string, unknown, number, string][] = [
    ["echo", { input: {} }, 422, "input_invalid"],
    ["echo", { input: { a: 0 } }, 500, "handler_error"],
    ["echo", { inptu: 1 }, 422, "validation_failed"],
    ["absent", { input: {} }, 404, "controller_not_found"],
  ];
  for (const [name, body, status, code] of cases) {
    const refused = await call("POST", `/v1/controllers/${name}/invoke`, body);
    expect(refused.headers.get("content-type")).toContain("application/problem+json");
    expect([refused.status, ((await refused.json()) as { code: string }).code]).toEqual([status, code]);
  }
  expect(await (await call("GET", "/v1/controllers")).json()).toMatchObject({
    object: "list",
    data: [{ name: "echo", serving: "1.0.0" }],
    has_more: false,
    next_cursor: null,
  });
  for (const [path, found] of [
    ["/v1/controllers?limit=1", 1],
    ["/v1/controllers?starting_after=echo", 0],
    ["/v1/controllers/echo/versions?limit=1", 1],
    ["/v1/controllers/echo/versions?ending_before=1.0.0", 0],
  ] as const)
    expect([path, ((await (await call("GET", path)).json()) as { data: unknown[] }).data.length]).toEqual([
      path,
      found,
    ]);
  for (const path of ["/v1/controllers", "/v1/controllers/echo/versions"])
    for (const query of ["limit=0", "limit=101", "limit=x", "starting_after=a&ending_before=b"])
      expect([path, query, (await call("GET", `${path}?${query}`)).status]).toEqual([path, query, 422]);
  for (const alias of ["1.0.0", "__proto__", "a%20b", "A", "a".repeat(40)])
    expect((await call("PUT", `/v1/controllers/echo/aliases/${alias}`, { version: "1.0.0" })).status, alias).toBe(422);
  expect((await call("PUT", "/v1/controllers/echo/aliases/stable", { version: "1.0.0" })).status).toBe(200);
  expect((await call("DELETE", "/v1/controllers/echo")).status).toBe(204);
  expect((await call("POST", "/v1/controllers/echo/invoke", { input: { a: 1 } })).status).toBe(404);
});

test("a call with an idempotency key runs to its end though its caller leaves, and answers who comes back", async () => {
  const folder = join(root, "elsewhere/slow");
  put(join(folder, "contract.yaml"), JSON.stringify(contractOf("slow", { capabilities: ["kv:read", "kv:write"] })));
  put(
    join(folder, "handler.ts"),
    `export default async ({ kv }) => {
       await kv.set("calls", ((await kv.get("calls")) ?? 0) + 1);
       await new Promise((resolve) => setTimeout(resolve, 400));
       return kv.get("calls");
     };`,
  );
  const artifact = await (await call("POST", "/v1/dev/builds", { folder })).json();
  expect((await call("POST", "/v1/controllers", artifact)).status).toBe(201);
  const invoke = (signal?: AbortSignal) =>
    fetch(`${url}/v1/controllers/slow/invoke`, {
      method: "POST",
      headers: {
        authorization: `Bearer ${app.credentials.local_token}`,
        "content-type": "application/json",
        "idempotency-key": "left",
      },
      body: JSON.stringify({ input: {} }),
      ...(signal && { signal }),
    });
  const leaving = new AbortController();
  const left = invoke(leaving.signal).catch(() => "left");
  await new Promise((resolve) => setTimeout(resolve, 150));
  leaving.abort();
  expect(await left).toBe("left");
  await expect.poll(async () => (await invoke()).status, { timeout: 10_000 }).toBe(200);
  expect(await (await invoke()).json()).toMatchObject({ output: 1 });
});

test("an output of a megabyte is answered as a small one is, nested and under an idempotency key too", async () => {
  put(
    join(root, "elsewhere/large/contract.yaml"),
    JSON.stringify(
      contractOf("large", {
        output_schema: { type: "array", items: { type: ["object", "integer"] } },
        capabilities: ["controller:invoke"],
        scopes: { controllers: ["large"] },
      }),
    ),
  );
  put(
    join(root, "elsewhere/large/handler.ts"),
    `export default async ({ input, controllers }) => {
       if (input.nested) return [(await controllers.invoke("large", { n: input.nested })).length];
       const list = Array.from({ length: input.n }, (_, n) => ({ n, text: "ä\\u2028" }));
       return input.bad ? [...list, "no object"] : list;
     };`,
  );
  const artifact = await (await call("POST", "/v1/dev/builds", { folder: join(root, "elsewhere/large") })).json();
  expect((await call("POST", "/v1/controllers", artifact)).status).toBe(201);
  const invoke = (input: unknown, headers: Record<string, string> = {}): Promise<Response> =>
    fetch(`${url}/v1/controllers/large/invoke`, {
      method: "POST",
      headers: {
        authorization: `Bearer ${app.credentials.local_token}`,
        "content-type": "application/json",
        ...headers,
      },
      body: JSON.stringify({ input }),
    });
  const small = await invoke({ n: 1 });
  const answer = await invoke({ n: 40_000 });
  expect(answer.status).toBe(200);
  expect(answer.headers.get("content-type")).toBe(small.headers.get("content-type"));
  const document = (await answer.json()) as { output: unknown[] };
  expect(Object.keys(document)).toEqual(Object.keys((await small.json()) as object));
  expect(document.output).toEqual(Array.from({ length: 40_000 }, (_, n) => ({ n, text: "ä\u2028" })));

  const refused = await invoke({ n: 40_000, bad: true });
  expect(await refused.json()).toMatchObject({ code: "output_invalid", errors: [{ pointer: "/40000" }] });

  const nested = (await (await invoke({ nested: 40_000 })).json()) as { output: unknown };
  expect(nested.output).toEqual([40_000]);

  const key = { "idempotency-key": randomUUID() };
  const first = await (await invoke({ n: 40_000 }, key)).text();
  const again = await invoke({ n: 40_000 }, key);
  expect(again.headers.get("idempotent-replayed")).toBe("true");
  expect(await again.text()).toBe(first);
});

test("a streamed completion is in the call's usage, whether the handler asked for usage or not", async () => {
  const folder = join(root, "streams");
  const contract = contractOf("streams", { capabilities: ["llm:chat"], scopes: { llm: { models: ["sandbox/echo"] } } });
  put(join(folder, "contract.yaml"), JSON.stringify(contract));
  put(
    join(folder, "handler.ts"),
    `export default async ({ input, llm }) => {
       const call = { stream: true, messages: [{ role: "user", content: "hello there" }], ...input };
       const seen = [];
       for await (const chunk of await llm.chat(call)) if (chunk.usage) seen.push(chunk.usage.total_tokens);
       return seen;
     };`,
  );
  const artifact = await (await call("POST", "/v1/dev/builds", { folder })).json();
  expect((await call("POST", "/v1/controllers", artifact)).status).toBe(201);
  for (const [input, shown] of [
    [{}, 0],
    [{ stream_options: { include_usage: true } }, 1],
  ] as const) {
    const answer = await (await call("POST", "/v1/controllers/streams/invoke", { input })).json();
    const { output, usage, request_id } = answer as { output: number[]; usage: object; request_id: string };
    expect(output).toHaveLength(shown);
    expect(usage).toMatchObject({ llm_calls: 1, prompt_tokens: 10, completion_tokens: 3 });
    // The gateway's spans stand below the broker's: one tree, and one trace for whoever collects them.
    const { spans } = (await (await call("GET", `/v1/traces/${request_id}`)).json()) as Trace;
    const above = (span: TraceSpan) => spans.find(({ span_id }) => span_id === span.parent_span_id)?.name;
    const models = spans.filter(({ name }) => name.endsWith("sandbox/echo"));
    expect(new Set(models.map((span) => `${above(span)} > ${span.name}`))).toEqual(
      new Set(["broker llm.chat > chat sandbox/echo", "chat sandbox/echo > attempt sandbox/echo"]),
    );
  }
  // Whether there is such a model, and such a provider, or not.
  for (const model of ["sandbox/other", "openai/gpt-4o", "nonesuch"]) {
    const other = await call("POST", "/v1/controllers/streams/invoke", { input: { model } });
    expect([other.status, await other.json()]).toMatchObject([
      403,
      { code: "capability_denied", detail: expect.stringContaining("scopes.llm.models") },
    ]);
  }
});

test("a development session streams its events, and ends when the listener leaves", async () => {
  const left = new AbortController();
  const response = await call("POST", "/v1/dev/sessions", { folder: join(root, "controllers") }, left.signal);
  expect(response.headers.get("content-type")).toContain("application/x-ndjson");
  const events = lines(response);
  const ready = (await events.next()).value as { session: string };
  expect(ready).toMatchObject({ type: "ready", controllers: [{ name: "echo" }] });
  expect((await call("POST", "/v1/controllers/echo/invoke", { input: { a: 2 } })).status).toBe(200);
  writeFileSync(join(root, "controllers/echo/handler.ts"), "export default () => 'new';");
  expect((await events.next()).value).toMatchObject({ type: "reload", controller: "echo" });
  expect(await (await call("POST", "/v1/controllers/echo/invoke", { input: { a: 2 } })).json()).toMatchObject({
    output: "new",
  });
  expect((await call("POST", `/v1/dev/sessions/${ready.session}/reload`, {})).status).toBe(202);
  left.abort();
  for (let tries = 0; tries < 200; tries++) {
    if ((await call("POST", "/v1/controllers/echo/invoke", { input: { a: 2 } })).status === 404) return;
    await new Promise((done) => setTimeout(done, 50));
  }
  throw new Error("the session did not end");
});

async function* lines(response: Response): AsyncGenerator<unknown> {
  let rest = "";
  const decoder = new TextDecoder();
  for await (const chunk of response.body as unknown as AsyncIterable<Uint8Array>) {
    const parts = (rest + decoder.decode(chunk, { stream: true })).split("\n");
    rest = parts.pop() ?? "";
    for (const part of parts) yield JSON.parse(part);
  }
}

test("an invocation has one line in the log, that says who called; a stored answer and a refusal have one too", async () => {
  const lines = async (id: string, body: unknown, key?: string) => {
    await (
      await fetch(`${url}/v1/controllers/echo/invoke`, {
        method: "POST",
        headers: {
          authorization: `Bearer ${app.credentials.local_token}`,
          "content-type": "application/json",
          "x-request-id": id,
          ...(key && { "idempotency-key": key }),
        },
        body: JSON.stringify(body),
      })
    ).text();
    const read = () =>
      app.logStream
        .read(0, 10_000)
        .lines.map(({ text }) => JSON.parse(text) as Record<string, unknown>)
        .filter((line) => line["request_id"] === id);
    await expect.poll(read, { timeout: 10_000 }).not.toHaveLength(0);
    return read().map(({ event, identity }) => [event, identity]);
  };
  const built = await call("POST", "/v1/dev/builds", { folder: join(root, "controllers/echo") });
  await call("POST", "/v1/controllers", await built.json());
  const key = randomUUID();
  expect(await lines("req_one", { input: { a: 1 } }, key)).toEqual([["controller.invoked", "local"]]);
  expect(await lines("req_again", { input: { a: 1 } }, key)).toEqual([["http.request", "local"]]);
  expect(await lines("req_refused", { input: 1, what: 2 })).toEqual([["http.request", "local"]]);
});
