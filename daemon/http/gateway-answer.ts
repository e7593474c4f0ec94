// From an HTTP request to a gateway call, and from its answer to HTTP: a body at once, or server-sent events written straight to the
// socket with its back-pressure. A client that leaves aborts the call's signal.
import type { ServerResponse } from "node:http";
import type { Socket } from "node:net";
import type { FastifyReply, FastifyRequest } from "fastify";
import { MagicError } from "#contract/errors.ts";
import { headers as names } from "#contract/protocol.ts";
import type { Gateway, GatewayAnswer, Operation } from "#daemon/gateway/call.ts";
import type { FrameSink, WholeBody } from "#daemon/gateway/providers/adapter.ts";
import { abortSource } from "#shared/abort.ts";
import type { RawBody } from "./raw-body.ts";

/** Carries out one completion or embedding request and answers it, past Fastify. Throws what the gateway refuses. */
export async function answerCall(
  gateway: Gateway,
  operation: Operation,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<void> {
  const sent = request.body as RawBody | undefined;
  if (!sent) throw new MagicError("invalid_request", "The body is empty; send a JSON object.");
  const left = abortSource();
  request.left = () => left.abort();
  const key = request.headers[names.idempotencyKey];
  let answer: GatewayAnswer;
  underWay++;
  try {
    answer = await gateway.complete({
      operation,
      principal: request.principal,
      requestId: request.id,
      body: sent.body,
      raw: sent.raw,
      headers: request.headers,
      idempotencyKey: typeof key === "string" ? key : null,
      controller: null,
      span: request.span,
      signal: left.signal,
      startedAt: request.startedAt,
    });
  } finally {
    underWay--;
  }
  // Bytes that are ready need nothing of what Fastify does with an answer. The head first: should it be refused, the error handler
  // can still answer.
  const raw = reply.raw;
  raw.writeHead(answer.status, headLines(reply, answer));
  reply.hijack();
  if (answer.stream) {
    await answer.stream.pipe(openSink(raw));
    raw.end();
  } else endSoon(raw, answer.body);
}

/** Calls that wait for the gateway. */
let underWay = 0;
type Ready = readonly [raw: ServerResponse, body: WholeBody];
let ready: Ready[] = [];

// Answers of one turn of the loop leave together: a write wakes whoever waits at the other end, and one that is awake already costs the
// kernel a third. One that is alone has none to wait for.
function endSoon(raw: ServerResponse, body: WholeBody): void {
  if (ready.push([raw, body]) > 1) return;
  if (underWay === 0) endReady();
  else setImmediate(endReady);
}

/** Bytes of a text that Node writes without allocating: 16 kB, the head included. */
const SHORT = 12 * 1024;

// A short body goes as a text, a character for each byte: Node puts the head before it and hands the socket one piece instead of two.
function endReady(): void {
  const answers = ready;
  ready = [];
  for (const [raw, body] of answers)
    if (typeof body !== "string" && body.length > SHORT) raw.end(body);
    else raw.end(body.toString("latin1"), "latin1");
}

// Names and values in turn: the form that Node writes without looking at each again.
function headLines(reply: FastifyReply, { headers, body }: GatewayAnswer): string[] {
  const lines: string[] = [];
  const own = reply.getHeaders();
  for (const name in own) if (!(name in headers)) lines.push(name, String(own[name]));
  for (const name in headers) lines.push(name, headers[name] ?? "");
  if (body !== undefined) lines.push("content-length", String(body.length));
  return lines;
}

// A frame goes to the socket as one chunk in one piece: Node would make four of it. Not where the answer is not chunked (HTTP/1.0) or waits
// for the one before it on the connection.
function openSink(raw: ServerResponse): FrameSink {
  const { socket } = raw;
  const direct = raw.chunkedEncoding && socket;
  const way = direct || raw;
  if (direct) {
    // The head travels with the first frame.
    holdBack(direct);
    raw.flushHeaders();
  }
  return {
    write(frame) {
      // What is written to a socket that has closed goes nowhere; the signal tells the pipeline. A chunk of nothing would be the last one.
      if (raw.destroyed || frame.length === 0) return true;
      if (!direct) return raw.write(frame);
      holdBack(direct);
      return direct.write(chunkOf(frame));
    },
    drained: () =>
      new Promise((resolve) => {
        if (raw.destroyed || !way.writableNeedDrain) return resolve();
        const settled = () => {
          way.off("drain", settled);
          raw.off("close", settled);
          resolve();
        };
        way.on("drain", settled);
        raw.on("close", settled);
      }),
  };
}

let heldBack: Socket[] = [];

// What streams write in one turn of the loop leaves at its end, one write behind the other, as whole answers do (`endSoon`).
function holdBack(socket: Socket): void {
  if (socket.writableCorked > 0) return;
  socket.cork();
  if (heldBack.push(socket) === 1) setImmediate(letGo);
}

function letGo(): void {
  const sockets = heldBack;
  heldBack = [];
  for (const socket of sockets) socket.uncork();
}

const CR = 0x0d;
const LF = 0x0a;

/** RFC 9112, 7.1. Its few bytes beside the frame are set one by one: half of what writing them as texts costs. */
function chunkOf(frame: Uint8Array | string): Buffer {
  const length = typeof frame === "string" ? Buffer.byteLength(frame) : frame.length;
  const size = length.toString(16);
  const begin = size.length + 2;
  const end = begin + length;
  const chunk = Buffer.allocUnsafe(end + 2);
  for (let at = 0; at < size.length; at++) chunk[at] = size.charCodeAt(at);
  chunk[begin - 2] = CR;
  chunk[begin - 1] = LF;
  if (typeof frame === "string") chunk.write(frame, begin);
  else chunk.set(frame, begin);
  chunk[end] = CR;
  chunk[end + 1] = LF;
  return chunk;
}
