// How answers stand on the connection, byte by byte: chunks, pipelined requests, HTTP/1.0, readers that do not read.
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import type { ServerResponse } from "node:http";
import { connect, type Socket } from "node:net";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type App, createApp } from "#daemon/app.ts";
import { folderOfFile } from "#test/temporary.ts";
import { error, upstreamOfFile } from "./upstream.ts";

const upstream = upstreamOfFile();
let app: App;
const folder = folderOfFile();

beforeAll(async () => {
  const gateway = { providers: { openai: { api_key: "sk-1", base_url: `${upstream.url}/v1` } } };
  const egress = { allow_private: [new URL(upstream.url).host] };
  writeFileSync(join(folder, "magic.yaml"), JSON.stringify({ version: 1, gateway, egress }));
  app = await createApp({ root: folder, env: { ...process.env, MAGIC_HOME: join(folder, "home") } });
  await app.listen();
});
afterAll(() => app.close());

interface Asked {
  readonly stream: boolean;
  readonly prompt: string;
  readonly version?: string;
}

function request({ stream, prompt, version = "1.1" }: Asked): string {
  const body = JSON.stringify({ model: "openai/gpt-4o-mini", messages: [{ role: "user", content: prompt }], stream });
  const head = [`POST /v1/chat/completions HTTP/${version}`, "Host: 127.0.0.1", "Content-Type: application/json"];
  head.push(`Authorization: Bearer ${app.credentials.gateway_token}`, `Content-Length: ${Buffer.byteLength(body)}`);
  return `${head.join("\r\n")}\r\n\r\n${body}`;
}

function open(): Socket {
  return connect(Number(new URL(app.url ?? "").port), "127.0.0.1").on("error", () => undefined);
}

/** Everything that arrives until `enough`, or until the connection ends. */
async function received(socket: Socket, enough: (end: Buffer) => boolean = () => false): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let end = Buffer.alloc(0);
  for await (const chunk of socket) {
    chunks.push(chunk as Buffer);
    end = Buffer.concat([end.subarray(-65_536), chunk as Buffer]);
    if (enough(end)) break;
  }
  return Buffer.concat(chunks);
}

interface Message {
  readonly head: string;
  readonly chunks: readonly Buffer[];
}

/** The messages in these bytes; throws where they are not well formed or not whole (RFC 9112, 7.1). */
function messagesIn(bytes: Buffer): Message[] {
  const messages: Message[] = [];
  let at = 0;
  const line = (): string => {
    const end = bytes.indexOf("\r\n", at);
    if (end < 0) throw new Error("cut off");
    const text = bytes.toString("latin1", at, end);
    at = end + 2;
    return text;
  };
  const take = (length: number): Buffer => {
    if (at + length > bytes.length) throw new Error("cut off");
    at += length;
    return bytes.subarray(at - length, at);
  };
  while (at < bytes.length) {
    let head = "";
    for (let next = line(); next !== ""; next = line()) head += `${next.toLowerCase()}\n`;
    const length = /content-length: (\d+)/.exec(head)?.[1];
    const chunks: Buffer[] = [];
    if (length !== undefined) chunks.push(take(Number(length)));
    else if (head.includes("transfer-encoding: chunked"))
      for (;;) {
        const size = line();
        if (!/^[0-9a-f]+$/.test(size)) throw new Error(`no size of a chunk: ${size}`);
        const chunk = take(Number.parseInt(size, 16));
        if (line() !== "") throw new Error("a chunk that is longer than it says");
        if (chunk.length === 0) break;
        chunks.push(chunk);
      }
    else throw new Error(`a message without an end: ${head}`);
    messages.push({ head, chunks });
  }
  return messages;
}

const textOf = ({ chunks }: Message) => Buffer.concat(chunks).toString();

const event = (content: string, more: object = {}) =>
  `data: ${JSON.stringify({ id: "c", object: "chat.completion.chunk", created: 1, model: "m", choices: [{ index: 0, delta: { role: "assistant", content }, finish_reason: null, ...more }] })}\n\n`;
const completion = (content: string) =>
  JSON.stringify({
    id: "c",
    object: "chat.completion",
    created: 1,
    model: "m",
    choices: [
      { index: 0, message: { role: "assistant", content, refusal: null }, finish_reason: "stop", logprobs: null },
    ],
    usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 },
  });
