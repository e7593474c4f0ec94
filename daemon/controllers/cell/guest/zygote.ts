// The zygote: a cell's second stage before and after it gets its controller. It warms what Node loads lazily, says hello, waits for the
// load frame, turns the lock, evaluates the bundle, then answers invocations until its channel ends.
import { promisify } from "node:util";
import { runInThisContext } from "node:vm";
import { ITERABLE_OUTPUT, isIterableOutput } from "#contract/iterable-output.ts";
import { MAX_OUTPUT } from "#contract/runtime-limits.ts";
import { type AnswerMessage, down, type HelloMessage, type LoadOptions, SECRET, UNKNOWN_CPU, up } from "../frames.ts";
import { BOOT_VARIABLE, type StageZeroOutcome } from "../lockdown/boot.ts";
import { prepareLock } from "../lockdown/stage-one.ts";
import { requireBuiltin } from "./builtins.ts";
import { openChannel, readU32 } from "./channel.ts";
import { consoleToFrames } from "./console.ts";
import { fromThrown, toError } from "./errors.ts";
import { requireBy } from "./harmless.ts";
import {
  abortInvocation,
  currentInvocation,
  endInvocation,
  type Invocation,
  newInvocation,
  onAnswer,
  onChunk,
  onCredit,
  onStreamEnd,
  type StreamEnd,
  withInvocation,
} from "./invocation.ts";
import { byteLength, bytesSet, parseJson, stringifyJson, table, Uint8ArrayOf, utf8Slice } from "./primordials.ts";
import { fitRealm, hardenRealm } from "./realm.ts";
import { type Identity, makeRequest, openLog } from "./request.ts";

const REPLY = Symbol.for("magic.reply");
type UserHandler = (request: object) => unknown;

export async function runZygote(): Promise<void> {
  const boot = JSON.parse(process.env[BOOT_VARIABLE] ?? "") as StageZeroOutcome;
  const lock = prepareLock(boot);
  await warm();
  const env: Record<string, string> = {};
  process.env = env; // The pool has its size by now; nothing else of the environment is a handler's business.

  const session = new Uint8ArrayOf(SECRET);
  const running = table<Invocation>();
  let underWay = 0;
  /** Invocations that began so far. */
  let begun = 0;
  let handler: UserHandler | null = null;
  let identity: Identity = { name: "", version: "" };
  const endProcess = (process as unknown as { reallyExit(code: number): void }).reallyExit.bind(process);

  const channel = openChannel(onFrame, () => endProcess(0));
  const log = openLog(channel, session);
  consoleToFrames(log);
  process.on("uncaughtException", (error) => {
    const invocation = currentInvocation();
    // Thrown beside the handler's promise, by a timer or an event: nothing would ever settle what waits for it.
    if (invocation && running[invocation.id] === invocation) finish(invocation, up.error, failureText(error));
    else stray("uncaught exception", error);
  });
  process.on("unhandledRejection", (error) => stray("unhandled rejection", error));
  const hello: HelloMessage = {
    node: process.versions.node,
    bootMs: performance.now(),
    landlock: boot.landlock,
    missing: boot.missing,
  };
  channel.sendText(up.hello, 0, session, JSON.stringify(hello));

  function onFrame(type: number, id: number, memory: Buffer, start: number, end: number): void {
    if (type === down.invoke) invoke(newInvocation(id, channel, memory, start, end));
    else if (type === down.ping) channel.sendText(up.pong, id, session, "");
    else if (type === down.load) void load(id, memory, start, end);
    else {
      const invocation = running[id];
      if (invocation) onCallFrame(type, invocation, memory, start, end);
    }
  }

  async function load(id: number, memory: Buffer, start: number, end: number): Promise<void> {
    if (handler !== null) return;
    bytesSet(session, new Uint8Array(memory.buffer, memory.byteOffset + start, SECRET));
    const optionsEnd = start + SECRET + 4 + readU32(memory, start + SECRET);
    try {
      const options = JSON.parse(utf8Slice(memory, start + SECRET + 4, optionsEnd)) as LoadOptions;
      const code = utf8Slice(memory, optionsEnd, end);
      identity = Object.freeze({ name: options.controller, version: options.version });
      fitRealm();
      if (boot.layers.realm) hardenRealm();
      lock(options.memoryBytes);
      const exported = evaluate(code, options.filename, boot.layers.realm);
      handler = handlerOf(exported instanceof Promise ? await exported : exported);
      channel.sendText(up.ready, id, session, "");
    } catch (error) {
      channel.sendText(up.failed, id, session, stringifyJson(fromThrown(error)) ?? "");
    }
  }

  function invoke(invocation: Invocation): void {
    running[invocation.id] = invocation;
    underWay++;
    begun++;
    withInvocation(invocation, () => void answer(invocation));
  }

  async function answer(invocation: Invocation): Promise<void> {
    let type: number = up.result;
    let text: string | undefined;
    // Where another call is under way nobody can tell whose time it is, and asking costs as much as a small handler.
    const before = underWay === 1 ? cpuMicroseconds() : null;
    const number = begun;
    try {
      const returned = await (handler as UserHandler)(makeRequest(invocation, identity, log));
      text = outputText(outputOf(returned));
    } catch (thrown) {
      type = up.error;
      text = failureText(thrown);
    }
    if (!invocation.over) finish(invocation, type, text, begun === number ? before : null);
  }

  function finish(invocation: Invocation, type: number, text: string, before: number | null = null): void {
    delete running[invocation.id];
    underWay--;
    endInvocation(invocation);
    channel.sendNumberedText(
      type,
      invocation.id,
      invocation.secret,
      before === null ? UNKNOWN_CPU : cpuMicroseconds() - before,
      text,
    );
  }

  /** An error that nobody caught, as a line of the call whose code it came from. */
  function stray(what: string, error: unknown): void {
    const { name, message, stack } = fromThrown(error);
    log(currentInvocation(), "error", `${what}: ${name}: ${message}`, { stack });
  }
}

