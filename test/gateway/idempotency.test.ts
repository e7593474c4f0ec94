// Idempotency-Key: one upstream call a key, whatever happens.
import { type ChildProcess, spawn } from "node:child_process";
import { writeFileSync } from "node:fs";
import type { ServerResponse } from "node:http";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { beforeEach, expect, test } from "vitest";
import { MagicError } from "#contract/errors.ts";
import { createKeyed } from "#daemon/gateway/idempotency/keyed.ts";
import { gatewayStores } from "#daemon/gateway/stores.ts";
import { createSealer } from "#daemon/secrets/sealer.ts";
import { silentLogger } from "#daemon/telemetry/log.ts";
import { systemClock } from "#shared/clock.ts";
import { temporaryFolder, temporaryStorage } from "#test/temporary.ts";
import { within } from "../patience.ts";
import { type Answered, callOf, collected, completion, masterKey, principal, stream, testGateway } from "./pipeline.ts";
import { upstreamOfFile } from "./upstream.ts";

const deep = process.env["MAGIC_TEST_DEEP"] !== undefined;
/** This machine may be busy. */
const patient = { timeout: 20_000 };
const upstream = upstreamOfFile();
beforeEach(() => {
  upstream.answer = (response, _request, body) => void setTimeout(() => good(response, body), 20);
});

const config = () => ({ providers: { own: { type: "openai" as const, base_url: `${upstream.url}/v1` } } });

function good(response: ServerResponse, body: string): void {
  const streamed = body.includes('"stream":true');
  response.writeHead(200, { "content-type": streamed ? "text/event-stream" : "application/json" });
  response.end(streamed ? stream() : completion());
}

test("two hundred identical requests at once on each of many keys: one upstream call a key, all answers alike", async () => {
  const keys = deep ? 50 : 6;
  const { chat } = await testGateway(config());
  const all: Promise<Answered>[] = [];
  for (let key = 0; key < keys; key++)
    for (let i = 0; i < 200; i++)
      all.push(chat({ model: "own/m", stream: key % 2 === 1, seed: key }, { idempotencyKey: `key-${key}` }));
  const answers = await Promise.all(all);
  expect(upstream.requests.length).toBe(keys);
  for (let key = 0; key < keys; key++) {
    const own = answers.slice(key * 200, key * 200 + 200);
    expect(new Set(own.map(({ text }) => text)).size).toBe(1);
    expect(own.filter(({ headers }) => headers["idempotent-replayed"] === undefined).length).toBe(1);
    expect(own[0]?.text).toContain(key % 2 === 1 ? "data: [DONE]" : "hello");
  }
});

test("a key of whose taking no word came is used by who took it; one whose call was sent is not, whatever is lost after", async () => {
  const storage = await temporaryStorage();
  const { gatewayKey } = storage.units;
  const faults: ("begin, unheard" | "finish")[] = [];
  const unheard = (): never => {
    faults.shift();
    throw new MagicError("storage_unavailable", "no word of it", { extra: { outcome: "unknown" } });
  };
  const begin: typeof gatewayKey.begin = async (row) => {
    const found = await gatewayKey.begin(row);
    return faults[0] === "begin, unheard" ? unheard() : found;
  };
  const finish: typeof gatewayKey.finish = async (row) => {
    if (faults[0] === "finish") unheard();
    await gatewayKey.finish(row);
  };
  const { release, abandon, purge } = gatewayKey;
  const keys = { begin, finish, release, abandon, purge };
  const units = new Proxy(storage.units, {
    get: (all, noun) => (noun === "gatewayKey" ? keys : Reflect.get(all, noun)),
  });
  const { chat } = await testGateway(config(), { storage: { ...storage, units } });
  const outcome = (key: string) =>
    chat({ model: "own/m" }, { idempotencyKey: key }).then(
      ({ status }) => status,
      (error: MagicError) => error.code,
    );
  faults.push("begin, unheard");
  expect([await outcome("a"), await outcome("a"), await outcome("a")]).toEqual(["storage_unavailable", 200, 200]);
  expect(upstream.requests).toHaveLength(1);
  faults.push("begin, unheard");
  expect(await outcome("c")).toBe("storage_unavailable");
  expect((await chat({ model: "own/m", seed: 1 }, { idempotencyKey: "c" })).status).toBe(200);
  expect(await outcome("c")).toBe("idempotency_key_reused");
  faults.push("finish", "begin, unheard");
  const unknown = ["storage_unavailable", "storage_unavailable", "idempotency_outcome_unknown"];
  expect([await outcome("b"), await outcome("b"), await outcome("b")]).toEqual(unknown);
  expect(upstream.requests).toHaveLength(3);
});

