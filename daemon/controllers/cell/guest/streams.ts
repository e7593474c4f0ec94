// Bytes that the daemon streams into the cell, with credit: the daemon sends no more than the window until the reader asks.
import { STREAM_WINDOW } from "../frames.ts";
import { toError } from "./errors.ts";
import { PromiseOf, ReadableStreamOf } from "./primordials.ts";

export interface IncomingStream {
  push(bytes: Uint8Array): void;
  finish(): void;
  fail(reason: string, code?: string): void;
  /** What reads it gets what the signal was aborted with, as from any other `fetch`. */
  abort(reason: unknown): void;
  /** The next bytes, or null at the end; throws where the stream failed. */
  read(): Promise<Uint8Array | null>;
  cancel(): void;
}

interface Node {
  readonly bytes: Uint8Array;
  next: Node | null;
}

export function openIncoming(host: { more(bytes: number): void; cancel(): void }): IncomingStream {
  let head: Node | null = null;
  let tail: Node | null = null;
  let ended = false;
  /** Makes the error where it is read, so that its stack names the handler's line. */
  let failed: (() => unknown) | null = null;
  let wake: (() => void) | null = null;
  let consumed = 0;

  function signal(): void {
    const waiting = wake;
    wake = null;
    waiting?.();
  }

  return {
    push(bytes) {
      const node: Node = { bytes, next: null };
      if (tail) tail.next = node;
      else head = node;
      tail = node;
      signal();
    },
    finish() {
      ended = true;
      signal();
    },
    fail(message, code = "upstream_error") {
      failed ??= () => toError({ name: "HandlerError", message, code });
      signal();
    },
    abort(reason) {
      failed ??= () => reason;
      signal();
    },
    async read() {
      while (head === null && !ended && failed === null) {
        await new PromiseOf<void>((resolve) => {
          wake = resolve;
        });
      }
      if (head === null) {
        if (failed !== null) throw failed();
        return null;
      }
      const { bytes } = head;
      head = head.next;
      if (head === null) tail = null;
      consumed += bytes.length;
      if (consumed >= STREAM_WINDOW / 2 && !ended) {
        host.more(consumed);
        consumed = 0;
      }
      return bytes;
    },
    cancel() {
      if (!ended && failed === null) host.cancel();
      ended = true;
      head = null;
    },
  };
}

interface ByteController {
  close(): void;
  enqueue(bytes: Uint8Array): void;
  readonly byobRequest: { respond(bytes: number): void } | null;
}

/** The stream as the web sees it, for `new Response(...)`. */
export function toReadable(incoming: IncomingStream): ReadableStream<Uint8Array> {
  return new ReadableStreamOf(
    {
      type: "bytes",
      async pull(controller: ByteController) {
        const bytes = await incoming.read();
        if (bytes === null) {
          controller.close();
          controller.byobRequest?.respond(0);
        } else if (bytes.length > 0) controller.enqueue(bytes);
      },
      cancel() {
        incoming.cancel();
      },
    } as never,
    { highWaterMark: 0 },
  ) as ReadableStream<Uint8Array>;
}
