// One running invocation inside the cell: its secret, its broker calls, its end.
import { AsyncLocalStorage } from "node:async_hooks";
import type { AnswerMessage, GuestError, InvokeMessage } from "../frames.ts";
import { MAX_PAYLOAD, SECRET, up } from "../frames.ts";
import type { Channel } from "./channel.ts";
import { readU32, writeU32 } from "./channel.ts";
import { toError } from "./errors.ts";
import {
  AbortControllerOf,
  byteLength,
  bytesSet,
  PromiseOf,
  parseJson,
  stringifyJson,
  table,
  Uint8ArrayOf,
  utf8Slice,
} from "./primordials.ts";
import { type IncomingStream, openIncoming } from "./streams.ts";

export interface Invocation {
  readonly id: number;
  readonly secret: Uint8Array;
  readonly message: InvokeMessage;
  readonly channel: Channel;
  /** By number; null until the first broker call. */
  calls: Record<number, PendingCall> | null;
  nextCall: number;
  /** Null until the first call of their kind. */
  lane: Lane | null;
  transactionLane: Lane | null;
  abort: AbortController | null;
  abortReason: string | null;
  /** Bytes of log lines so far. */
  logged: number;
  over: boolean;
}

/** Calls that wait for each other, and for no others. */
interface Lane {
  readonly most: number;
  underWay: number;
  /** Those that wait for others to end, by their place in the queue. */
  readonly waiting: Record<number, () => void>;
  lastWaiting: number;
  nextWaiting: number;
}

interface PendingCall {
  readonly resolve: (answer: Answer) => void;
  readonly lane: Lane;
  incoming: IncomingStream | null;
  /** Told when the daemon is ready for more bytes of the call's body. */
  onCredit: ((bytes: number) => void) | null;
  /** Told when nobody takes the body any more. */
  onOver: ((reason: unknown) => void) | null;
  /** What must not be collected while the call is under way. */
  readonly keep: unknown;
}

export interface Answer {
  readonly value: unknown;
  readonly error: GuestError | undefined;
  readonly stream: IncomingStream | null;
}

/** With methods of its own, because run() calls this.enterWith(): a handler's patch of the prototype must not be what it finds. */
export function openStorage<T>(): AsyncLocalStorage<T> {
  const storage = new AsyncLocalStorage<T>();
  for (const name of ["run", "getStore", "enterWith", "exit", "disable"] as const)
    Object.defineProperty(storage, name, { value: AsyncLocalStorage.prototype[name] });
  return Object.freeze(storage);
}

class Given {
  constructor(object: object) {
    // biome-ignore lint/correctness/noConstructorReturn: the private field below is put on this object
    return object;
  }
}

/** Whose an object is, where no handler can look it up or change it. */
class Owned extends Given {
  readonly #invocation: Invocation;
  constructor(object: object, invocation: Invocation) {
    super(object);
    this.#invocation = invocation;
  }
  static invocationOf(object: object): Invocation | undefined {
    return #invocation in object ? object.#invocation : undefined;
  }
}

export function ownedBy<T extends object>(invocation: Invocation, object: T): T {
  new Owned(object, invocation);
  return object;
}

export function ownerOf(object: object): Invocation | undefined {
  return Owned.invocationOf(object);
}

// What a storage holds can be read off every timer of its call, by neighbours too: it is an object that says nothing.
const storage = openStorage<object>();

/** The invocation whose code runs now; undefined at module level. */
export function currentInvocation(): Invocation | undefined {
  const running = storage.getStore();
  return running && ownerOf(running);
}

export function withInvocation<R>(invocation: Invocation, work: () => R): R {
  return storage.run(ownedBy(invocation, table()), work);
}

export function newInvocation(id: number, channel: Channel, memory: Buffer, start: number, end: number): Invocation {
  const secret = new Uint8ArrayOf(SECRET);
  for (let n = 0; n < SECRET; n++) secret[n] = memory[start + n] as number;
  const message = parseJson(utf8Slice(memory, start + SECRET, end)) as InvokeMessage;
  return {
    id,
    secret,
    message,
    channel,
    calls: null,
    nextCall: 1,
    lane: null,
    transactionLane: null,
    abort: null,
    abortReason: null,
    logged: 0,
    over: false,
  };
}

