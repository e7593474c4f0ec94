// AWS's binary event stream (vnd.amazon.eventstream): length-prefixed frames with two CRCs. AWS's codec reads a frame; cutting the bytes
// into frames, and bounding them, is done here.
import { EventStreamCodec } from "@smithy/eventstream-codec";
import { failure, UpstreamError } from "../failure.ts";

export interface Frame {
  /** `event`, `exception` or `error`. */
  readonly messageType: string;
  /** Of the event or the exception. */
  readonly type: string;
  readonly payload: string;
}

const MAX_FRAME = 8 * 1024 * 1024;
/** Prelude, its CRC and the message's CRC. */
const LEAST_FRAME = 16;

const codec = new EventStreamCodec(
  (bytes) => Buffer.from(bytes as Uint8Array).toString("utf8"),
  (text) => Buffer.from(text, "utf8"),
);

export interface FrameReader {
  push(chunk: Buffer): void;
  /** True when the bytes ended between two frames. */
  whole(): boolean;
}

/** Throws UpstreamError for frames that are too large or damaged. */
export function frameReader(take: (frame: Frame) => void): FrameReader {
  let carry: Buffer = Buffer.alloc(0);
  return {
    push(chunk) {
      let bytes: Buffer = carry.length > 0 ? Buffer.concat([carry, chunk]) : chunk;
      while (bytes.length >= 4) {
        const length = bytes.readUInt32BE(0);
        if (length < LEAST_FRAME || length > MAX_FRAME) throw broken(`has a frame of ${length} bytes`);
        if (bytes.length < length) break;
        take(read(bytes.subarray(0, length)));
        bytes = bytes.subarray(length);
      }
      carry = bytes;
    },
    whole: () => carry.length === 0,
  };
}

function read(bytes: Buffer): Frame {
  let message: ReturnType<EventStreamCodec["decode"]>;
  try {
    message = codec.decode(bytes);
  } catch {
    throw broken("has a damaged frame");
  }
  const header = (name: string) => String(message.headers[name]?.value ?? "");
  return {
    messageType: header(":message-type"),
    type: header(":event-type") || header(":exception-type") || header(":error-code"),
    payload: Buffer.from(message.body).toString("utf8") || header(":error-message"),
  };
}

function broken(what: string): UpstreamError {
  return new UpstreamError(failure("protocol", `The provider's stream ${what}.`));
}
