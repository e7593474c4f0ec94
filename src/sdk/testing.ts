// In-memory stand-ins for a handler's unit tests: `import { testHandler } from "magic/sdk/testing"`. They obey the controller's
// contract as the daemon does: undeclared powers are refused, inputs and outputs are checked. Nothing leaves the process.
import { AsyncLocalStorage } from "node:async_hooks";
import { defaultLimits } from "#contract/runtime-limits.ts";
import { HandlerError } from "./errors.ts";
import { type Handler, isReply } from "./handler.ts";
import { contractIn, type TestContract } from "./testing/contract.ts";
import { coverHttp } from "./testing/http.ts";
import type { KvEntries } from "./testing/kv.ts";
import { createRequest, type Fakes, type LogLine } from "./testing/request.ts";

export type { ChatFake } from "./testing/chat.ts";
export type { DbFake } from "./testing/databases.ts";
export type { FetchFake } from "./testing/fetch.ts";
export type { Fakes } from "./testing/request.ts";

export interface TestOptions extends Fakes {
  /** The controller's folder: its contract.yaml is obeyed. Usually `import.meta.dirname`. */
  readonly folder: string;
}

export interface TestInvocation<Output> {
  readonly output: Output;
  /** What the handler logged, in order. */
  readonly logs: readonly LogLine[];
}

export interface TestedHandler<Output> {
  /**
   * Runs the handler once. Rejects with a HandlerError: `input_invalid`, `capability_denied`, `output_invalid`, `timeout`, or with what
   * the handler threw. The output is what the caller gets: JSON.
   */
  invoke(input: unknown): Promise<TestInvocation<Output>>;
  /** What kv holds now; kept between invocations. */
  readonly kv: ReadonlyMap<string, unknown>;
}

/** Prepares a handler for tests with fakes for what it uses; what is not given answers like the sandbox. */
export function testHandler<Input, Output>(
  handler: Handler<Input, Output>,
  options: TestOptions,
): TestedHandler<Output> {
  const contract: TestContract = contractIn(options.folder);
  const kv: KvEntries = { values: new Map(), expiry: new Map() };
  const timeoutMs = contract.contract.limits?.timeout_ms ?? defaultLimits.timeout_ms;
  cover();
  return {
    kv: kv.values,
    async invoke(given) {
      const input = contract.input(given) as Input;
      const late = new AbortController();
      const signal = options.signal ? AbortSignal.any([options.signal, late.signal]) : late.signal;
      const deadline = Date.now() + timeoutMs;
      const { request, logs } = createRequest(input, { contract, fakes: options, kv, signal, deadline });
      const answer = await within(timeoutMs, late, () => inside.run(request.fetch, async () => handler(request)));
      return { output: contract.output(isReply(answer) ? answer.output : answer) as Output, logs };
    },
  };
}

/** The caller is answered at the deadline; a handler that goes on goes on alone. */
async function within<T>(ms: number, late: AbortController, work: () => Promise<T>): Promise<T> {
  const { promise, reject } = Promise.withResolvers<never>();
  const timer = setTimeout(() => {
    const error = new HandlerError("timeout", `the handler was given ${ms} ms (limits.timeout_ms)`);
    late.abort(error);
    reject(error);
  }, ms);
  try {
    return await Promise.race([work(), promise]);
  } finally {
    clearTimeout(timer);
  }
}

const inside = new AsyncLocalStorage<typeof globalThis.fetch>();
let covered = false;

/** In a handler the global `fetch`, and what Node's HTTP client asks, are the request's, as in a cell; outside they stay what they were. */
function cover(): void {
  if (covered) return;
  covered = true;
  const outside = globalThis.fetch;
  globalThis.fetch = (target, init) => (inside.getStore() ?? outside)(target, init);
  coverHttp(() => inside.getStore());
}
