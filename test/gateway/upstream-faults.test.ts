// Twenty-seven ways in which a provider can fail, in five ecosystems, over real sockets: each ends within the time limit in a terminal
// error, and none of them in `[DONE]`.
import type { AddressInfo } from "node:net";
import { createServer, type Server, type Socket } from "node:net";
import { gzipSync } from "node:zlib";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Provider, Target } from "#daemon/gateway/providers/adapter.ts";
import { createProviders } from "#daemon/gateway/providers/registry.ts";
import { within } from "../patience.ts";
import { frame } from "./event-stream.ts";
import { type Ecosystem, ecosystems, type GoodAnswer, good, SAID } from "./good-answers.ts";
import { saidByGatewayStream } from "./said.ts";
import { agent, callOf, collect, optionsOf, targetOf } from "./upstream.ts";

const TIMEOUT = 150;

let server: Server;
let url = "";
let answer: (socket: Socket) => void = (socket) => socket.destroy();
const sockets = new Set<Socket>();

beforeAll(async () => {
  server = createServer((socket) => {
    sockets.add(socket);
    socket.on("close", () => sockets.delete(socket));
    socket.on("error", () => {});
    let seen: Buffer = Buffer.alloc(0);
    socket.on("data", (chunk: Buffer) => {
      seen = Buffer.concat([seen, chunk]);
      const end = seen.indexOf("\r\n\r\n");
      const length = Number(/content-length: (\d+)/i.exec(seen.toString("latin1"))?.[1] ?? 0);
      if (end < 0 || seen.length < end + 4 + length) return;
      seen = Buffer.alloc(0);
      answer(socket);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});
afterAll(async () => {
  for (const socket of sockets) socket.destroy();
  await new Promise((resolve) => server.close(resolve));
});

function head(type: string, more = "transfer-encoding: chunked\r\n", status = "200 OK"): string {
  return `HTTP/1.1 ${status}\r\ncontent-type: ${type}\r\n${more}\r\n`;
}

function piece(bytes: Buffer): Buffer {
  return Buffer.concat([Buffer.from(`${bytes.length.toString(16)}\r\n`), bytes, Buffer.from("\r\n")]);
}

const LAST = "0\r\n\r\n";

/** Writes the head and some of the events in chunks. */
function begin(socket: Socket, it: GoodAnswer, events: readonly Buffer[]): void {
  socket.write(head(it.contentType));
  for (const event of events) socket.write(piece(event));
}

interface Fault {
  readonly name: string;
  readonly play: (socket: Socket, it: GoodAnswer, events: GoodAnswer["events"]) => void;
  /** Asked for whole, not streamed. */
  readonly whole?: true;
  /** No fault after all: it must be read as if nothing had happened. */
  readonly sound?: true;
}

const faults: readonly Fault[] = [
  { name: "hang before the headers", play: () => {} },
  { name: "hang in the middle of the headers", play: (socket) => socket.write("HTTP/1.1 200 OK\r\ncontent-ty") },
  { name: "hang after the headers", play: (socket, it) => socket.write(head(it.contentType)) },
  { name: "hang in the middle of the stream", play: (socket, it, events) => begin(socket, it, events.slice(0, 3)) },
  {
    name: "hang in the middle of an event",
    play: (socket, it, events) => {
      begin(socket, it, events.slice(0, 2));
      socket.write(piece((events[2] ?? Buffer.alloc(0)).subarray(0, 9)));
    },
  },
  { name: "close before the headers", play: (socket) => socket.end() },
  { name: "reset before the headers", play: (socket) => socket.resetAndDestroy() },
  {
    name: "reset in the middle of a chunk",
    play: (socket, it, events) => {
      begin(socket, it, events.slice(0, 2));
      socket.write(`${(500).toString(16)}\r\nabc`, () => setTimeout(() => socket.resetAndDestroy(), 20));
    },
  },
  {
    name: "close without the last chunk",
    play: (socket, it, events) => {
      begin(socket, it, events.slice(0, -1));
      socket.end();
    },
  },
  {
    name: "a clean end without the end mark",
    play: (socket, it, events) => {
      begin(socket, it, events.slice(0, 3));
      socket.end(LAST);
    },
  },
  {
    name: "a clean end after nothing",
    play: (socket, it) => {
      begin(socket, it, []);
      socket.end(LAST);
    },
  },
  {
    name: "an error event in the middle",
    play: (socket, it, events) => {
      begin(socket, it, [...events.slice(0, 3), it.errorEvent]);
      socket.end(LAST);
    },
  },
  {
    name: "an error event at once",
    play: (socket, it) => {
      begin(socket, it, [it.errorEvent]);
      socket.end(LAST);
    },
  },
  {
    name: "an event that is not valid",
    play: (socket, it, events) => {
      begin(socket, it, [...events.slice(0, 2), it.brokenEvent, ...events.slice(2)]);
      socket.end(LAST);
    },
  },
  {
    name: "200 with an error document for a stream",
    play: (socket, it) =>
      socket.end(head("application/json", `content-length: ${it.errorJson.length}\r\n`) + it.errorJson),
  },
  {
    name: "200 with an error document",
    whole: true,
    play: (socket, it) =>
      socket.end(head("application/json", `content-length: ${it.errorJson.length}\r\n`) + it.errorJson),
  },
  { name: "200 with a web page", play: (socket) => socket.end(`${head("text/html", "content-length: 6\r\n")}<html>`) },
  {
    name: "200 with nothing",
    whole: true,
    play: (socket) => socket.end(head("application/json", "content-length: 0\r\n")),
  },
  {
    name: "invalid JSON",
    whole: true,
    play: (socket, it) => socket.end(`${head("application/json", "content-length: 12\r\n")}${it.json.slice(0, 12)}`),
  },
  {
    name: "less than the content-length",
    whole: true,
    play: (socket, it) => socket.end(`${head("application/json", "content-length: 99999\r\n")}${it.json}`),
  },
  {
    name: "a line of 10 MB",
    play: (socket, it, events) => {
      begin(socket, it, events.slice(0, 2));
      const line = it.contentType.startsWith("text")
        ? Buffer.concat([Buffer.from("data: "), Buffer.alloc(10 << 20, "x")])
        : Buffer.concat([Buffer.from([0, 0xa0, 0, 0]), Buffer.alloc(10 << 20)]);
      socket.write(piece(line));
    },
  },
  {
    name: "a gzip bomb",
    whole: true,
    play: (socket) => {
      const bomb = gzipSync(Buffer.alloc(80 << 20, " "));
      const fields = `content-encoding: gzip\r\ncontent-length: ${bomb.length}\r\n`;
      socket.write(head("application/json", fields));
      socket.end(bomb);
    },
  },
  {
    name: "gzip that is none",
    whole: true,
    play: (socket, it) =>
      socket.end(
        `${head("application/json", `content-encoding: gzip\r\ncontent-length: ${it.json.length}\r\n`)}${it.json}`,
      ),
  },
  {
    name: "an encoding nobody knows",
    whole: true,
    play: (socket) => socket.end(`${head("application/json", "content-encoding: x-odd\r\ncontent-length: 2\r\n")}{}`),
  },
  { name: "no HTTP at all", play: (socket) => socket.end("SSH-2.0-OpenSSH_9.6\r\n") },
  {
    name: "a chunk size that is none",
    play: (socket, it, events) => {
      begin(socket, it, events.slice(0, 2));
      socket.write("zz\r\noops\r\n");
    },
  },
  {
    name: "headers of 200 kB",
    play: (socket, it) => socket.write(head(it.contentType, `x-long: ${"a".repeat(200_000)}\r\n`)),
  },
  {
    name: "a redirect",
    play: (socket) =>
      socket.end(
        head("text/plain", "location: http://127.0.0.1:1/\r\ncontent-length: 0\r\n", "307 Temporary Redirect"),
      ),
  },
  {
    name: "status 503",
    play: (socket) => socket.end(`${head("text/plain", "content-length: 4\r\n", "503 Busy")}busy`),
  },
  {
    name: "characters split over packets",
    sound: true,
    play: async (socket, it, events) => {
      socket.write(head(it.contentType));
      for (const byte of Buffer.concat([...events])) {
        socket.write(piece(Buffer.from([byte])));
        if (byte > 0x7f) await new Promise((resolve) => setImmediate(resolve));
      }
      socket.end(LAST);
    },
  },
  {
    name: "a gzip stream nobody asked for",
    sound: true,
    play: (socket, it, events) => {
      const bytes = gzipSync(Buffer.concat([...events]));
      socket.write(head(it.contentType, "content-encoding: gzip\r\ntransfer-encoding: chunked\r\n"));
      socket.write(piece(bytes));
      socket.end(LAST);
    },
  },
];

const providers = createProviders(agent);

function ask(kind: Ecosystem, fault: Fault, options = optionsOf({ timeoutMs: fault.sound ? 20_000 : TIMEOUT })) {
  const provider: Provider = providers[kind];
  const target: Target = { ...targetOf(kind, { url }, "claude-haiku-4-5") };
  const request = {
    model: "m",
    messages: [{ role: "user", content: "x" }],
    ...(fault.whole ? {} : { stream: true, stream_options: { include_usage: true } }),
  };
  return provider.chat(callOf(request), target, options);
}

describe.each(ecosystems)("%s", (kind) => {
  test.each(faults.map((fault) => [fault.name, fault] as const))("%s", async (_name, fault) => {
    answer = (socket) => fault.play(socket, good[kind], good[kind].events);
    const started = performance.now();
    const outcome = await ask(kind, fault);
    const got = outcome.kind === "stream" ? await collect(outcome) : null;
    if (!fault.sound) expect(performance.now() - started).toBeLessThan(within(TIMEOUT + 500));

    if (fault.sound) {
      expect(got?.end.result).toBe("completed");
      expect(saidByGatewayStream(got?.events ?? [])).toMatchObject({ text: SAID, usage: { prompt: 9, completion: 4 } });
      return;
    }
    expect(JSON.stringify(outcome) + (got?.text ?? "")).not.toMatch(/canary|wJalr/);
    if (!got) return expect(outcome.kind).toBe("failure");
    expect(got.done).toBe(false);
    expect(got.end.result).toBe("failed");
    expect(got.events.at(-1)).toMatchObject({ error: { type: expect.any(String), message: expect.any(String) } });
    expect(SAID.startsWith(saidByGatewayStream(got.events.slice(0, -1)).text)).toBe(true);
  });

  test("a client that leaves ends the upstream call within 250 ms", async () => {
    const fault = faults[3] as Fault;
    let closed: (at: number) => void = () => {};
    const closing = new Promise<number>((resolve) => {
      closed = resolve;
    });
    answer = (socket) => {
      socket.once("close", () => closed(performance.now()));
      fault.play(socket, good[kind], good[kind].events);
    };
    const left = new AbortController();
    const outcome = await ask(kind, fault, optionsOf({ timeoutMs: 10_000, signal: left.signal }));
    const collecting = collect(outcome);
    const at = performance.now();
    left.abort();
    expect((await closing) - at).toBeLessThan(within(250));
    const got = await collecting;
    expect(got.end).toMatchObject({ result: "aborted", usage: { estimated: true } });
    expect(got.end.usage.output).toBeGreaterThan(0);
    expect(got.done).toBe(false);
  });
});

test("a stream may take longer than the time limit, which counts each silence by itself", async () => {
  const [limit, gap] = [2_000, 1_100];
  const { events } = good.openai;
  let last = 0;
  const play = async (socket: Socket, it: GoodAnswer) => {
    begin(socket, it, []);
    for (const event of events.slice(0, 3)) {
      socket.write(piece(event));
      last = performance.now();
      await new Promise((resolve) => setTimeout(resolve, gap));
    }
  };
  answer = (socket) => void play(socket, good.openai);
  const outcome = await ask("openai", { name: "", play }, optionsOf({ timeoutMs: limit }));
  if (outcome.kind !== "stream") throw new Error(JSON.stringify(outcome));
  const { events: told, end } = await collect(outcome);
  const silent = performance.now() - last;
  expect(told.length).toBe(4);
  expect(end).toMatchObject({ result: "failed", failure: { kind: "timeout" } });
  expect(silent).toBeGreaterThan(limit - 5);
  expect(silent).toBeLessThan(within(limit + 500));
});

test("a provider that is down cannot be reached; one that hangs up broke the connection off", async () => {
  const ask = async (at: string) => {
    const call = callOf({ messages: [{ role: "user", content: "x" }] });
    return createProviders(agent).openai.chat(call, targetOf("openai", { url: at }), optionsOf());
  };
  answer = (socket) => socket.resetAndDestroy();
  expect(await ask(url)).toMatchObject({ failure: { message: "The provider broke the connection off (ECONNRESET)." } });
  const gone = createServer().listen(0, "127.0.0.1");
  await new Promise((resolve) => gone.once("listening", resolve));
  const { port } = gone.address() as AddressInfo;
  await new Promise((resolve) => gone.close(resolve));
  const message = "The provider cannot be reached (ECONNREFUSED).";
  expect(await ask(`http://127.0.0.1:${port}`)).toMatchObject({ failure: { kind: "reset", message } });
});

// As an empty answer that looks well an agent would take it for the end of its work.
test.each([
  ["google", "MALFORMED_FUNCTION_CALL"],
  ["bedrock", "malformed_tool_use"],
] as const)(
  "a call that %s's model got wrong (%s) is a failed attempt that was charged, whole and streamed",
  async (kind, reason) => {
    const usage =
      kind === "google" ? { promptTokenCount: 7, candidatesTokenCount: 3 } : { inputTokens: 7, outputTokens: 3 };
    const candidates = [{ content: {}, finishReason: reason }];
    const whole =
      kind === "google"
        ? { candidates, usageMetadata: usage }
        : { output: { message: { role: "assistant", content: [] } }, stopReason: reason, usage };
    const streamed =
      kind === "google"
        ? [Buffer.from(`data: ${JSON.stringify(whole)}\n\n`)]
        : [frame("messageStop", JSON.stringify({ stopReason: reason })), frame("metadata", JSON.stringify({ usage }))];
    for (const stream of [false, true]) {
      const it = stream ? streamed : [Buffer.from(JSON.stringify(whole))];
      answer = (socket) => {
        socket.write(head(stream ? good[kind].contentType : "application/json"));
        for (const event of it) socket.write(piece(event));
        socket.write(LAST);
      };
      const request = { messages: [{ role: "user", content: "x" }], stream };
      const outcome = await createProviders(agent)[kind].chat(callOf(request), targetOf(kind, { url }), optionsOf());
      expect(outcome).toMatchObject({
        kind: "failure",
        failure: { status: 502, message: expect.stringContaining(reason) },
        usage: { input: 7, output: 3 },
      });
    }
  },
);