const asStream = (response: ServerResponse) => response.writeHead(200, { "content-type": "text/event-stream" });

test("requests that come at once on a connection are answered in their order, each whole", async () => {
  upstream.answer = async (response, _request, body) => {
    const { messages, stream } = JSON.parse(body) as { messages: { content: string }[]; stream: boolean };
    const said = messages[0]?.content ?? "";
    // The first is the slowest: the others are ready before their turn has come.
    await sleep(said === "a" ? 300 : 0);
    if (!stream) return void response.writeHead(200, { "content-type": "application/json" }).end(completion(said));
    asStream(response).write(event(`${said}1`));
    await sleep(20);
    response.write(event(`${said}2`));
    response.end(`${event("", { finish_reason: "stop" })}data: [DONE]\n\n`);
  };
  const socket = open();
  const asked = [
    { stream: true, prompt: "a" },
    { stream: true, prompt: "b" },
    { stream: false, prompt: "c" },
    { stream: true, prompt: "d" },
  ];
  socket.write(asked.map(request).join(""));
  const ends = (bytes: Buffer) =>
    bytes.toString("latin1").split("[DONE]").length === 4 && bytes.subarray(-5).equals(Buffer.from("0\r\n\r\n"));
  const messages = messagesIn(await received(socket, ends));
  socket.destroy();
  expect(messages.map(({ head }) => head.split("\n", 1)[0])).toEqual(Array(4).fill("http/1.1 200 ok"));
  for (const [index, { stream, prompt }] of asked.entries()) {
    const text = textOf(messages[index] as Message);
    if (stream)
      expect([...text.matchAll(/"content":"(\w+)"/g)].map((match) => match[1])).toEqual([`${prompt}1`, `${prompt}2`]);
    else expect(JSON.parse(text)).toMatchObject({ choices: [{ message: { content: prompt } }] });
  }
});

test("an event is one chunk, whatever its letters; a client of HTTP/1.0 gets the same without chunks", async () => {
  const events = ["plain", "gr\u00fc\u00df dich", "\u{1f600}".repeat(40), "x".repeat(300)].map((content) =>
    event(content),
  );
  upstream.answer = async (response) => {
    asStream(response);
    for (const each of events) {
      response.write(each);
      await sleep(20);
    }
    response.end(`${event("", { finish_reason: "stop" })}data: [DONE]\n\n`);
  };
  const [modern, old] = [open(), open()];
  modern.write(request({ stream: true, prompt: "hi" }));
  old.write(request({ stream: true, prompt: "hi", version: "1.0" }));
  const [chunked, plain] = await Promise.all([
    received(modern, (bytes) => bytes.subarray(-5).equals(Buffer.from("0\r\n\r\n"))),
    received(old),
  ]);
  modern.destroy();
  const [message] = messagesIn(chunked) as [Message];
  expect(message.chunks.slice(0, events.length).map(String)).toEqual(events);
  const cut = plain.indexOf("\r\n\r\n") + 4;
  expect(plain.toString("latin1", 0, cut).toLowerCase()).not.toContain("transfer-encoding");
  expect(plain.toString("utf8", cut)).toBe(textOf(message));
});

test("each event of a stream reaches its client before the provider has another, however many streams speak at once", async () => {
  const heard = new Map<string, () => void>();
  upstream.answer = async (response, _request, body) => {
    const said = (JSON.parse(body) as { messages: { content: string }[] }).messages[0]?.content ?? "";
    asStream(response);
    for (const piece of [1, 2, 3]) {
      const arrived = new Promise<void>((resolve) => heard.set(`${said}${piece}`, resolve));
      response.write(event(`${said}${piece}`));
      await arrived;
    }
    response.end(`${event("", { finish_reason: "stop" })}data: [DONE]\n\n`);
  };
  const prompts = Array.from({ length: 20 }, (_, index) => `stream${index}-`);
  const ends = await Promise.all(
    prompts.map((prompt) => {
      const socket = open();
      socket.write(request({ stream: true, prompt }));
      return received(socket, (bytes) => {
        for (const piece of [1, 2, 3]) if (bytes.includes(`"${prompt}${piece}"`)) heard.get(`${prompt}${piece}`)?.();
        return bytes.subarray(-5).equals(Buffer.from("0\r\n\r\n"));
      });
    }),
  );
  for (const bytes of ends) expect(textOf(messagesIn(bytes)[0] as Message)).toMatch(/data: \[DONE\]\n\n$/);
});