/** A frame about one of an invocation's broker calls, or its abort. */
function onCallFrame(type: number, invocation: Invocation, memory: Buffer, start: number, end: number): void {
  if (type === down.chunk) onChunk(invocation, memory, start, end);
  else if (type === down.credit) onCredit(invocation, readU32(memory, start), readU32(memory, start + 4));
  else {
    const message = parseJson(utf8Slice(memory, start, end));
    if (type === down.answer) onAnswer(invocation, message as AnswerMessage);
    else if (type === down.end) onStreamEnd(invocation, message as StreamEnd);
    else if (type === down.abort) abortInvocation(invocation, (message as { reason: string }).reason);
  }
}

type Factory = (
  module: { exports: Record<string, unknown> },
  exports: unknown,
  require: (name: string) => unknown,
  filename: string,
  dirname: string,
) => void;

/** What the bundle exports; a promise of it where its modules await while they load. */
function evaluate(code: string, filename: string, policy: boolean): unknown {
  const factory = runInThisContext(`(function (module, exports, require, __filename, __dirname) {\n${code}\n})`, {
    filename,
    lineOffset: -1,
  }) as Factory;
  const module = { exports: {} as Record<string, unknown> };
  const load = requireBy((name) => requireBuiltin(name, policy));
  factory(module, module.exports, load, "/controller/handler.js", "/controller");
  return module.exports;
}

function handlerOf(all: unknown): UserHandler {
  const exported = (all as { default?: unknown }).default ?? all;
  if (typeof exported !== "function") throw new Error("handler has no default export that is a function");
  return exported as UserHandler;
}

function failureText(thrown: unknown): string {
  return stringifyJson(fromThrown(thrown)) ?? "";
}

const { cpuUsage } = process;

/** Processor time of this process so far, the wrap of 32 bits included: differences come out right. */
function cpuMicroseconds(): number {
  const { user, system } = cpuUsage();
  return user + system;
}

function outputText(output: unknown): string {
  let text: string | undefined;
  try {
    text = stringifyJson(output);
  } catch (thrown) {
    throw toError({
      name: "TypeError",
      message: `the output is not JSON: ${fromThrown(thrown).message}`,
      code: "output_invalid",
    });
  }
  if (text === undefined) return "null";
  if (isIterableOutput(output, text))
    throw toError({ name: "TypeError", message: `the output is not JSON: ${ITERABLE_OUTPUT}`, code: "output_invalid" });
  if (byteLength(text) > MAX_OUTPUT)
    throw toError({
      name: "RangeError",
      message: `the output has more than ${MAX_OUTPUT} bytes`,
      code: "limit_exceeded",
    });
  return text;
}

function outputOf(returned: unknown): unknown {
  if (typeof returned !== "object" || returned === null) return returned;
  const reply = returned as Record<PropertyKey, unknown>;
  return reply[REPLY] === true ? reply["output"] : returned;
}

/** Touches what Node loads on first use and could not load, or start a thread for, afterwards. */
async function warm(): Promise<void> {
  process.env["TZ"] = "UTC";
  crypto.randomUUID();
  structuredClone({ a: 1 });
  new Intl.DateTimeFormat("en", { dateStyle: "full" }).format(0);
  new Date().toString();
  new Request("http://warm/", { body: "x", method: "POST" });
  await new Response("x").text();
  new Headers();
  new FormData();
  void new Blob(["x"]);
  new AbortController().abort();
  void globalThis.fetch;
  const { pbkdf2 } = await import("node:crypto");
  // libuv starts its pool on first use, and aborts where it cannot.
  await Promise.all([1, 2].map(() => promisify(pbkdf2)("a", "b", 1000, 8, "sha1")));
}
