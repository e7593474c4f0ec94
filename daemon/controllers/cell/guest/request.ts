// The request object that a handler gets. It only asks: whether a power is granted is decided by the daemon, by the channel.
import { MAX_DIMENSIONS } from "#contract/runtime-limits.ts";
import { logAllowance, MAX_PAYLOAD, up } from "../frames.ts";
import type { Channel } from "./channel.ts";
import { failureOf, fromThrown, toError } from "./errors.ts";
import { brokeredFetch } from "./fetch.ts";
import {
  type Answer,
  askBroker,
  currentInvocation,
  type Invocation,
  openStorage,
  ownedBy,
  ownerOf,
  signalOf,
} from "./invocation.ts";
import {
  bufferOver,
  byteLength,
  defineProperty,
  ErrorOf,
  mapOf,
  now,
  parseJson,
  StringOf,
  stringifyJson,
  utf8Slice,
} from "./primordials.ts";
import type { IncomingStream } from "./streams.ts";

/** Module constants of the cell, told at load. */
export interface Identity {
  readonly name: string;
  readonly version: string;
}

export function makeRequest(invocation: Invocation, controller: Identity, log: Log): object {
  const { message } = invocation;
  const request = {
    input: message.input,
    id: message.id,
    controller,
    environment: message.environment,
    deadline: message.deadline,
    llm: {
      chat: async (body: { stream?: boolean; signal?: AbortSignal }) => {
        const { signal, ...rest } = body ?? {};
        const answer = await ask(invocation, "llm.chat", { ...rest }, signal);
        return answer.stream ? chunksOf(answer.stream) : answer.value;
      },
    },
    fetch: (input: string | URL | Request, init?: RequestInit) => brokeredFetch(invocation, input, init),
    db: {
      query: async (database: unknown, sql: unknown, params?: unknown) =>
        (await ask(invocation, "db.query", { database, sql, params: parameters(params), inside: inside.getStore() }))
          .value,
      transaction: (database: unknown, work: (tx: object) => unknown) => transaction(invocation, database, work),
    },
    secrets: { get: async (name: unknown) => (await ask(invocation, "secrets.get", { name })).value },
    kv: {
      get: async (key: unknown) => {
        const text = (await ask(invocation, "kv.get", { key })).value;
        return typeof text === "string" ? parseJson(text) : null;
      },
      set: async (key: unknown, value: unknown, options?: { ttl_s?: number }) => {
        const text = stringifyJson(value);
        if (text === undefined)
          throw toError({ name: "TypeError", message: "kv.set: the value is not JSON", code: "invalid_request" });
        // `60` or `{ ttl: 60 }` would be a key that stays for ever.
        if (typeof (options ?? {}) !== "object" || Object.keys(options ?? {}).some((name) => name !== "ttl_s"))
          throw toError({ name: "TypeError", message: "kv.set: its options are { ttl_s }", code: "invalid_request" });
        // As text where it is no finite number: JSON would make null of it, and the key would stay for ever.
        const ttl = options?.ttl_s;
        const ttl_s = typeof ttl === "number" && !Number.isFinite(ttl) ? StringOf(ttl) : ttl;
        await ask(invocation, "kv.set", { key, value: text, ttl_s });
      },
      delete: async (key: unknown) => {
        await ask(invocation, "kv.delete", { key });
      },
    },
    controllers: {
      invoke: async (name: unknown, input: unknown) =>
        (await ask(invocation, "controllers.invoke", { name, input })).value,
    },
    syncs: { trigger: async (id: unknown) => (await ask(invocation, "syncs.trigger", { id })).value },
    log: {
      debug: (text: unknown, fields?: unknown) => log(invocation, "debug", text, fields),
      info: (text: unknown, fields?: unknown) => log(invocation, "info", text, fields),
      warn: (text: unknown, fields?: unknown) => log(invocation, "warn", text, fields),
      error: (text: unknown, fields?: unknown) => log(invocation, "error", text, fields),
    },
  };
  return defineProperty(ownedBy(invocation, request), "signal", lazySignal);
}

// One getter for all requests. A getter of its own would give every request a hidden class of its own, which lives in old memory, names the
// getter, and so keeps the whole call alive until the next full collection.
const lazySignal: PropertyDescriptor = {
  get(this: object) {
    const invocation = ownerOf(this) ?? currentInvocation();
    return invocation && signalOf(invocation);
  },
  enumerable: true,
  configurable: true,
};

/** The global `fetch`: the one of the invocation whose code runs. */
export async function globalFetch(input: string | URL | Request, init?: RequestInit): Promise<Response> {
  return brokeredFetch(currentInvocation(), input, init);
}

/** Writes the lines of calls, and those of none; of a call that has ended they are the latter, and come with its request's id. */
export function openLog(channel: Channel, session: Uint8Array) {
  const { bytes: most, windowMs } = logAllowance.session;
  let bytes = 0;
  let ends = 0;
  return (invocation: Invocation | undefined, level: string, text: unknown, fields?: unknown): void => {
    if (invocation && !invocation.over) {
      if (invocation.logged > logAllowance.invocation.bytes) return;
      const frame = logText(level, text, fields);
      invocation.logged += byteLength(frame);
      channel.sendText(up.log, invocation.id, invocation.secret, frame);
      return;
    }
    const at = now();
    if (at > ends) {
      ends = at + windowMs;
      bytes = 0;
    }
    if (bytes > most) return;
    const frame = logText(level, text, fields, invocation?.message.id);
    bytes += byteLength(frame);
    channel.sendText(up.log, 0, session, frame);
  };
}

