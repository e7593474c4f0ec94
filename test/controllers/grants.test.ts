// What is granted is exactly what is declared: over random contracts, and over the addresses that http:egress must not reach.
import { createServer } from "node:http";
import fc from "fast-check";
import { expect, test } from "vitest";
import { parse } from "yaml";
import type { ControllerContract } from "#contract/controller.ts";
import { capabilities } from "#contract/controller.ts";
import { MagicError } from "#contract/errors.ts";
import { refusalOf } from "#contract/grants.ts";
import { brokerOperations, createBroker } from "#daemon/controllers/broker/broker.ts";
import { openDatabases } from "#daemon/controllers/broker/db/databases.ts";
import type { Session } from "#daemon/controllers/broker/db/driver.ts";
import { openSlots } from "#daemon/controllers/broker/db/slots.ts";
import type { Ports } from "#daemon/controllers/ports.ts";
import { createEgress } from "#daemon/egress/egress.ts";
import { createTracer } from "#daemon/telemetry/trace.ts";
import { ssrfVariants } from "#test/egress/variants.ts";
import { listen } from "#test/listen.ts";
import { contractOf, principal } from "./harness.ts";

const operations = brokerOperations(openDatabases("/nonexistent"));
const reached: string[] = [];
function reach<T>(what: string, answer: T): T {
  reached.push(what);
  return answer;
}

/** Every port says that it was reached. */
const ports: Ports = {
  llm: { chat: async () => reach("llm", { status: 200, headers: {}, body: {} }) },
  egress: {
    dispatcher: { request: () => reach("http", Promise.reject(new Error("reached"))) } as never,
    addresses: async () => [],
  },
  databases: { get: () => reach("db", null) },
  secrets: { get: () => reach("secret", "value") },
  kv: {
    get: async () => reach("kv", null),
    set: async () => reach("kv", undefined),
    delete: async () => reach("kv", undefined),
  },
  syncs: { trigger: async () => reach("sync", { id: "sync_1", status: "queued" }) },
};

function opened(
  contract: ControllerContract,
  using: Ports,
  allowed = operations,
  signal = new AbortController().signal,
) {
  const broker = createBroker(contract, { operations: allowed, ports: using, observe() {} });
  const span = createTracer().start("test", { requestId: "req_1" });
  const caller = {
    controller: contract.name,
    version: "1.0.0",
    requestId: "req_1",
    invocationId: "inv_1",
    principal,
    signal,
    span,
    depth: 0,
  };
  return broker.open(caller, async () => reached.push("controller"));
}

function ask(contract: ControllerContract, op: string, args: object, using: Ports = ports): Promise<unknown> {
  return opened(contract, using).call(op, args, null, new AbortController().signal);
}

const hosts = ["a.example", "b.example", "c.example"];
const names = ["x", "y", "z"];
const subset = <T>(items: readonly T[]) => fc.subarray([...items]);
const contracts = fc.record({
  granted: subset(capabilities),
  http: subset(hosts),
  ports: fc.constantFrom(undefined, 443, 8443),
  methods: fc.option(fc.subarray(["GET", "POST"] as const, { minLength: 1 }), { nil: undefined }),
  db: subset(names),
  secrets: subset(names),
  controllers: fc.option(subset(names), { nil: undefined }),
  syncs: fc.option(subset(names), { nil: undefined }),
});

