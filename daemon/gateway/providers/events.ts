// Server-sent events of translated providers: bytes in (split anywhere, in the middle of a character too), JSON objects out.
import { createParser } from "eventsource-parser";
import { failure, UpstreamError } from "./failure.ts";

const MAX_EVENT = 8 * 1024 * 1024;

export type Event = Readonly<Record<string, unknown>>;

/** Returns the function that takes bytes. Throws UpstreamError for events that are no JSON objects or too large. */
export function jsonEvents(take: (event: Event) => void): (chunk: Buffer) => void {
  const decoder = new TextDecoder();
  let pending = 0;
  const parser = createParser({
    onEvent: ({ data }) => {
      pending = 0;
      if (data.trim() === "" || data === "[DONE]") return;
      take(jsonEvent(data));
    },
    onComment: () => {
      pending = 0;
    },
  });
  return (chunk) => {
    pending += chunk.length;
    if (pending > MAX_EVENT) {
      throw new UpstreamError(
        failure("protocol", `An event of the provider's stream is larger than ${MAX_EVENT} bytes.`),
      );
    }
    parser.feed(decoder.decode(chunk, { stream: true }));
  };
}

/** One event's JSON object. */
export function jsonEvent(data: string): Event {
  let event: unknown;
  try {
    event = JSON.parse(data);
  } catch {
    throw new UpstreamError(failure("protocol", "An event of the provider's stream is not valid JSON."));
  }
  if (typeof event !== "object" || event === null || Array.isArray(event)) {
    throw new UpstreamError(failure("protocol", "An event of the provider's stream is no JSON object."));
  }
  return event as Event;
}

/** Members of untrusted JSON: the object, or an empty one. */
export function fields(value: unknown): Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Record<string, unknown>) : {};
}

export function string(value: unknown): string {
  return typeof value === "string" ? value : "";
}

export function list(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}
