// The body of a request: a small one that the handler has whole is collected first, so that it goes with its length and can be sent again
// after a redirect; others are streamed.
import { MagicError } from "#contract/errors.ts";
import type { Session } from "../session.ts";

/** A handler may have hundreds under way; larger ones go out as they come, with the length that the cell counted. */
const COLLECTED = 64 * 1024;
const MAX_INVOCATION_BYTES = 256 * 1024 * 1024;

export interface OutgoingBody {
  /** Bytes; null where they are not known beforehand. */
  readonly length: number | null;
  readonly replayable: boolean;
  take(): Buffer | AsyncIterable<Uint8Array>;
}

export interface BodyHints {
  /** The handler has the body already: it waits for nothing that it would read meanwhile. */
  readonly whole: boolean;
  /** Its bytes, as the cell counts them; undici refuses a body of another length. */
  readonly length: unknown;
}

export async function openOutgoing(
  session: Session,
  source: AsyncIterable<Uint8Array>,
  { whole, length }: BodyHints,
): Promise<OutgoingBody> {
  const counted = metered(session, source);
  if (!whole) return { length: null, replayable: false, take: () => counted };
  const pieces: Uint8Array[] = [];
  let size = 0;
  for (;;) {
    const { value, done } = await counted.next();
    if (done) return collected(Buffer.concat(pieces));
    pieces.push(value);
    size += value.length;
    if (size > COLLECTED) break;
  }
  const known = typeof length === "number" && Number.isSafeInteger(length) && length >= size ? length : null;
  return { length: known, replayable: false, take: () => chained(pieces, counted) };
}

function collected(bytes: Buffer): OutgoingBody {
  return { length: bytes.length, replayable: true, take: () => bytes };
}

async function* chained(pieces: Uint8Array[], rest: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  yield* pieces.splice(0);
  yield* rest;
}

/** The bytes, counted against the invocation's share. */
export async function* metered(session: Session, bytes: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  for await (const piece of bytes) {
    session.usage.http_bytes += piece.length;
    if (session.usage.http_bytes > MAX_INVOCATION_BYTES)
      throw new MagicError("limit_exceeded", `more than ${MAX_INVOCATION_BYTES} bytes of http in one invocation`);
    yield piece;
  }
}