test("a key whose answer could not be kept is forgotten when it expires: it may then be taken as any other", async () => {
  let now = Date.UTC(2026, 0, 1);
  const clock = { ...systemClock, now: () => now };
  const stores = gatewayStores(await temporaryStorage(), clock);
  let fault: "begin" | "finish" | undefined = "finish";
  const unheard = (): never => {
    fault = undefined;
    throw new MagicError("storage_unavailable", "no word of it", { extra: { outcome: "unknown" } });
  };
  const begin: typeof stores.keys.begin = async (row) => {
    const found = await stores.keys.begin(row);
    return fault === "begin" ? unheard() : found;
  };
  const finish: typeof stores.keys.finish = (row) => (fault === "finish" ? unheard() : stores.keys.finish(row));
  const sealer = createSealer(masterKey, "idempotency");
  const keyed = createKeyed({ ...stores.keys, begin, finish }, sealer, clock, silentLogger);
  const ask = () =>
    keyed.run(callOf({ model: "own/m" }, { idempotencyKey: "a" }), async () => {
      return { status: 200, headers: {}, body: Buffer.from("{}") };
    });
  const unavailable = { code: "storage_unavailable" };
  await expect(ask()).rejects.toMatchObject(unavailable);
  now += 25 * 3_600_000;
  await keyed.purge();
  fault = "begin";
  await expect(ask()).rejects.toMatchObject(unavailable);
  expect((await ask()).status).toBe(200);
});

test("who waits for another daemon's call goes on waiting when the one who came before him leaves", async () => {
  const { keys } = gatewayStores(await temporaryStorage(), systemClock);
  const begin: typeof keys.begin = async (row) => {
    const found = await keys.begin(row);
    return found && { ...found, alive: found.state === "open" };
  };
  const sealer = createSealer(masterKey, "idempotency");
  const call = (signal?: AbortSignal) => callOf({ model: "own/m" }, { idempotencyKey: "a", ...(signal && { signal }) });
  const { promise, resolve } = Promise.withResolvers<Buffer>();
  const elsewhere = createKeyed(keys, sealer, systemClock, silentLogger).run(call(), async () => {
    return { status: 200, headers: {}, body: await promise };
  });
  const here = createKeyed({ ...keys, begin }, sealer, systemClock, silentLogger);
  const never = () => Promise.reject(new Error("sent again"));
  const leave = new AbortController();
  const left = here.run(call(leave.signal), never);
  const waiting = here.run(call(), never);
  leave.abort();
  await expect(left).rejects.toMatchObject({ code: "idempotency_in_progress" });
  resolve(Buffer.from("{}"));
  expect((await elsewhere).headers).toEqual({});
  expect(await waiting).toMatchObject({ status: 200, headers: { "idempotent-replayed": "true" } });
});

test("a later request gets the stored answer, streams byte for byte, also from another process; another body is refused", async () => {
  const { chat, gateway, storage } = await testGateway(config());
  const first = await chat({ model: "own/m" }, { idempotencyKey: "a" });
  const streamed = await chat({ model: "own/m", stream: true }, { idempotencyKey: "b" });
  // What a kill at this moment would leave: the answers, and what they cost.
  expect(await gatewayStores(storage, systemClock).ledger.usage({ by: "model" })).toMatchObject([{ requests: 2 }]);
  await gateway.close();
  const again = await testGateway(config(), { storage });
  for (const [key, body, before] of [
    ["a", { model: "own/m" }, first],
    ["b", { model: "own/m", stream: true }, streamed],
  ] as const) {
    const replay = await again.chat(body, { idempotencyKey: key });
    expect(replay.text).toBe(before.text);
    expect(replay.headers).toEqual({ ...before.headers, "idempotent-replayed": "true" });
  }
  expect(upstream.requests.length).toBe(2);
  const reused = again.chat({ model: "own/m", stream: true }, { idempotencyKey: "a" });
  await expect(reused).rejects.toMatchObject({ code: "idempotency_key_reused" });
  const other = principal({ id: "gt_other" });
  await again.chat({ model: "own/m" }, { idempotencyKey: "a", principal: other });
  expect(upstream.requests.length).toBe(3);
});

test("what is stored is sealed", async () => {
  const { chat, storage } = await testGateway(config());
  await chat({ model: "own/m" }, { idempotencyKey: "sealed" });
  const row = await storage.units.gatewayKey.begin({
    owner: "token:gt_test:live",
    key: "sealed",
    fingerprint: "",
    request_id: "",
    process: "",
    now: "2000-01-01",
    expires_at: "2000-01-02",
  });
  expect(row?.state).toBe("done");
  expect(row?.answer).toMatch(/^v1\.[\w-]+$/);
  expect(Buffer.from(row?.answer ?? "", "base64url").includes("hello")).toBe(false);
});

