// The broker calls of one invocation, on the daemon's side: each gets an answer, perhaps a stream each way, with credit so that neither side
// holds more than a window of the other's bytes.
import { isMagicError, MagicError } from "#contract/errors.ts";
import { type AnswerMessage, type CallMessage, down, type GuestError, STREAM_WINDOW } from "./frames.ts";

export interface BrokerAnswer {
  readonly value?: unknown;
  /** In its place the value's JSON text, which is not read here: that of a large one takes this thread a tenth of a second. */
  readonly json?: Uint8Array;
  readonly stream?: AsyncIterable<Uint8Array>;
}

/** What the broker offers one invocation; the capabilities were fixed when the cell was loaded. */
export interface BrokerSession {
  call(op: string, args: unknown, body: AsyncIterable<Uint8Array> | null, signal: AbortSignal): Promise<BrokerAnswer>;
}

export interface CallStreams {
  open(message: CallMessage): void;
  chunk(n: number, bytes: Uint8Array): void;
  end(end: { n: number; error?: string }): void;
  credit(n: number, bytes: number): void;
  cancel(n: number): void;
  underWay(): number;
  close(): void;
}

interface Call {
  readonly abort: AbortController;
  readonly body: IncomingBody | null;
  credit: number;
  wake: (() => void) | null;
}

type Send = (type: number, ...parts: (string | Uint8Array)[]) => void;

/** Bytes of request bodies that wait in the daemon, of all calls of one cell. */
export interface Held {
  bytes: number;
}

const MAX_HELD = 64 * 1024 * 1024;
/** Answers up to this size go through also where too much waits: what was done is not told as failed. */
const SMALL = 64 * 1024;

/** `full`: so much waits for the cell that it gets no more of what is large. */
export function openCallStreams(broker: BrokerSession, send: Send, held: Held, full: () => boolean): CallStreams {
  const calls = new Map<number, Call>();
  let closed = false;

  async function serve(call: Call, { n, op, args }: CallMessage): Promise<void> {
    try {
      const answer = await broker.call(op, args, call.body, call.abort.signal);
      if (closed || call.abort.signal.aborted) return;
      const message: AnswerMessage = { n, value: answer.value, stream: answer.stream !== undefined };
      const json = answer.json ?? JSON.stringify(message);
      if (json.length > SMALL) checkRoom();
      if (typeof json === "string") send(down.answer, json);
      else send(down.answer, `{"n":${JSON.stringify(n)},"value":`, json, "}");
      if (answer.stream) await pump(call, n, answer.stream);
    } catch (error) {
      if (!closed) send(down.answer, JSON.stringify({ n, error: toGuest(error) } satisfies AnswerMessage));
    } finally {
      calls.delete(n);
      call.body?.finish("the call is over");
    }
  }

  function checkRoom(): void {
    if (!full()) return;
    const detail =
      "too much of what this controller's calls asked for waits for it: ask for less at once, or let its loop turn";
    throw new MagicError("limit_exceeded", detail);
  }

  async function pump(call: Call, n: number, stream: AsyncIterable<Uint8Array>): Promise<void> {
    const number = Buffer.alloc(4);
    number.writeUInt32LE(n);
    try {
      for await (const bytes of stream) {
        while (call.credit <= 0 && !call.abort.signal.aborted) {
          await new Promise<void>((resolve) => {
            call.wake = resolve;
          });
        }
        if (closed || call.abort.signal.aborted) return;
        checkRoom();
        call.credit -= bytes.length;
        send(down.chunk, number, bytes);
      }
      if (!closed) send(down.end, JSON.stringify({ n }));
    } catch (error) {
      if (!closed) {
        const { message, code } = toGuest(error);
        send(down.end, JSON.stringify({ n, error: message, code }));
      }
    }
  }

  return {
    open(message) {
      if (calls.has(message.n)) throw new Error("a broker call's number was used twice");
      const number = Buffer.alloc(8);
      number.writeUInt32LE(message.n, 0);
      const body =
        message.body === true
          ? incomingBody(held, (bytes) => {
              number.writeUInt32LE(bytes, 4);
              if (!closed) send(down.credit, Buffer.from(number));
            })
          : null;
      const call: Call = { abort: new AbortController(), body, credit: STREAM_WINDOW, wake: null };
      calls.set(message.n, call);
      void serve(call, message);
    },
    chunk: (n, bytes) => calls.get(n)?.body?.push(Buffer.from(bytes)),
    end: ({ n, error }) => calls.get(n)?.body?.finish(error),
    credit(n, bytes) {
      const call = calls.get(n);
      if (!call) return;
      // Whatever the cell says, no more than a window is under way.
      call.credit = Math.min(STREAM_WINDOW, call.credit + bytes);
      call.wake?.();
    },
    cancel(n) {
      const call = calls.get(n);
      call?.abort.abort();
      call?.wake?.();
      call?.body?.finish("canceled");
    },
    underWay: () => calls.size,
    close() {
      closed = true;
      for (const [, call] of calls) {
        call.abort.abort();
        call.wake?.();
        call.body?.finish("the invocation has ended");
      }
    },
  };
}

interface IncomingBody extends AsyncIterable<Uint8Array> {
  push(bytes: Buffer): void;
  finish(error?: string): void;
}

/** The bytes that the cell sends along with a call. Throws where it sends more than it was allowed. */
function incomingBody(cell: Held, more: (bytes: number) => void): IncomingBody {
  const queue: Buffer[] = [];
  let held = 0;
  const hold = (bytes: number): void => {
    held += bytes;
    cell.bytes += bytes;
  };
  let ended = false;
  let failed: string | undefined;
  let wake: (() => void) | null = null;
  return {
    push(bytes) {
      if (ended) return;
      hold(bytes.length);
      queue.push(bytes);
      if (held > STREAM_WINDOW * 2) throw new Error("a body that ignores its credit");
      if (cell.bytes > MAX_HELD) throw new Error(`more than ${MAX_HELD} bytes of request bodies under way`);
      wake?.();
    },
    finish(error) {
      ended = true;
      failed ??= error;
      if (error !== undefined) {
        // Nobody reads it any more.
        queue.length = 0;
        hold(-held);
      }
      wake?.();
    },
    async *[Symbol.asyncIterator]() {
      for (;;) {
        const bytes = queue.shift();
        if (bytes) {
          hold(-bytes.length);
          yield bytes;
          more(bytes.length);
        } else if (ended) {
          if (failed !== undefined) throw new MagicError("invalid_request", `the request's body broke off: ${failed}`);
          return;
        } else
          await new Promise<void>((resolve) => {
            wake = resolve;
          });
      }
    },
  };
}

/** The error as a handler may see it: ours with its code, others by their message alone. */
function toGuest(error: unknown): GuestError {
  if (isMagicError(error)) {
    const { status, add } = error.extra;
    return {
      ...{ name: "HandlerError", message: error.message, code: error.code },
      ...(typeof status === "number" && { status }),
      ...(typeof add === "string" && { add }),
    };
  }
  return { name: "HandlerError", message: (error as Error)?.message ?? "failed", code: "upstream_error" };
}