/** `request.signal`: made when first asked for, most handlers never do. */
export function signalOf(invocation: Invocation): AbortSignal {
  invocation.abort ??= new AbortControllerOf();
  if (invocation.abortReason !== null && !invocation.abort.signal.aborted) abortNow(invocation);
  return invocation.abort.signal;
}

export function abortInvocation(invocation: Invocation, reason: string): void {
  invocation.abortReason = reason;
  if (invocation.abort) abortNow(invocation);
}

function abortNow(invocation: Invocation): void {
  const error = toError({
    name: "AbortError",
    message: `the invocation ended: ${invocation.abortReason}`,
    code: "timeout",
  });
  invocation.abort?.abort(error);
}

export interface CallOptions {
  /** The bytes that go along with the call; pumped after it was sent. */
  readonly body?: (send: BodySender) => void;
  readonly signal?: AbortSignal | undefined;
  /** Owners of the signal: a Request's follows another only as long as somebody holds the Request. */
  readonly keep?: unknown;
}

export interface BodySender {
  chunk(bytes: Uint8Array): void;
  end(error?: string): void;
  onCredit(listener: (bytes: number) => void): void;
  onOver(listener: (reason: unknown) => void): void;
}

/** Of one invocation, at the same time; answers whose bodies are not read to their end count. The daemon has places beyond these. */
const MOST_UNDER_WAY = 256;

/** What an open transaction does goes past calls that may wait for its very session. */
const MOST_OF_TRANSACTIONS = 32;

/** A call that is ready to be sent. */
interface Asked {
  readonly lane: Lane;
  readonly n: number;
  readonly text: string;
  readonly resolve: (answer: Answer) => void;
  readonly options: CallOptions | undefined;
}

const ABORTED: Answer = {
  value: undefined,
  error: { name: "AbortError", message: "aborted", code: "aborted" },
  stream: null,
};

/** Asks the daemon for something on the invocation's behalf. Never throws: the answer says what went wrong. */
export function askBroker(invocation: Invocation, op: string, args: unknown, options?: CallOptions): Promise<Answer> {
  return new PromiseOf<Answer>((resolve) => {
    if (invocation.over) {
      resolve(failure("handler_error", `${op} was called after the invocation had ended`));
      return;
    }
    const n = invocation.nextCall++;
    // Before it waits: the handler may change the arguments.
    const text = stringifyJson({ n, op, args, body: options?.body !== undefined });
    if (text === undefined) {
      resolve(failure("invalid_request", `${op}: the arguments are not JSON`));
      return;
    }
    if (byteLength(text) > MAX_PAYLOAD) {
      resolve(failure("limit_exceeded", `${op}: the arguments have more than ${MAX_PAYLOAD} bytes`));
      return;
    }
    if (options?.signal?.aborted) {
      resolve(ABORTED);
      return;
    }
    const lane = laneOf(invocation, op, args);
    const asked = { lane, n, text, resolve, options };
    if (lane.underWay < lane.most) begin(invocation, asked);
    else wait(invocation, asked);
  });
}

function laneOf(invocation: Invocation, op: string, args: unknown): Lane {
  const ofTransaction =
    op === "db.commit" || op === "db.rollback" || (op === "db.query" && (args as { tx?: unknown }).tx !== undefined);
  if (ofTransaction) {
    invocation.transactionLane ??= newLane(MOST_OF_TRANSACTIONS);
    return invocation.transactionLane;
  }
  invocation.lane ??= newLane(MOST_UNDER_WAY);
  return invocation.lane;
}

function newLane(most: number): Lane {
  return { most, underWay: 0, waiting: table(), lastWaiting: 0, nextWaiting: 1 };
}

function wait(invocation: Invocation, asked: Asked): void {
  const { lane, resolve, options } = asked;
  const place = ++lane.lastWaiting;
  const leave = (): void => {
    delete lane.waiting[place];
    resolve(ABORTED);
    letGo(options, options?.signal?.reason);
  };
  options?.signal?.addEventListener("abort", leave, { once: true });
  lane.waiting[place] = () => {
    options?.signal?.removeEventListener("abort", leave);
    if (!invocation.over) begin(invocation, asked);
    else {
      resolve(failure("handler_error", "the invocation has ended"));
      letGo(options);
    }
  };
}

/** The body of a call that never began is not read, and its source is told. */
function letGo(options: CallOptions | undefined, reason?: unknown): void {
  options?.body?.({ chunk() {}, end() {}, onCredit() {}, onOver: (listener) => listener(reason) });
}

