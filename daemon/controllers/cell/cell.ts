// A cell as the daemon holds it: a zygote at first, then one controller version's process. Which invocation a frame belongs to is decided by
// the channel it came by and the secret it carries; a wrong secret ends the cell.
import { randomFillSync } from "node:crypto";
import { openCallTable } from "./call-table.ts";
import { type Connection, LARGE_FRAME, openConnection } from "./connection.ts";
import {
  type CallMessage,
  down,
  type GuestError,
  type HelloMessage,
  type InvokeMessage,
  type LoadOptions,
  type LogMessage,
  logAllowance,
  SECRET,
  UNKNOWN_CPU,
  up,
} from "./frames.ts";
import { type Layers, UNAVAILABLE } from "./lockdown/boot.ts";
import { type LogMeter, openLogMeter } from "./log-meter.ts";
import { type CellExit, type CellProcess, spawnCell } from "./spawn.ts";
import { type BrokerSession, type CallStreams, openCallStreams } from "./streams.ts";

/** Why the cell is gone; every call that was in it is rejected with it. */
export class CellGone extends Error {
  /** `unavailable`: this machine lacks what no cell runs without. */
  readonly reason: "memory" | "crash" | "killed" | "violation" | "unavailable";
  readonly exit: CellExit | null;
  constructor(reason: CellGone["reason"], detail: string, exit: CellExit | null) {
    super(detail);
    this.name = "CellGone";
    this.reason = reason;
    this.exit = exit;
  }
}

/** `output`: JSON text; bytes of their own where it is large. `cpuMs`: processor time as the cell itself counts it, meant for people and not for a bill; null where it ran beside another call. */
export type CellOutcome =
  | { readonly ok: true; readonly output: string | Buffer; readonly cpuMs: number | null }
  | { readonly ok: false; readonly error: GuestError; readonly cpuMs: number | null };

export interface CellCall {
  readonly message: InvokeMessage;
  /** Asked for once, when the handler first wants something of the broker. */
  broker(): BrokerSession;
  onLog(log: LogMessage): void;
  /** One of the two, once, and never before invoke() has returned. */
  onEnd(outcome: CellOutcome): void;
  onGone(why: CellGone): void;
}

export interface RunningCall {
  /** Tells the handler (request.signal); the call goes on until it ends by itself. */
  abort(reason: string): void;
}

export interface Cell {
  readonly pid: number;
  readonly layers: Layers;
  readonly hello: HelloMessage;
  readonly gone: Promise<CellGone>;
  /** It has ended, or was killed and will be gone in a moment. */
  readonly killed: boolean;
  load(options: LoadOptions, code: string, onLog: (log: LogMessage) => void): Promise<void>;
  invoke(call: CellCall): RunningCall;
  active(): number;
  /** Milliseconds that a ping has been unanswered; 0 where the loop turns or the channel is throttled. */
  silence(): number;
  /** The same where no call is to blame: all that are under way came after the ping, and none of them is read yet. */
  spinning(): number;
  ping(): void;
  /** It may run on every processor; until then one is kept free of it. */
  trust(): void;
  /** From now on the daemon and other cells come first where processors are scarce. */
  stepBack(): void;
  kill(reason: CellGone["reason"], detail: string): void;
}

interface Running {
  readonly id: number;
  readonly secret: Buffer;
  readonly call: CellCall;
  /** Null until the handler's first broker call. */
  streams: CallStreams | null;
  /** Null until the handler's first log line. */
  logs: LogMeter | null;
}

