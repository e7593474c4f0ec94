// A provider that a test plays: a real HTTP server on loopback, whose answers may be written byte by byte.
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { Agent } from "undici";
import { afterAll, beforeAll, beforeEach } from "vitest";
import type { ChatRequest } from "#daemon/gateway/format/request.ts";
import type { AttemptOptions, ChatCall, ChatOutcome, StreamEnd, Target } from "#daemon/gateway/providers/adapter.ts";
import { listen } from "#test/listen.ts";

export interface Upstream {
  readonly url: string;
  readonly requests: { path: string; headers: IncomingMessage["headers"]; body: string; closed: boolean }[];
  /** What the next requests are answered with. */
  answer: (response: ServerResponse, request: IncomingMessage, body: string) => void | Promise<void>;
  close(): Promise<void>;
}

/** For all tests of a file: it listens before the first, and each finds it without requests. */
export function upstreamOfFile(): Upstream {
  const { upstream, start } = newUpstream();
  beforeAll(start);
  beforeEach(() => {
    upstream.requests.length = 0;
  });
  afterAll(() => upstream.close());
  return upstream;
}

export async function startUpstream(): Promise<Upstream> {
  const { upstream, start } = newUpstream();
  await start();
  return upstream;
}

function newUpstream(): { upstream: Upstream; start(): Promise<void> } {
  const upstream: { -readonly [name in keyof Upstream]: Upstream[name] } = {
    url: "",
    requests: [],
    answer: (response) => void response.writeHead(500).end(),
    close: async () => {},
  };
  const server = createServer(async (request, response) => {
    const parts: Buffer[] = [];
    for await (const part of request) parts.push(part as Buffer);
    const body = Buffer.concat(parts).toString("utf8");
    const seen = { path: request.url ?? "", headers: request.headers, body, closed: false };
    upstream.requests.push(seen);
    response.on("close", () => {
      seen.closed = true;
    });
    response.on("error", () => {});
    await upstream.answer(response, request, body);
  });
  const start = async () => {
    const { origin, close } = await listen(server);
    upstream.url = origin;
    upstream.close = close;
  };
  return { upstream, start };
}

/** Answers as OpenAI refuses. */
export const error =
  (status: number, code = "x", headers: Record<string, string> = {}) =>
  (response: ServerResponse) =>
    void response
      .writeHead(status, { "content-type": "application/json", ...headers })
      .end(JSON.stringify({ error: { message: "no", type: "t", code, param: null } }));

export const agent = new Agent({ connections: 64 });

/** A call as the pipeline would make it; the body is sent as bytes. */
export function callOf(request: object, more: Partial<ChatCall> = {}): ChatCall {
  return {
    request: request as ChatRequest,
    raw: Buffer.from(JSON.stringify(request)),
    requestId: "req_test",
    dropUnsupported: false,
    user: null,
    caller: "token:test",
    ...more,
  };
}

export function targetOf(kind: Target["kind"], upstream: { url: string }, model = "m"): Target {
  const baseUrl = kind === "openai" ? `${upstream.url}/v1` : upstream.url;
  const credentials = {
    apiKey: "sk-canary-0123456789abcdef",
    region: "us-east-1",
    accessKeyId: "AKIAIOSFODNN7EXAMPLE",
    secretAccessKey: "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
  };
  return {
    provider: kind,
    kind,
    model,
    baseUrl,
    credentials: kind === "bedrock" ? { ...credentials, apiKey: undefined } : credentials,
  };
}

export function optionsOf(more: Partial<AttemptOptions> = {}): AttemptOptions {
  return { signal: new AbortController().signal, timeoutMs: 20_000, cost: () => 0.5, ...more };
}

export interface Streamed {
  readonly text: string;
  readonly events: unknown[];
  readonly done: boolean;
  readonly end: StreamEnd;
}

/** Everything that a stream delivers, parsed. */
export async function collect(outcome: ChatOutcome): Promise<Streamed> {
  if (outcome.kind !== "stream") throw new Error(`no stream but ${JSON.stringify(outcome)}`);
  let text = "";
  const decoder = new TextDecoder("utf-8", { ignoreBOM: true });
  const end = await outcome.pipe({
    write(frame) {
      text += typeof frame === "string" ? frame : decoder.decode(frame, { stream: true });
      return true;
    },
    drained: async () => {},
  });
  const events: unknown[] = [];
  let done = false;
  for (const event of text.split("\n\n")) {
    if (event === "" || event.startsWith(":")) continue;
    if (event === "data: [DONE]") done = true;
    else events.push(JSON.parse(event.replace(/^data: ?/, "")));
  }
  return { text, events, done, end };
}