function begin(invocation: Invocation, { lane, n, text, resolve, options }: Asked): void {
  const call: PendingCall = { resolve, lane, incoming: null, onCredit: null, onOver: null, keep: options?.keep };
  invocation.calls ??= table();
  invocation.calls[n] = call;
  lane.underWay++;
  invocation.channel.sendText(up.call, invocation.id, invocation.secret, text);
  if (options?.signal) cancelWith(options.signal, invocation, n);
  options?.body?.({
    chunk: (bytes) => invocation.channel.sendBytes(up.chunk, invocation.id, invocation.secret, n, bytes),
    end: (error) =>
      invocation.channel.sendText(
        up.end,
        invocation.id,
        invocation.secret,
        stringifyJson(error === undefined ? { n } : { n, error }) ?? "",
      ),
    onCredit: (listener) => {
      call.onCredit = listener;
    },
    onOver: (listener) => {
      call.onOver = listener;
    },
  });
}

function failure(code: string, message: string): Answer {
  return { value: undefined, error: { name: "HandlerError", message, code }, stream: null };
}

function cancelWith(signal: AbortSignal, invocation: Invocation, n: number): void {
  const cancel = (): void => {
    const call = take(invocation, n, signal.reason);
    if (!call) return;
    sendNumbers(invocation, up.cancel, n, 0);
    call.incoming?.abort(signal.reason);
    call.resolve(ABORTED);
  };
  signal.addEventListener("abort", cancel, { once: true });
}

function sendNumbers(invocation: Invocation, type: number, n: number, value: number): void {
  const bytes = new Uint8ArrayOf(4);
  writeU32(bytes, 0, value);
  if (!invocation.over) invocation.channel.sendBytes(type, invocation.id, invocation.secret, n, bytes);
}

function take(invocation: Invocation, n: number, reason?: unknown): PendingCall | undefined {
  const call = invocation.calls?.[n];
  if (!call) return undefined;
  delete invocation.calls?.[n];
  call.lane.underWay--;
  call.onOver?.(reason);
  startNext(call.lane);
  return call;
}

/** One that was aborted meanwhile takes no place. */
function startNext(lane: Lane): void {
  while (lane.nextWaiting <= lane.lastWaiting && lane.underWay < lane.most) {
    const start = lane.waiting[lane.nextWaiting];
    delete lane.waiting[lane.nextWaiting++];
    start?.();
  }
}

export function onAnswer(invocation: Invocation, answer: AnswerMessage): void {
  const call = invocation.calls?.[answer.n];
  if (!call) return;
  if (answer.stream === true) {
    call.incoming = openIncoming({
      more: (bytes) => sendNumbers(invocation, up.credit, answer.n, bytes),
      cancel: () => {
        take(invocation, answer.n);
        sendNumbers(invocation, up.cancel, answer.n, 0);
      },
    });
  } else take(invocation, answer.n);
  call.resolve({ value: answer.value, error: answer.error, stream: call.incoming });
}

export function onChunk(invocation: Invocation, memory: Buffer, start: number, end: number): void {
  const call = invocation.calls?.[readU32(memory, start)];
  if (!call?.incoming) return;
  // A copy: the memory around it holds other invocations' frames.
  const bytes = new Uint8ArrayOf(end - start - 4);
  bytesSet(bytes, new Uint8ArrayOf(memory.buffer, memory.byteOffset + start + 4, end - start - 4));
  call.incoming.push(bytes);
}

export interface StreamEnd {
  readonly n: number;
  readonly error?: string;
  readonly code?: string;
}

export function onStreamEnd(invocation: Invocation, end: StreamEnd): void {
  const call = take(invocation, end.n);
  if (!call) return;
  if (end.error === undefined) call.incoming?.finish();
  else call.incoming?.fail(end.error, end.code);
}

export function onCredit(invocation: Invocation, n: number, bytes: number): void {
  invocation.calls?.[n]?.onCredit?.(bytes);
}

/** After it, nothing of this invocation reaches the daemon; what still waits is told. */
export function endInvocation(invocation: Invocation): void {
  invocation.over = true;
  if (invocation.calls === null) return;
  for (const n in invocation.calls) {
    const call = take(invocation, +n);
    call?.incoming?.fail("the invocation has ended");
    call?.resolve(failure("handler_error", "the invocation has ended"));
  }
}