test("a refusal before the dispatch gives the key back; a failure after it is the answer for good", async () => {
  const { chat } = await testGateway(config());
  await expect(chat({ model: "nobody/m" }, { idempotencyKey: "r" })).rejects.toMatchObject({ code: "model_not_found" });
  expect((await chat({ model: "own/m" }, { idempotencyKey: "r" })).status).toBe(200);
  upstream.answer = (response) => void response.writeHead(500).end("{}");
  const failed = await chat({ model: "own/m" }, { idempotencyKey: "f" });
  upstream.answer = (response, _request, body) => good(response, body);
  expect(await chat({ model: "own/m" }, { idempotencyKey: "f" })).toMatchObject({ status: 502, text: failed.text });
  expect(upstream.requests.length).toBe(2);
  // What a translated provider would refuse is refused without asking it: who mends the body may keep the key.
  const mended = (temperature: number) =>
    chat(
      { model: "sandbox/echo", temperature },
      { idempotencyKey: "m", principal: principal({ environment: "sandbox" }) },
    );
  expect((await mended(3)).status).toBe(400);
  expect((await mended(2)).status).toBe(200);
  await expect(chat({ model: "own/m" }, { idempotencyKey: "with space" })).rejects.toMatchObject({
    code: "idempotency_key_invalid",
  });
});

test("where the provider did nothing and says to come again, the key is free again", async () => {
  const { chat } = await testGateway({
    ...config(),
    policies: { both: { candidates: ["own/m", "own/n"], timeout_ms: 100 } },
  });
  for (const status of [429, 503]) {
    const before = upstream.requests.length;
    upstream.answer = (response) => void response.writeHead(status, { "retry-after": "1" }).end("{}");
    const keyed = () => chat({ model: "own/m" }, { idempotencyKey: `busy${status}` });
    expect((await keyed()).headers).toMatchObject({ "retry-after": "1" });
    upstream.answer = (response, _request, body) => good(response, body);
    expect((await keyed()).status).toBe(200);
    expect((await keyed()).headers["idempotent-replayed"]).toBe("true");
    expect(upstream.requests.length - before).toBe(2);
  }
  // One of its attempts may have acted.
  upstream.answer = (response, _request, body) => {
    if (body.includes('"n"')) response.writeHead(429).end("{}");
  };
  const mixed = () => chat({ model: "both" }, { idempotencyKey: "mixed" });
  expect((await mixed()).status).toBe(429);
  expect((await mixed()).headers["idempotent-replayed"]).toBe("true");
});

test("a keyed call runs to its end though its client leaves; an unkeyed one is cancelled at once", async () => {
  const { chat, gateway } = await testGateway(config());
  let finish = () => {};
  upstream.answer = (response, _request, body) => {
    finish = () => good(response, body);
  };
  const leaving = new AbortController();
  const keyed = chat({ model: "own/m" }, { idempotencyKey: "left", signal: leaving.signal });
  await expect.poll(() => upstream.requests.length, patient).toBe(1);
  leaving.abort();
  setTimeout(() => finish(), 50);
  expect((await keyed).status).toBe(200);
  expect((await chat({ model: "own/m" }, { idempotencyKey: "left" })).headers["idempotent-replayed"]).toBe("true");
  const unkeyed = new AbortController();
  const call = chat({ model: "own/m" }, { signal: unkeyed.signal });
  await expect.poll(() => upstream.requests.length, patient).toBe(2);
  const left = performance.now();
  unkeyed.abort();
  await expect.poll(() => upstream.requests[1]?.closed, { ...patient, interval: 5 }).toBe(true);
  expect(performance.now() - left).toBeLessThan(within(250));
  expect((await call).status).toBe(499);
  expect(await gateway.usage({ by: "provider" })).toMatchObject([{ key: "own", requests: 2 }]);
});

