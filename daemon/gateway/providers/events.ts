// Server-sent events of translated providers: bytes in (split anywhere, in the middle of a character too), JSON objects out.
import { createParser } from "eventsource-parser";
import { parseExact } from "#daemon/gateway/format/exact-json.ts";
import { isJson } from "#shared/json-text.ts";
import { brokenStream } from "./failure.ts";

export const MAX_EVENT = 8 * 1024 * 1024;

export type Event = Readonly<Record<string, unknown>>;

export interface EventReader {
  /** Throws UpstreamError for events that are no JSON objects or too large. */
  push(chunk: Buffer): void;
  /** The bytes are over: a last event without its blank line counts if it is whole. */
  end(): void;
}

export function jsonEvents(take: (event: Event) => void): EventReader {
  const decoder = new TextDecoder();
  let pending = 0;
  let over = false;
  const parser = createParser({
    onEvent: ({ data }) => {
      pending = 0;
      if (data.trim() === "" || data === "[DONE]" || (over && !isJson(data))) return;
      take(jsonEvent(data));
    },
    onComment: () => {
      pending = 0;
    },
  });
  return {
    push(chunk) {
      pending += chunk.length;
      if (pending > MAX_EVENT) {
        throw brokenStream(`An event of the provider's stream is larger than ${MAX_EVENT} bytes.`);
      }
      parser.feed(decoder.decode(chunk, { stream: true }));
    },
    end() {
      over = true;
      parser.feed("\n\n");
    },
  };
}

/** One event's JSON object. */
export function jsonEvent(data: string): Event {
  let event: unknown;
  try {
    event = parseExact(data);
  } catch {
    throw brokenStream("An event of the provider's stream is not valid JSON.");
  }
  if (typeof event !== "object" || event === null || Array.isArray(event)) {
    throw brokenStream("An event of the provider's stream is no JSON object.");
  }
  return event as Event;
}