const OUT_OF_MEMORY =
  /out of memory|Allocation failed|allocation failure|\bOOM\b|bad_alloc|Cannot allocate memory|node::[A-Za-z]*alloc\(/i;
/** What Node writes of an error that nobody catches, and of its own faults. */
const FAULT = /^\w*Error\b|^Uncaught\b|FATAL ERROR|Assertion failed/;
const HELLO_WITHIN_MS = 20_000;
/** Beyond what a cell keeps to (`MOST_...` of guest/invocation.ts): an end may be heard of later than the beginning that followed it. */
const MAX_CALLS_UNDER_WAY = 384;
/** Bytes of answers that a cell has asked for and does not take: those of one call may be 2 GB. Large ones are refused beyond the first bound. */
const FULL = 256 * 1024 * 1024;
const MOST_WAITING = 320 * 1024 * 1024;

let secrets = Buffer.alloc(0);
let nextSecret = 0;

/** 128 random bits; drawn in bulk, a draw per call costs more than the call. */
function newSecret(): Buffer {
  if (nextSecret >= secrets.length) {
    secrets = randomFillSync(Buffer.allocUnsafeSlow(SECRET * 256));
    nextSecret = 0;
  }
  nextSecret += SECRET;
  return secrets.subarray(nextSecret - SECRET, nextSecret);
}

/** Starts a zygote and waits for its hello. Throws where the machine cannot lock it down. */
export async function startCell(layers: Layers): Promise<Cell> {
  const process = await spawnCell(layers).catch((error: Error) => {
    throw new CellGone("crash", error.message, null);
  });
  return await holdCell(process, layers);
}

/** A cell over a process that runs already. */
export function holdCell(child: CellProcess, layers: Layers): Promise<Cell> {
  const running = openCallTable<Running>();
  const session = newSecret();
  const held = { bytes: 0 };
  const sessionLogs = openLogMeter(logAllowance.session);
  let killed: CellGone | null = null;
  let ended: CellGone | null = null;
  let loaded = false;
  let pingSentAt = 0;
  /** No call is under way that was there when the ping was sent. */
  let onlyLater = false;
  let onSessionLog: (log: LogMessage) => void = () => {};
  let loading: { settle: () => void; fail: (error: Error) => void } | null = null;
  let greet: (hello: HelloMessage) => void = () => {};

  const connection: Connection = openConnection(child.socket, {
    frame,
    violation: (why) => kill("violation", why),
  });
  child.onFlood = () => kill("violation", "a flood on the error pipe");

  const gone = child.exited.then(onExit, (error: Error) => onExit({ code: null, signal: null, stderr: error.message }));

  function onExit(exit: CellExit): CellGone {
    child.standing.close();
    const reason = killed ?? explain(exit);
    // Before anybody is told: a call that is run again must not come to this cell.
    ended = reason;
    for (const call of running.drain()) {
      call.streams?.close();
      call.call.onGone(reason);
    }
    loading?.fail(reason);
    return reason;
  }

  function kill(reason: CellGone["reason"], detail: string): void {
    killed ??= new CellGone(reason, detail, null);
    child.kill();
  }

  function frame(type: number, id: number, secret: Buffer, payload: Buffer): boolean {
    if (killed) {
      // Said before its end: whatever came behind the ping may have been begun, and nobody else runs it.
      if (type === up.pong && secret.equals(session)) pingSentAt = 0;
      return true;
    }
    const call = running.get(id);
    try {
      if (call && secret.equals(call.secret)) return callFrame(type, id, call, payload);
      // A call that has ended may have had frames under way: only its own secret would tell, and it is forgotten.
      if (loaded && !call && running.given(id) && !secret.equals(session)) return false;
      if (!loaded || secret.equals(session)) return sessionFrame(type, payload);
      kill("violation", "a frame with a forged secret");
    } catch (error) {
      kill("violation", `a frame that cannot be read: ${(error as Error).message}`);
    }
    return true;
  }

  function sessionFrame(type: number, payload: Buffer): boolean {
    if (type === up.pong) {
      pingSentAt = 0;
      return false;
    }
    if (type === up.log) sessionLogs.take(payload, onSessionLog);
    else if (type === up.hello) greet(JSON.parse(payload.toString()) as HelloMessage);
    else if (type === up.ready && loading) {
      loaded = true;
      loading.settle();
    } else if (type === up.failed && loading) {
      const error = JSON.parse(payload.toString()) as GuestError;
      loading.fail(
        Object.assign(new Error(error.message), { name: error.name, stack: error.stack ?? "", guest: true }),
      );
    }
    return false;
  }

  function callFrame(type: number, id: number, call: Running, payload: Buffer): boolean {
    if (type === up.result || type === up.error) {
      // While it is still under way: an end that cannot be read ends the cell, and whoever waits for the call must hear of that.
      const outcome = readOutcome(type, payload);
      running.delete(id);
      onlyLater ||= running.size === 0;
      call.streams?.close();
      call.call.onEnd(outcome);
      return true;
    }
    if (type === up.log) {
      call.logs ??= openLogMeter(logAllowance.invocation);
      call.logs.take(payload, call.call.onLog);
    } else brokerFrame(type, id, call, payload);
    return false;
  }

  function brokerFrame(type: number, id: number, call: Running, payload: Buffer): void {
    const full = (): boolean => connection.waiting() > FULL;
    call.streams ??= openCallStreams(call.call.broker(), (down, ...parts) => answer(down, id, parts), held, full);
    const { streams } = call;
    if (type === up.call) {
      if (streams.underWay() >= MAX_CALLS_UNDER_WAY)
        kill("violation", `more than ${MAX_CALLS_UNDER_WAY} broker calls under way in one invocation`);
      else streams.open(JSON.parse(payload.toString()) as CallMessage);
    } else if (type === up.chunk) streams.chunk(payload.readUInt32LE(0), payload.subarray(4));
    else if (type === up.end) streams.end(JSON.parse(payload.toString()) as { n: number; error?: string });
    else if (type === up.credit) streams.credit(payload.readUInt32LE(0), payload.readUInt32LE(4));
    else if (type === up.cancel) streams.cancel(payload.readUInt32LE(0));
  }

  function answer(type: number, id: number, parts: readonly (string | Uint8Array)[]): void {
    if (connection.waiting() > MOST_WAITING)
      kill("violation", `more than ${MOST_WAITING} bytes that it asked for wait for it`);
    else connection.send(type, id, ...parts);
  }

  function silence(): number {
    return pingSentAt === 0 || connection.paused() ? 0 : performance.now() - pingSentAt;
  }

  const handle: Omit<Cell, "hello"> = {
    pid: child.pid,
    layers,
    gone,
    get killed() {
      return (ended ?? killed) !== null;
    },
    load(options, code, onLog) {
      onSessionLog = onLog;
      const text = Buffer.from(JSON.stringify(options));
      const length = Buffer.alloc(4);
      length.writeUInt32LE(text.length);
      return new Promise((settle, fail) => {
        loading = { settle, fail };
        connection.send(down.load, 0, session, length, text, code);
      });
    },
    invoke(call) {
      const why = ended ?? killed;
      if (why) {
        queueMicrotask(() => call.onGone(why));
        return { abort() {} };
      }
      const text = JSON.stringify(call.message);
      const id = running.nextId();
      const secret = newSecret();
      running.add({ id, secret, call, streams: null, logs: null });
      connection.send(down.invoke, id, secret, text);
      return {
        abort: (reason) => {
          if (running.get(id)) connection.send(down.abort, id, JSON.stringify({ reason }));
        },
      };
    },
    active: () => running.size,
    silence,
    spinning: () => (onlyLater ? silence() : 0),
    ping() {
      if (pingSentAt !== 0) return;
      pingSentAt = performance.now();
      onlyLater = running.size === 0;
      connection.send(down.ping, 0);
    },
    trust: child.standing.trust,
    stepBack: child.standing.stepBack,
    kill,
  };

  return new Promise((resolve, reject) => {
    const late = setTimeout(() => kill("killed", "the cell did not start in time"), HELLO_WITHIN_MS);
    greet = (hello) => {
      clearTimeout(late);
      // Not a spread: `killed` is a getter.
      resolve(Object.defineProperty(handle, "hello", { value: hello }) as Cell);
    };
    gone.then((error) => {
      clearTimeout(late);
      reject(error);
    });
  });
}

function readOutcome(type: number, payload: Buffer): CellOutcome {
  const cpu = payload.readUInt32LE(0);
  const cpuMs = cpu === UNKNOWN_CPU ? null : cpu / 1000;
  if (type === up.error) return { ok: false, error: readError(payload.toString("utf8", 4)), cpuMs };
  const output = payload.length > LARGE_FRAME ? payload.subarray(4) : payload.toString("utf8", 4);
  return { ok: true, output, cpuMs };
}

/** Throws where it is none. */
function readError(json: string): GuestError {
  const error = JSON.parse(json) as GuestError;
  const isText = (value: unknown): boolean => typeof value === "string";
  const optional = [error.code, error.add, error.stack].filter((value) => value !== undefined);
  if (![error.name, error.message, ...optional].every(isText)) throw new Error("an error without name or message");
  return error;
}

function explain(exit: CellExit): CellGone {
  const how = exit.signal ?? `exit code ${exit.code}`;
  if (exit.code === UNAVAILABLE) return new CellGone("unavailable", exit.stderr.trim().slice(0, 300), exit);
  if (OUT_OF_MEMORY.test(exit.stderr)) return new CellGone("memory", `out of memory (${how})`, exit);
  const lines = exit.stderr.trim().split("\n");
  // Around it stand the frames of the daemon's own files.
  const said = (lines.find((line) => FAULT.test(line)) ?? lines.at(-1) ?? "").trim().slice(0, 300);
  return new CellGone("crash", `the process ended: ${how}${said && `: ${said}`}`, exit);
}
