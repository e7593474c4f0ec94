// In-memory stand-ins for a handler's unit tests: `import { testHandler } from "magic/sdk/testing"`. They obey the controller's
// contract as the daemon does: undeclared powers are refused, inputs and outputs are checked. Nothing leaves the process.
import { type Handler, isReply } from "./handler.ts";
import { contractIn, type TestContract } from "./testing/contract.ts";
import { createRequest, type Fakes } from "./testing/request.ts";

export type { ChatFake, DbFake, Fakes, FetchFake } from "./testing/request.ts";

export interface TestOptions extends Fakes {
  /** The controller's folder: its contract.yaml is obeyed. Usually `import.meta.dirname`. */
  readonly folder: string;
}

export interface TestInvocation<Output> {
  readonly output: Output;
  /** What the handler logged, in order. */
  readonly logs: readonly { level: string; message: string; fields: Record<string, unknown> }[];
}

export interface TestedHandler<Output> {
  /** Runs the handler once. Rejects with a HandlerError: `input_invalid`, `capability_denied`, `output_invalid`, or its own. */
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
  const kv = new Map<string, unknown>();
  return {
    kv,
    async invoke(input) {
      contract.checkInput(input);
      const { request, logs } = createRequest(structuredClone(input) as Input, contract, options, kv);
      const answer = await handler(request);
      const output = isReply(answer) ? answer.output : answer;
      contract.checkOutput(output);
      return { output: output as Output, logs };
    },
  };
}
