// What is no HTTP request, or none in time: one answer, behind those to the requests before it, then the connection is closed, so that
// nothing after it is read as a request.
import type { Socket } from "node:net";
import type { FastifyReply } from "fastify";
import { MagicError } from "#contract/errors.ts";
import { newId } from "#shared/ids.ts";
import { type NewestOn, onceClosed } from "./activity.ts";
import { answerFor } from "./error-forms.ts";

const known: Readonly<Record<string, [number, string, string]>> = {
  HPE_HEADER_OVERFLOW: [431, "Request Header Fields Too Large", "The headers are too large."],
  ERR_HTTP_REQUEST_TIMEOUT: [408, "Request Timeout", "The request was not complete in time."],
};

/** Milliseconds for which a connection is kept that asks for nothing. */
export const KEEP_ALIVE_MS = 72_000;
const CR = 0x0d;
const LF = 0x0a;

/** Connections of which nothing more is read: Node tells anew of everything that still comes. */
const refused = new WeakSet<Socket>();

/** `tell` hears of an answer that went out to what is none of the requests that are open. */
export function answerMalformed(
  error: Error & { code?: string },
  socket: Socket,
  newestOn: NewestOn = () => undefined,
  tell: (status: number, requestId: string) => void = () => {},
): void {
  // Before the end of a TLS handshake nothing can be told, and what is written keeps the connection open until it has gone out.
  if (error.code === "ECONNRESET" || /^ERR_(TLS|SSL)_/.test(error.code ?? "") || socket.destroyed) {
    socket.destroy();
    return;
  }
  // Of those that a client has opened ahead Node expects a request within the time for headers. One may be on its way just now.
  if (error.code === "ERR_HTTP_REQUEST_TIMEOUT" && socket.bytesRead === 0) {
    const silent = setTimeout(() => socket.destroy(), KEEP_ALIVE_MS);
    socket.once("close", () => clearTimeout(silent));
    socket.once("data", (bytes: Buffer) => {
      clearTimeout(silent);
      // Node's times begin anew with a request's first letter, and are over for who sends nothing but the empty lines before one.
      if (bytes.every((byte) => byte === CR || byte === LF)) answerMalformed(error, socket, newestOn, tell);
    });
    return;
  }
  if (refused.has(socket)) return;
  refused.add(socket);
  const before = newestOn(socket);
  if (before === undefined) {
    answerUnknown(error, socket, tell);
    return;
  }
  const { raw, request } = before;
  // Its answer comes first: whoever sent it would take this one for it.
  if (request.raw.complete) onceClosed(raw, () => answerUnknown(error, socket, tell));
  // What streams breaks off: there is no way to say more.
  else if (raw.headersSent && !raw.writableEnded) socket.destroySoon();
  else if (raw.writableEnded || withoutBody.has(request.method)) onceClosed(raw, () => socket.destroySoon());
  else answerCutOff(error, before);
}

/** What these bring as a body nobody reads: they are answered whatever becomes of it. */
const withoutBody: ReadonlySet<string> = new Set(["GET", "HEAD"]);

/** Which request it would have been nobody knows. */
function answerUnknown(
  error: Error & { code?: string },
  socket: Socket,
  tell: (status: number, requestId: string) => void,
): void {
  const [status, reason, detail] = refusalOf(error);
  const id = newId("req");
  const problem = new MagicError("invalid_request", detail);
  // Which route was meant nobody knows: problem+json, with OpenAI's member for the gateway's clients.
  const body = JSON.stringify({
    ...answerFor(problem, "problem", id).body,
    ...answerFor(problem, "openai", id).body,
    title: reason,
    status,
  });
  if (socket.writable) {
    socket.write(
      `HTTP/1.1 ${status} ${reason}\r\nContent-Type: application/problem+json\r\nX-Request-Id: ${id}\r\n` +
        "X-Content-Type-Options: nosniff\r\n" +
        `Content-Length: ${Buffer.byteLength(body)}\r\nConnection: close\r\n\r\n${body}`,
    );
    tell(status, id);
  }
  socket.destroySoon();
}

/** Whose body breaks off is a request like any other, with its own id, form of errors and entry in the audit log. */
function answerCutOff(error: Error & { code?: string }, reply: FastifyReply): void {
  const [status, reason, detail] = refusalOf(error);
  const { id, route } = reply.request;
  const { headers, body } = answerFor(new MagicError("invalid_request", detail), route.errors ?? "problem", id);
  reply
    .code(status)
    .headers({ ...headers, connection: "close" })
    .serializer(JSON.stringify)
    .send("status" in body ? { ...body, title: reason, status } : body);
}

function refusalOf({ code = "" }: { code?: string }): readonly [number, string, string] {
  return known[code] ?? [400, "Bad Request", "The request is not well-formed HTTP."];
}