export type Log = ReturnType<typeof openLog>;

/** A log line as JSON; fields that are not JSON are named instead of losing the line, as is one that no frame holds. */
function logText(level: string, text: unknown, fields: unknown, requestId?: string): string {
  const message = typeof text === "string" ? text : StringOf(text);
  // The message is its first line alone: where it came from is among the fields.
  const error = text instanceof ErrorOf ? text : undefined;
  const plain = fields === undefined && error === undefined;
  const line = lineText({ level, message, error, fields, requestId }, plain ? undefined : readable());
  const bytes = byteLength(line);
  return bytes <= MAX_PAYLOAD
    ? line
    : lineText({ level: "warn", message: `log limit exceeded: a line of ${bytes} bytes; it is dropped`, requestId });
}

interface Line {
  readonly level: string;
  readonly message: string;
  readonly error?: Error | undefined;
  readonly fields?: unknown;
  readonly requestId: string | undefined;
}

/** What is no map of fields (another error, a text) is one by itself. */
function besides(fields: unknown): object {
  return typeof fields === "object" && !(fields instanceof ErrorOf) ? { ...fields } : { fields };
}

function lineText(line: Line, said?: ReturnType<typeof readable>): string {
  const { level, message, error, fields, requestId } = line;
  try {
    const all = error === undefined ? fields : { error, ...besides(fields) };
    return stringifyJson({ level, message, fields: all, requestId }, said) ?? "";
  } catch (thrown) {
    // What nests by the thousand is written in the plain way alone: the daemon says of it that it does.
    if (said) return lineText(line);
    const unreadable = { fields_unreadable: fromThrown(thrown).message };
    return stringifyJson({ level, message, fields: unreadable, requestId }) ?? "";
  }
}

/** Of an error JSON has what was added to it alone, and of a bigint nothing: those among the fields are said. */
function readable(): (key: string, value: unknown) => unknown {
  const said = mapOf<object, object>();
  return (_key, value) => {
    if (typeof value === "bigint") return StringOf(value);
    if (!(value instanceof ErrorOf)) return value;
    // Each once: one that leads back to itself is found to be circular.
    const data = said.get(value) ?? { ...fromThrown(value), ...value };
    said.set(value, data);
    return data;
  };
}

async function ask(invocation: Invocation, op: string, args: unknown, signal?: AbortSignal): Promise<Answer> {
  const answer = await askBroker(invocation, op, args, signal ? { signal } : undefined);
  if (answer.error) throw failureOf(answer.error, signal);
  return answer;
}

async function* chunksOf(stream: IncomingStream): AsyncGenerator<unknown> {
  try {
    for (;;) {
      const bytes = await stream.read();
      if (bytes === null) return;
      yield parseJson(utf8Slice(bufferOver(bytes.buffer, 0, bytes.length), 0, bytes.length));
    }
  } finally {
    stream.cancel();
  }
}

/** The number of the transaction whose code runs: what is asked for there may wait for what it holds. */
const inside = openStorage<unknown>();

async function transaction(invocation: Invocation, database: unknown, work: (tx: object) => unknown): Promise<unknown> {
  const opened = await ask(invocation, "db.begin", { database, inside: inside.getStore() });
  const tx = opened.value;
  const query = async (sql: unknown, params?: unknown): Promise<unknown> =>
    (await ask(invocation, "db.query", { database, sql, params: parameters(params), tx })).value;
  let result: unknown;
  try {
    result = await inside.run(tx, () => work({ query }));
  } catch (thrown) {
    await askBroker(invocation, "db.rollback", { tx });
    throw thrown;
  }
  await ask(invocation, "db.commit", { tx });
  return result;
}

function parameters(params: unknown): unknown {
  if (params === undefined) return [];
  return Array.isArray(params) ? params.map((value: unknown) => parameter(value, 0)) : params;
}

/** As JSON can carry it: bigint as text, dates marked as RFC 3339, bytes as base64, what looks like a mark as itself; so are a list's members. */
function parameter(value: unknown, dimensions: number): unknown {
  if (typeof value === "bigint") return value.toString();
  if (value instanceof ArrayBuffer) return { $bytes: Buffer.from(value).toString("base64") };
  if (ArrayBuffer.isView(value))
    return { $bytes: Buffer.from(value.buffer, value.byteOffset, value.byteLength).toString("base64") };
  // JSON would make null of it, and the database would keep that.
  const lost = typeof value === "function" || typeof value === "symbol";
  if (lost || ((typeof value === "number" || value instanceof Date) && !Number.isFinite(+value)))
    throw toError({
      name: "HandlerError",
      message: `params: ${StringOf(value)} cannot be sent`,
      code: "invalid_request",
    });
  if (value instanceof Date) return { $time: value.toISOString() };
  if (Array.isArray(value) && dimensions < MAX_DIMENSIONS)
    return value.map((member: unknown) => parameter(member, dimensions + 1));
  const isMark =
    typeof value === "object" && value !== null && ("$time" in value || "$bytes" in value || "$json" in value);
  return isMark ? { $json: value } : value;
}