test("a daemon that may wait no longer tells every caller, charges what came, and knows no outcome of keyed calls", async () => {
  const { chat, gateway, storage } = await testGateway({ ...config(), prices: { "own/m": { input: 1, output: 1 } } });
  const [first = ""] = stream().split("\n\n");
  upstream.answer = (response, _request, body) => {
    if (!body.includes('"stream":true')) return;
    response.writeHead(200, { "content-type": "text/event-stream" });
    response.write(`${first}\n\n`);
  };
  const before = upstream.requests.length;
  const calls = [false, true].flatMap((streamed) => [
    chat({ model: "own/m", stream: streamed }),
    chat({ model: "own/m", stream: streamed }, { idempotencyKey: `cut ${streamed}`.replace(" ", "-") }),
  ]);
  await expect.poll(() => upstream.requests.length - before, patient).toBe(4);
  await new Promise((resolve) => setTimeout(resolve, 50));
  gateway.cut();
  for (const [index, call] of calls.entries()) {
    const { status, text } = await call;
    expect(status).toBe(index < 2 ? 503 : 200);
    expect(text).toMatch(/stopped before the answer was complete.*"code":"draining"\}\}\s*$/);
  }
  await gateway.close();
  const next = await testGateway(config(), { storage });
  expect(await next.gateway.usage({ by: "model" })).toMatchObject([{ requests: 4, prompt_tokens: 4 * 8 }]);
  for (const streamed of [false, true])
    await expect(
      next.chat({ model: "own/m", stream: streamed }, { idempotencyKey: `cut-${streamed}` }),
    ).rejects.toMatchObject({ code: "idempotency_outcome_unknown" });
});

test("an answer is durable before its last byte is sent", async () => {
  const { gateway, storage } = await testGateway(config());
  const answer = await gateway.complete(
    callOf({ model: "own/m", messages: [{ role: "user", content: "hi" }], stream: true }, { idempotencyKey: "d" }),
  );
  let stateAtEnd: string | undefined;
  const stored = () =>
    storage.units.gatewayKey.begin({
      owner: "token:gt_test:live",
      key: "d",
      fingerprint: "",
      request_id: "",
      process: "",
      now: "2000-01-01",
      expires_at: "2000-01-02",
    });
  const look = async () => {
    stateAtEnd = (await stored())?.state;
  };
  const seen: Promise<void>[] = [];
  await collected({
    ...answer,
    stream: {
      pipe: async (sink) =>
        answer.stream?.pipe({
          ...sink,
          write(frame) {
            if (Buffer.from(frame as Uint8Array).includes("[DONE]")) seen.push(look());
            return sink.write(frame);
          },
        }),
    },
    body: undefined as never,
  });
  await Promise.all(seen);
  expect(stateAtEnd).toBe("done");
});

test("killed between dispatch and save: the outcome is unknown and nothing is sent again", async () => {
  const folder = temporaryFolder();
  const { port } = new URL(upstream.url);
  writeFileSync(
    join(folder, "magic.yaml"),
    JSON.stringify({ version: 1, gateway: config(), egress: { allow_private: [`127.0.0.1:${port}`] } }),
  );
  const children = new Set<ChildProcess>();
  const start = async () => {
    const child = spawn(process.execPath, [fileURLToPath(new URL("daemon-process.ts", import.meta.url)), folder], {
      env: { ...process.env, MAGIC_HOME: join(folder, "home") },
      stdio: ["ignore", "pipe", "inherit"],
    });
    children.add(child);
    const lines = createInterface({ input: child.stdout });
    const line = await new Promise<string>((resolve) => lines.once("line", resolve));
    return { child, ...(JSON.parse(line) as { url: string; token: string }) };
  };
  const rounds = deep ? 100 : 2;
  try {
    let daemon = await start();
    const send = (key: string) =>
      fetch(`${daemon.url}/v1/chat/completions`, {
        method: "POST",
        headers: {
          authorization: `Bearer ${daemon.token}`,
          "content-type": "application/json",
          "idempotency-key": key,
        },
        body: JSON.stringify({
          model: "own/m",
          messages: [{ role: "user", content: "hi" }],
          stream: key.endsWith("s"),
        }),
      });
    for (let round = 0; round < rounds; round++) {
      const key = `kill-${round}${round % 2 === 1 ? "s" : ""}`;
      // Half of them die before the upstream answers, half while its answer is on the way.
      upstream.answer = (response) => {
        if (round % 4 >= 2)
          response.writeHead(200, { "content-type": "text/event-stream" }).write(stream().slice(0, 300));
        setTimeout(() => daemon.child.kill("SIGKILL"), (round * 7) % 15);
      };
      const answer = send(key).then((sent) => sent.text());
      await expect(answer).rejects.toThrow();
      daemon = await start();
      upstream.answer = (response, _request, body) => good(response, body);
      for (let i = 0; i < 2; i++) {
        const repeated = await send(key);
        expect(repeated.status).toBe(409);
        expect(((await repeated.json()) as { error: { code: string } }).error.code).toBe("idempotency_outcome_unknown");
      }
      expect(upstream.requests.length).toBe(round + 1);
    }
  } finally {
    for (const child of children) child.kill("SIGKILL");
  }
}, 3_600_000);
