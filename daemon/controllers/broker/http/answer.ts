// What came back: status and headers as a web Response takes them, the body decoded and within its cap, whatever the server sends.
import { pipeline } from "node:stream";
import { createBrotliDecompress, createGunzip, createInflate, createInflateRaw, createZstdDecompress } from "node:zlib";
import type { Dispatcher } from "undici";
import { MagicError } from "#contract/errors.ts";
import type { BrokerAnswer } from "../../cell/streams.ts";
import type { Session } from "../session.ts";
import { metered } from "./body.ts";
import { explained } from "./failure.ts";
import { HOP, type Outgoing } from "./outgoing.ts";

const MAX_RESPONSE_BYTES = 64 * 1024 * 1024;
const PIECE = 64 * 1024;
/** Encodings one over the other; more are a trick, not a saving. */
const MAX_ENCODINGS = 3;

export function answerOf(
  session: Session,
  { url, method }: Outgoing,
  response: Dispatcher.ResponseData,
  redirected: boolean,
  signal: AbortSignal,
): BrokerAnswer {
  const status = response.statusCode;
  const bodyless = method === "HEAD" || status === 204 || status === 205 || status === 304;
  const encodings = bodyless ? null : encodingsOf(headerOf(response, "content-encoding"));
  const headers: [string, string][] = [];
  for (const [name, value] of Object.entries(response.headers)) {
    // The length is that of the bytes as they came.
    const told = name === "content-length" ? !encodings : !HOP.test(name);
    if (!told || (encodings && name === "content-encoding")) continue;
    for (const one of Array.isArray(value) ? value : [value]) if (one !== undefined) headers.push([name, one]);
  }
  let bytes: AsyncIterable<Uint8Array> = response.body;
  for (const encoding of encodings ?? []) bytes = decoded(bytes, encoding);
  signal.addEventListener("abort", () => response.body.destroy(), { once: true });
  return {
    value: { status, statusText: phraseOf(response), headers, url: url.href, redirected },
    stream: capped(session, url, bytes),
  };
}

export function headerOf(response: Dispatcher.ResponseData, name: string): string | undefined {
  const value = response.headers[name];
  return Array.isArray(value) ? value[0] : value;
}

/** The reason phrase, where a Response takes it. */
function phraseOf({ statusText = "" }: Dispatcher.ResponseData): string {
  return /^[\t\x20-\x7e\x80-\xff]*$/.test(statusText) ? statusText : "";
}

/** In the order in which they are undone; null where there are none, or one is not known: then the bytes stay as they are. */
function encodingsOf(header: string | undefined): Encoding[] | null {
  const names = (header ?? "").split(",").map((name) => name.trim().toLowerCase());
  return names.length <= MAX_ENCODINGS && names.every(isEncoding) ? names.reverse() : null;
}

type Encoding = keyof typeof decoders;

/** Each is told the first piece. */
const decoders = {
  gzip: () => createGunzip(),
  "x-gzip": () => createGunzip(),
  br: () => createBrotliDecompress(),
  zstd: () => createZstdDecompress(),
  // zlib's form by RFC 9110, and the bare one by what some servers send: the low bits of the first byte tell.
  deflate: (first: Uint8Array) => (((first[0] ?? 0) & 0x0f) === 8 ? createInflate() : createInflateRaw()),
};

function isEncoding(name: string): name is Encoding {
  return Object.hasOwn(decoders, name);
}

/** What goes wrong on either side is thrown where the decoded bytes are read; who stops reading ends the source. An empty body stays one. */
async function* decoded(bytes: AsyncIterable<Uint8Array>, encoding: Encoding): AsyncGenerator<Uint8Array> {
  const pieces = bytes[Symbol.asyncIterator]();
  const { value: first, done } = await pieces.next();
  if (done) return;
  const all = (async function* () {
    yield first;
    yield* { [Symbol.asyncIterator]: () => pieces };
  })();
  yield* pipeline(all, decoders[encoding](first), () => {}) as AsyncIterable<Uint8Array>;
}

async function* capped(session: Session, url: URL, source: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  let size = 0;
  try {
    for await (const piece of metered(session, source)) {
      size += piece.length;
      if (size > MAX_RESPONSE_BYTES)
        throw new MagicError("limit_exceeded", `${url.host} answered with more than ${MAX_RESPONSE_BYTES} bytes`);
      for (let at = 0; at < piece.length; at += PIECE) yield piece.subarray(at, at + PIECE);
    }
  } catch (error) {
    throw explained(error, url);
  }
}
