// Bedrock's binary event stream, framed by AWS's own codec.
import { EventStreamCodec } from "@smithy/eventstream-codec";

const codec = new EventStreamCodec(
  (bytes) => Buffer.from(bytes as Uint8Array).toString("utf8"),
  (text) => Buffer.from(text, "utf8"),
);

/** One frame: `:message-type` is `event` or `exception`. */
export function frame(type: string, payload: string, messageType: "event" | "exception" = "event"): Buffer {
  const name = messageType === "event" ? ":event-type" : ":exception-type";
  return Buffer.from(
    codec.encode({
      headers: {
        [name]: { type: "string", value: type },
        ":content-type": { type: "string", value: "application/json" },
        ":message-type": { type: "string", value: messageType },
      },
      body: Buffer.from(payload, "utf8"),
    }),
  );
}

/** Recorded lines `{"eventType": {...}}` as frames. */
export function eventStreamBytes(lines: readonly string[]): Buffer {
  return Buffer.concat(
    lines.map((line) => {
      const [type, payload] = Object.entries(JSON.parse(line) as Record<string, unknown>)[0] ?? ["unknown", {}];
      return frame(type, JSON.stringify(payload));
    }),
  );
}