test("over random contracts, an operation reaches its port exactly when the contract declares it", async () => {
  await fc.assert(
    fc.asyncProperty(
      contracts,
      fc.constantFrom(...hosts),
      fc.constantFrom(...names),
      fc.constantFrom("GET", "POST"),
      fc.constantFrom(443, 8443),
      async (c, host, name, method, port) => {
        const contract = contractOf("t", {
          capabilities: c.granted,
          scopes: {
            http: c.http.map((one) => ({
              host: one,
              ...(c.ports && { port: c.ports }),
              ...(c.methods && { methods: [...c.methods] }),
            })),
            db: c.db.map((one) => ({ name: one })),
            secrets: c.secrets,
            ...(c.controllers && { controllers: c.controllers }),
            ...(c.syncs && { syncs: c.syncs }),
          },
        });
        const has = (capability: string): boolean => (c.granted as string[]).includes(capability);
        const expectations: [string, object, boolean][] = [
          ["llm.chat", { messages: [] }, has("llm:chat")],
          ["secrets.get", { name }, has("secrets:read") && c.secrets.includes(name)],
          ["kv.get", { key: "k" }, has("kv:read")],
          ["kv.set", { key: "k", value: "1" }, has("kv:write")],
          ["kv.delete", { key: "k" }, has("kv:write")],
          ["db.query", { database: name, sql: "select 1", params: [] }, has("db:query") && c.db.includes(name)],
          ["syncs.trigger", { id: name }, has("sync:trigger") && (!c.syncs || c.syncs.includes(name))],
          [
            "controllers.invoke",
            { name, input: 1 },
            has("controller:invoke") && (!c.controllers || c.controllers.includes(name)),
          ],
          [
            "http.fetch",
            { url: `https://${host}:${port}/`, method, headers: [] },
            has("http:egress") &&
              c.http.includes(host) &&
              (c.ports ?? 443) === port &&
              (!c.methods || (c.methods as string[]).includes(method)),
          ],
        ];
        for (const [op, args, declared] of expectations) {
          reached.length = 0;
          const error = await ask(contract, op, args).then(
            () => null,
            (thrown: { code?: string }) => thrown,
          );
          if (reached.length > 0 !== declared)
            throw new Error(`${op} ${JSON.stringify(args)}: declared ${declared}, reached ${reached.join()}`);
          if (!declared) expect(error?.code).toBe("capability_denied");
        }
      },
    ),
    { numRuns: Number(process.env["MAGIC_TEST_RUNS"] ?? 600) },
  );
});

test("a private address is not reached, however it is written and even where it is declared", async () => {
  let hits = 0;
  const server = createServer((_request, response) => {
    hits++;
    response.end("canary");
  });
  const { port, close } = await listen(server);
  const egress = createEgress({});
  try {
    for (const url of ssrfVariants(port)) {
      const host = URL.parse(url)?.hostname ?? "x";
      const contract = contractOf("t", {
        capabilities: ["http:egress"],
        scopes: { http: [{ host: host.replace(/^\[|\]$/g, "") || "x", port }] },
      });
      const code = await ask(contract, "http.fetch", { url, method: "GET", headers: [] }, { ...ports, egress }).then(
        () => "reached",
        (error: { code?: string }) => error.code,
      );
      expect(code, url).toMatch(/^(egress_blocked|capability_denied|upstream_error|invalid_request)$/);
    }
    expect(hits).toBe(0);
  } finally {
    await close();
    await egress.close();
  }
});

test("the line that a refusal says to add is the one that lets it pass", () => {
  for (const wish of [
    { capability: "http:egress", url: new URL("http://[::1]:8080/"), method: "GET" },
    { capability: "http:egress", url: new URL("https://example.com/"), method: "PUT" },
    { capability: "db:query", name: "a, b: [c]" },
    { capability: "secrets:read", name: "TOKEN" },
  ] as const) {
    const contract = contractOf("t", { capabilities: [wish.capability], scopes: { secrets: [] } });
    const added = parse(refusalOf(contract, wish)?.add ?? "") as Partial<ControllerContract>;
    expect(refusalOf({ ...contract, ...added }, wish)).toBeNull();
  }
});

test("a redirect is checked at every hop: to an undeclared host, to a private one, without end", async () => {
  let hits = 0;
  const server = createServer((request, response) => {
    const { pathname } = new URL(request.url ?? "/", "http://x");
    if (pathname === "/out") response.writeHead(302, { location: "http://undeclared.example/" }).end();
    else if (pathname === "/port") response.writeHead(307, { location: "http://127.0.0.1:1/" }).end();
    else if (pathname === "/loop") response.writeHead(302, { location: "/loop" }).end();
    else if (pathname === "/file") response.writeHead(302, { location: "file:///etc/passwd" }).end();
    else if (pathname === "/ok") response.writeHead(302, { location: Buffer.from("/énd").toString("latin1") }).end();
    else {
      hits++;
      response.end("end");
    }
  });
  const { port, close } = await listen(server);
  const egress = createEgress({ allowPrivate: () => [`127.0.0.1:${port}`] });
  const contract = contractOf("t", { capabilities: ["http:egress"], scopes: { http: [{ host: "127.0.0.1", port }] } });
  const get = (path: string): Promise<unknown> =>
    ask(
      contract,
      "http.fetch",
      { url: `http://127.0.0.1:${port}${path}`, method: "GET", headers: [] },
      { ...ports, egress },
    ).then(
      (answer) => (answer as { value: { url: string } }).value.url,
      (error: { code?: string }) => error.code,
    );
  try {
    expect(await get("/out")).toBe("capability_denied");
    expect(await get("/port")).toBe("capability_denied");
    expect(await get("/loop")).toBe("upstream_error");
    expect(await get("/file")).toBe("egress_blocked");
    expect(hits).toBe(0);
    expect(await get("/ok")).toBe(`http://127.0.0.1:${port}/%C3%A9nd`);
  } finally {
    await close();
    await egress.close();
  }
});

