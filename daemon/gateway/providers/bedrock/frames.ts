// AWS's binary event stream (vnd.amazon.eventstream): length-prefixed frames with two CRCs. AWS's codec reads a frame; cutting the bytes
// into frames, and bounding them, is done here.
import { EventStreamCodec } from "@smithy/eventstream-codec";
import { brokenStream } from "../failure.ts";

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
/** What has to be there to know how long a frame is. */
const LENGTH_FIELD = 4;

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
  /** Of a frame that is not whole yet; joined when it is, since each joining costs as much as all of it. */
  let pieces: Buffer[] = [];
  let had = 0;
  let needed = LENGTH_FIELD;
  return {
    push(chunk) {
      pieces.push(chunk);
      had += chunk.length;
      if (had < needed) return;
      let bytes: Buffer = pieces.length > 1 ? Buffer.concat(pieces) : chunk;
      needed = LENGTH_FIELD;
      while (bytes.length >= LENGTH_FIELD) {
        const length = bytes.readUInt32BE(0);
        if (length < LEAST_FRAME || length > MAX_FRAME)
          throw brokenStream(`The provider's stream has a frame of ${length} bytes.`);
        if (bytes.length < length) {
          needed = length;
          break;
        }
        take(read(bytes.subarray(0, length)));
        bytes = bytes.subarray(length);
      }
      pieces = bytes.length > 0 ? [bytes] : [];
      had = bytes.length;
    },
    whole: () => had === 0,
  };
}

function read(bytes: Buffer): Frame {
  let message: ReturnType<EventStreamCodec["decode"]>;
  try {
    message = codec.decode(bytes);
  } catch {
    throw brokenStream("The provider's stream has a damaged frame.");
  }
  const header = (name: string) => String(message.headers[name]?.value ?? "");
  return {
    messageType: header(":message-type"),
    type: header(":event-type") || header(":exception-type") || header(":error-code"),
    payload: Buffer.from(message.body).toString("utf8") || header(":error-message"),
  };
}