test("a body is as long as it says, short or long, in any letters", async () => {
  for (const length of [1, 11_000, 12_500, 40_000, 400_000]) {
    const content = "\u00fc\u{1f600}x".repeat(Math.ceil(length / 7));
    upstream.answer = (response) =>
      void response.writeHead(200, { "content-type": "application/json" }).end(completion(content));
    const socket = open();
    socket.write(request({ stream: false, prompt: "hi" }).replace("Host", "Connection: close\r\nHost"));
    const [message] = messagesIn(await received(socket)) as [Message];
    expect(JSON.parse(textOf(message))).toMatchObject({ choices: [{ message: { content } }] });
  }
});

test("a head has each header once, its length and what becomes of the connection, for every kind of client", async () => {
  upstream.answer = (response, _request, body) =>
    body.includes("refuse")
      ? error(429, "x", { "retry-after": "7" })(response)
      : void response.writeHead(200, { "content-type": "application/json" }).end(completion("said"));
  const headOf = async (asked: string) => {
    const socket = open();
    socket.write(asked);
    const bytes = await received(socket, (end) => {
      const [head = "", body] = end.toString("latin1").split("\r\n\r\n");
      return body?.length === Number(/^content-length: (\d+)$/im.exec(head)?.[1]);
    });
    socket.destroy();
    const [statusLine, ...lines] = bytes.toString("latin1", 0, bytes.indexOf("\r\n\r\n")).split("\r\n");
    const headers = lines.map((line) => line.split(": ", 2) as [string, string]);
    expect(new Set(headers.map(([name]) => name.toLowerCase())).size).toBe(lines.length);
    const found = Object.fromEntries(headers.map(([name, value]) => [name.toLowerCase(), value]));
    expect(Math.abs(Date.now() - Date.parse(found["date"] ?? ""))).toBeLessThan(60_000);
    return { statusLine, headers: found };
  };
  const asked = request({ stream: false, prompt: "hi" });
  const kept = await headOf(asked);
  expect(kept.statusLine).toBe("HTTP/1.1 200 OK");
  expect(kept.headers).toMatchObject({
    "content-type": "application/json",
    "x-content-type-options": "nosniff",
    "x-magic-attempts": "1",
    "x-magic-model": "gpt-4o-mini",
    "x-request-id": expect.stringMatching(/^req_/),
    connection: "keep-alive",
    "keep-alive": expect.stringMatching(/^timeout=\d+$/),
  });
  const closed = await headOf(asked.replace("Host", "Connection: close\r\nHost"));
  expect(closed.headers["connection"]).toBe("close");
  const old = await headOf(request({ stream: false, prompt: "hi", version: "1.0" }));
  expect(old.headers["connection"]).toBe("close");
  const refused = await headOf(request({ stream: false, prompt: "refuse" }));
  expect(refused.statusLine).toBe("HTTP/1.1 429 Too Many Requests");
  expect(refused.headers["retry-after"]).toBe("7");
});

test("a client that does not read holds the provider up, and gets everything once it does", async () => {
  const filler = "x".repeat(64 * 1024);
  const total = 400;
  let sent = 0;
  upstream.answer = async (response) => {
    asStream(response);
    for (; sent < total; sent++) if (!response.write(event(filler))) await once(response, "drain");
    response.end(`${event("", { finish_reason: "stop" })}data: [DONE]\n\n`);
  };
  const socket = open();
  socket.pause();
  socket.write(request({ stream: true, prompt: "hi" }));
  let before = -1;
  while (sent === 0 || before !== sent) {
    before = sent;
    await sleep(500);
  }
  // What sockets and buffers hold, and no more.
  expect(sent).toBeLessThan(total);
  const [message] = messagesIn(
    await received(socket, (bytes) => bytes.subarray(-5).equals(Buffer.from("0\r\n\r\n"))),
  ) as [Message];
  socket.destroy();
  const text = textOf(message);
  expect(text.split(filler).length - 1).toBe(total);
  expect(text).toContain("[DONE]");
}, 60_000);