test("the operations of one invocation share what it holds: a transaction is its own until it ends", async () => {
  const said: string[] = [];
  const note = async (what: string) => said.push(what);
  const held: Session = {
    query: async (sql) => ({ rows: [{ sql }], row_count: await note(sql) }) as never,
    commit: () => note("commit") as never,
    release: () => note("release") as never,
    destroy: () => void note("destroy"),
  };
  const driver = { begin: async () => held, close: async () => {} };
  const databases = { get: () => ({ url: "", mode: "write" as const }) };
  const contract = contractOf("t", { capabilities: ["db:query"], scopes: { db: [{ name: "x", mode: "write" }] } });
  const using = brokerOperations({ driver: async () => driver, close: async () => {} });
  const ended = new AbortController();
  const one = opened(contract, { ...ports, databases }, using, ended.signal);
  const call = (op: string, args: object) =>
    one.call(op, { database: "x", ...args }, null, new AbortController().signal);
  const { value: tx } = await call("db.begin", {});
  await call("db.query", { tx, sql: "select 1", params: [] });
  await call("db.commit", { tx });
  expect(said).toEqual(["select 1", "commit", "release"]);
  await expect(call("db.query", { tx, sql: "select 2", params: [] })).rejects.toThrow("the transaction is over");
  // Its caller was answered at the deadline, or has left; the handler goes on.
  const { value: late } = await call("db.begin", {});
  ended.abort();
  expect(said.at(-1)).toBe("destroy");
  await expect(call("db.commit", { tx: late })).rejects.toThrow("the invocation has ended");
  expect(said.at(-1)).toBe("destroy");
});

test("what is asked for inside of a transaction does not wait for the session that this holds", async () => {
  const slots = openSlots(1);
  const held = { query: async () => ({ rows: [], row_count: 0 }), commit: async () => {}, destroy: slots.give };
  const driver = {
    close: async () => {},
    begin: async (signal: AbortSignal, _many?: "many", free = signal) => {
      await slots.take(free);
      return { ...held, release: async () => slots.give() };
    },
  };
  // Another server, which is far away or wakes up: its session is free at once.
  const far = {
    ...driver,
    begin: async (signal: AbortSignal) => {
      await new Promise((done) => setTimeout(done, 60));
      if (signal.aborted) throw new MagicError("timeout");
      return { ...held, release: async () => {} };
    },
  };
  const databases = { get: () => ({ url: "", mode: "write" as const }) };
  const db = ["x", "y"].map((name) => ({ name, mode: "write" as const }));
  const contract = contractOf("t", { capabilities: ["db:query"], scopes: { db } });
  const driverOf = async (name: string) => (name === "x" ? driver : far);
  const using = brokerOperations({ driver: driverOf, close: async () => {} }, 20);
  const one = opened(contract, { ...ports, databases }, using);
  const call = (op: string, args: object) =>
    one.call(op, { database: "x", sql: "select 1", ...args }, null, new AbortController().signal);
  const { value: tx } = await call("db.begin", {});
  const beside = call("db.query", {});
  for (const op of ["db.query", "db.begin"])
    await expect(call(op, { inside: tx })).rejects.toMatchObject({ code: "invalid_request" });
  expect(await call("db.query", { inside: tx, database: "y" })).toMatchObject({ value: { row_count: 0 } });
  await call("db.commit", { tx });
  expect(await beside).toMatchObject({ value: { row_count: 0 } });
  // It was asked for inside of one that is over.
  expect(await call("db.query", { inside: tx })).toMatchObject({ value: { row_count: 0 } });
});

test("nothing is done for a handler that goes on past its deadline, or without its caller", async () => {
  const contract = contractOf("t", { capabilities: ["kv:write", "sync:trigger"] });
  const ended = new AbortController();
  const session = opened(contract, ports, operations, ended.signal);
  const call = (op: string, args: object) => session.call(op, args, null, new AbortController().signal);
  ended.abort();
  reached.length = 0;
  for (const wish of [call("kv.set", { key: "a", value: "1" }), call("syncs.trigger", { id: "sync_1" })])
    await expect(wish).rejects.toMatchObject({ code: "timeout" });
  expect(reached).toEqual([]);
});
