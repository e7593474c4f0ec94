// The wire between the daemon and a cell, over the socket that is the cell's descriptor 3. Both sides import this file.
//
//   frame = length of payload (u32 LE) | type (u8) | invocation id (u32 LE) | payload
//
// Every frame from the cell begins its payload with the 16 bytes of a secret: the invocation's, which came in its invoke frame, or the
// session's, which came in the load frame. A frame that a handler writes to the descriptor itself lacks another invocation's secret, and
// ends the cell. Numbers inside payloads are little-endian too.

export const HEADER = 9;
export const SECRET = 16;

/** From the daemon. */
export const down = {
  /** session secret | u32 length of the options | options JSON | code */
  load: 1,
  /** call secret | JSON of InvokeMessage */
  invoke: 2,
  /** JSON { reason } */
  abort: 3,
  ping: 4,
  /** JSON of AnswerMessage */
  answer: 5,
  /** u32 number of the broker call | bytes */
  chunk: 6,
  /** JSON { n, error? } */
  end: 7,
  /** u32 number of the broker call | u32 bytes that may follow */
  credit: 8,
} as const;

/** From the cell. */
export const up = {
  hello: 64,
  /** Nothing; the load is done */
  ready: 65,
  /** JSON of GuestError; the load failed */
  failed: 66,
  /** u32 microseconds of processor time, or UNKNOWN_CPU | JSON text of the output */
  result: 67,
  /** The same number | JSON of GuestError */
  error: 68,
  /** JSON of LogMessage; invocation 0: outside any */
  log: 69,
  pong: 70,
  /** JSON of CallMessage */
  call: 71,
  chunk: 72,
  end: 73,
  credit: 74,
  /** u32 number of the broker call: its answer is not wanted any more */
  cancel: 75,
} as const;

/** In the place of a call's processor time: another call was under way meanwhile. */
export const UNKNOWN_CPU = 0xffffffff;

/** Of a payload from the cell behind its secret: an output, a broker call, a log line. A longer frame ends the cell. */
export const MAX_PAYLOAD = 16 * 1024 * 1024;

/** Log lines beyond it are dropped by the daemon. The cell sends no more either: what waits there to be read takes its memory. */
export const logAllowance = {
  /** Of one invocation. */
  invocation: { bytes: 1024 * 1024, windowMs: Number.POSITIVE_INFINITY },
  /** Of no invocation: nobody asked for them, and each is mapped to its sources. */
  session: { bytes: 256 * 1024, windowMs: 10_000 },
} as const;

/** Bytes of a stream that may be under way before the reader asks for more. */
export const STREAM_WINDOW = 256 * 1024;

export interface LoadOptions {
  readonly controller: string;
  readonly version: string;
  readonly filename: string;
  readonly memoryBytes: number;
}

export interface InvokeMessage {
  readonly input: unknown;
  readonly id: string;
  readonly deadline: number;
  readonly environment: string;
}

export interface CallMessage {
  readonly n: number;
  readonly op: string;
  readonly args: unknown;
  /** True where the cell sends a stream along with the call. */
  readonly body?: boolean;
}

export interface AnswerMessage {
  readonly n: number;
  readonly value?: unknown;
  readonly error?: GuestError;
  /** True where chunks follow until `end`. */
  readonly stream?: boolean;
}

/** An error on its way through the channel. */
export interface GuestError {
  readonly name: string;
  readonly message: string;
  readonly code?: string;
  readonly status?: number;
  /** The line that a contract lacks, with `capability_denied`. */
  readonly add?: string;
  readonly stack?: string;
}

export interface LogMessage {
  readonly level: string;
  readonly message: string;
  readonly fields?: Record<string, unknown>;
  /** Of a line of no invocation: the one from whose code it came, and which had ended. */
  readonly requestId?: string;
}

export interface HelloMessage {
  readonly node: string;
  readonly bootMs: number;
  readonly landlock: number;
  readonly missing: readonly string[];
}
