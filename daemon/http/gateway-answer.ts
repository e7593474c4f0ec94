// From an HTTP request to a gateway call, and from its answer to HTTP: a body at once, or server-sent events written straight to the
// socket with its back-pressure. A client that leaves aborts the call's signal.
import type { FastifyReply, FastifyRequest } from "fastify";
import { MagicError } from "#contract/errors.ts";
import { headers as names } from "#contract/protocol.ts";
import type { Gateway, GatewayAnswer, Operation } from "#daemon/gateway/call.ts";
import type { FrameSink } from "#daemon/gateway/providers/adapter.ts";
import { abortSource } from "#shared/abort.ts";
import type { RawBody } from "./raw-body.ts";

/** Carries out one completion or embedding request and answers it. Throws what the gateway refuses. */
export async function answerCall(
  gateway: Gateway,
  operation: Operation,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<FastifyReply> {
  const sent = request.body as RawBody | undefined;
  if (!sent) throw new MagicError("invalid_request", "The body is empty; send a JSON object.");
  const left = abortSource();
  request.left = () => left.abort();
  const key = request.headers[names.idempotencyKey];
  const answer = await gateway.complete({
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
  // Bytes that are ready need nothing of what Fastify does with an answer. The head first: should it be refused, the error handler
  // can still answer.
  const raw = reply.raw;
  raw.writeHead(answer.status, headLines(reply, answer));
  reply.hijack();
  if (answer.stream) {
    await answer.stream.pipe(sinkOf(raw));
    raw.end();
  } else endSoon(raw, answer.body);
  return reply;
}

type Ready = readonly [raw: FastifyReply["raw"], body: Uint8Array];
let ready: Ready[] = [];

// Answers of one turn of the loop leave together: a write wakes whoever waits at the other end, and one that is awake already costs the
// kernel a third.
function endSoon(raw: FastifyReply["raw"], body: Uint8Array): void {
  if (ready.push([raw, body]) === 1) setImmediate(endReady);
}

function endReady(): void {
  const answers = ready;
  ready = [];
  for (const [raw, body] of answers) raw.end(body);
}

// Names and values in turn: the form that Node writes without looking at each again.
function headLines(reply: FastifyReply, { headers, body }: GatewayAnswer): string[] {
  const lines: string[] = [];
  const own = reply.getHeaders();
  for (const name in own) if (!(name in headers)) lines.push(name, String(own[name]));
  for (const name in headers) lines.push(name, headers[name] ?? "");
  if (body) lines.push("content-length", String(body.length));
  return lines;
}

function sinkOf(raw: FastifyReply["raw"]): FrameSink {
  return {
    // What is written to a socket that has closed goes nowhere; the signal tells the pipeline.
    write: (frame) => raw.destroyed || raw.write(frame),
    drained: () =>
      new Promise((resolve) => {
        if (raw.destroyed || !raw.writableNeedDrain) return resolve();
        const settled = () => {
          raw.off("drain", settled);
          raw.off("close", settled);
          resolve();
        };
        raw.on("drain", settled);
        raw.on("close", settled);
      }),
  };
}
