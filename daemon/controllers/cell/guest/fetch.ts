// `fetch` inside a cell: the request goes to the daemon as a broker call, the body and the answer's body as streams with credit.
import { STREAM_WINDOW } from "../frames.ts";
import { failureOf, toError } from "./errors.ts";
import { askBroker, type BodySender, type Invocation } from "./invocation.ts";
import {
  asyncIterator,
  BlobOf,
  byteLength,
  defineProperty,
  ErrorOf,
  fetchOf,
  PromiseOf,
  ReadableStreamOf,
  RequestOf,
  ResponseOf,
  responseClone,
  StringOf,
  Uint8ArrayOf,
} from "./primordials.ts";
import { type IncomingStream, toReadable } from "./streams.ts";

/** The value of the answer to `http.fetch`. */
export interface FetchAnswer {
  readonly status: number;
  readonly statusText: string;
  readonly headers: [string, string][];
  readonly url: string;
  readonly redirected: boolean;
}

const PIECE = 64 * 1024;

export async function brokeredFetch(
  invocation: Invocation | undefined,
  input: string | URL | Request,
  init?: RequestInit,
): Promise<Response> {
  const target = input instanceof RequestOf ? input : StringOf(input);
  // They reach nothing: packages carry their WebAssembly in them.
  if (/^(data|blob):/i.test(typeof target === "string" ? target : target.url)) return await fetchOf(target, init);
  if (!invocation)
    throw toError({
      name: "HandlerError",
      message: "fetch works during an invocation only, not while the module loads",
      code: "capability_denied",
    });
  const request = new RequestOf(target, init?.body ? ({ duplex: "half", ...init } as RequestInit) : init);
  if (request.integrity !== "") throw new ErrorOf("fetch does not check `integrity`");
  const headers: [string, string][] = [];
  request.headers.forEach((value, name) => {
    headers.push([name, value]);
  });
  const { body } = request;
  const { value, stream } = await exchange(invocation, {
    ...{ url: request.url, method: request.method, headers, redirect: request.redirect, body },
    ...{ whole: !isStream(init?.body), length: lengthOf(init?.body), signal: request.signal, keep: [request, target] },
  });
  const empty = value.status === 204 || value.status === 205 || value.status === 304 || request.method === "HEAD";
  if (empty) stream?.cancel();
  const strange = value.status < 200 || value.status > 599;
  const response = new ResponseOf(empty || !stream ? null : toReadable(stream), {
    status: strange ? 200 : value.status,
    statusText: value.statusText,
    headers: value.headers,
  });
  return toldOf(response, value, strange);
}

/** What the constructor takes none of; of its clones as well. */
function toldOf(response: Response, value: FetchAnswer, strange: boolean): Response {
  if (strange) {
    defineProperty(response, "status", { value: value.status });
    defineProperty(response, "ok", { value: false });
  }
  defineProperty(response, "url", { value: value.url });
  defineProperty(response, "redirected", { value: value.redirected });
  return defineProperty(response, "clone", { value: () => toldOf(responseClone(response), value, strange) });
}

export interface Exchange {
  readonly url: string;
  readonly method: string;
  readonly headers: readonly (readonly [string, string])[];
  readonly redirect: string;
  readonly body: ReadableStream<Uint8Array> | null;
  /** The body needs nothing of the answer to go on. */
  readonly whole: boolean;
  /** Its bytes, where they are known. */
  readonly length: number | undefined;
  readonly signal: AbortSignal;
  readonly keep?: unknown;
}

/** One request and its answer; throws what a handler is to catch. */
export async function exchange(
  invocation: Invocation,
  { body, signal, keep, ...args }: Exchange,
): Promise<{ value: FetchAnswer; stream: IncomingStream | null }> {
  if (signal.aborted) {
    // Nothing is sent, and what would have been is let go of.
    body?.cancel(signal.reason).catch(() => {});
    throw signal.reason;
  }
  const send = body ? { body: (sender: BodySender) => void pump(body, sender) } : {};
  const answer = await askBroker(invocation, "http.fetch", args, { signal, keep, ...send });
  if (answer.error) throw failureOf(answer.error, signal);
  return { value: answer.value as FetchAnswer, stream: answer.stream };
}

/** A body that comes to be while it is sent. */
function isStream(body: unknown): boolean {
  return typeof body === "object" && body !== null && (body instanceof ReadableStreamOf || asyncIterator in body);
}

/** Bytes of a body that has a length already; undefined where only its stream knows. */
function lengthOf(body: unknown): number | undefined {
  if (typeof body === "string") return byteLength(body);
  const { byteLength: bytes, size } = (body ?? {}) as { byteLength?: unknown; size?: unknown };
  if (typeof bytes === "number") return bytes;
  return body instanceof BlobOf && typeof size === "number" ? size : undefined;
}

/** Sends the body in pieces, never more than the window ahead of what the daemon has taken. */
async function pump(body: ReadableStream<Uint8Array>, sender: BodySender): Promise<void> {
  let credit = STREAM_WINDOW;
  let wake: (() => void) | null = null;
  let over = false;
  sender.onCredit((bytes) => {
    credit += bytes;
    wake?.();
  });
  try {
    const reader = body.getReader();
    sender.onOver((reason) => {
      over = true;
      wake?.();
      reader.cancel(reason).catch(() => {});
    });
    for (;;) {
      const { done, value } = await reader.read();
      if (over) return;
      if (done) break;
      if (!(value instanceof Uint8ArrayOf)) throw new ErrorOf("its stream gave what is no Uint8Array");
      for (let at = 0; at < value.length; at += PIECE) {
        const size = Math.min(PIECE, value.length - at);
        while (credit < size) {
          await new PromiseOf<void>((resolve) => {
            wake = resolve;
          });
          if (over) return;
        }
        credit -= size;
        sender.chunk(new Uint8ArrayOf(value.buffer, value.byteOffset + at, size));
      }
    }
    sender.end();
  } catch (thrown) {
    sender.end(String((thrown as Error)?.message ?? thrown));
  }
}
