// The request that a test hands to a handler: every power checked against the contract as the daemon's broker does, answered by fakes.
import { HandlerError } from "#sdk/errors.ts";
import type { HandlerRequest, Json } from "#sdk/request.ts";
import { type ChatFake, fakeLlm } from "./chat.ts";
import type { TestContract } from "./contract.ts";
import { type DbFake, fakeDatabases } from "./databases.ts";
import { type FetchFake, fakeFetch } from "./fetch.ts";
import { asJson, bounded } from "./json.ts";
import { fakeKv, type KvEntries } from "./kv.ts";

export interface Fakes {
  /** Without it: the last user message, or JSON that fits `response_format`. */
  readonly llm?: ChatFake;
  /** Without it every request fails as if there were no network. */
  readonly fetch?: FetchFake;
  /** The rows of a statement; without it, none. */
  readonly db?: DbFake;
  readonly secrets?: Readonly<Record<string, string>>;
  /** Other controllers, by name. */
  readonly controllers?: Readonly<Record<string, (input: unknown) => unknown>>;
  /** The runs that syncs start, by the sync's id; without it, one that has completed. */
  readonly syncs?: Readonly<Record<string, { readonly id: string; readonly status: string }>>;
  readonly environment?: "sandbox" | "live";
  /** Aborts `request.signal`, as a caller who leaves does. */
  readonly signal?: AbortSignal;
}

export interface LogLine {
  readonly level: string;
  readonly message: string;
  readonly fields: Record<string, unknown>;
}

export interface Surroundings {
  readonly contract: TestContract;
  readonly fakes: Fakes;
  readonly kv: KvEntries;
  /** Aborted at the deadline too. */
  readonly signal: AbortSignal;
  /** Milliseconds since the epoch. */
  readonly deadline: number;
}

export function createRequest<Input>(
  input: Input,
  { contract: whole, fakes, kv, signal, deadline }: Surroundings,
): { request: HandlerRequest<Input>; logs: LogLine[] } {
  const { contract: declared } = whole;
  const contract: TestContract = {
    ...whole,
    need(wish) {
      if (signal.aborted) throw new HandlerError("timeout", "the invocation has ended");
      whole.need(wish);
    },
  };
  const logs: LogLine[] = [];
  const log =
    (level: string) =>
    (message: string | Error, fields?: Record<string, unknown>): void => {
      const besides = typeof fields === "object" && !(fields instanceof Error) ? fields : { fields };
      const all = message instanceof Error ? { error: message, ...besides } : fields;
      logs.push({ level, message: String(message), fields: fieldsOf(all) });
    };
  const request: HandlerRequest<Input> = {
    input,
    id: "req_test",
    controller: Object.freeze({ name: declared.name, version: declared.version }),
    environment: fakes.environment ?? "sandbox",
    signal,
    deadline,
    llm: fakeLlm(contract, fakes.llm),
    fetch: fakeFetch(contract, fakes.fetch),
    db: fakeDatabases(contract, fakes.db),
    secrets: {
      get: async (name) => {
        contract.need({ capability: "secrets:read", name: bounded(name, "name", 200) });
        const value = fakes.secrets?.[name];
        if (value === undefined) throw new HandlerError("not_found", `the test gives no secret ${name}`);
        return value;
      },
    },
    kv: fakeKv(contract, kv),
    controllers: {
      invoke: async <Output = Json>(name: string, other: unknown) => {
        contract.need({ capability: "controller:invoke", name: bounded(name, "name", 200) });
        const fake = fakes.controllers?.[name];
        if (!fake) throw new HandlerError("controller_not_found", `there is no controller ${name}`);
        return (asJson(await fake(asJson(other))) ?? null) as Output;
      },
    },
    syncs: {
      trigger: async (id) => {
        contract.need({ capability: "sync:trigger", name: bounded(id, "id", 200) });
        return { ...(fakes.syncs?.[id] ?? { id: "run_test", status: "completed" }) };
      },
    },
    log: { debug: log("debug"), info: log("info"), warn: log("warn"), error: log("error") },
  };
  return { request, logs };
}

/** Of an error JSON has what was added to it alone, and of a bigint nothing: those among the fields are said. */
function readable(): (key: string, value: unknown) => unknown {
  const said = new Map<Error, object>();
  return (_key, value) => {
    if (typeof value === "bigint") return String(value);
    if (!(value instanceof Error)) return value;
    const { name, message, stack } = value;
    // Each once: one that leads back to itself is found to be circular.
    const data = said.get(value) ?? { name, message, stack, ...(value as object) };
    said.set(value, data);
    return data;
  };
}

/** A line is kept though its fields are not JSON. */
function fieldsOf(fields: unknown): Record<string, unknown> {
  try {
    const text = JSON.stringify(fields ?? {}, readable());
    return JSON.parse(text) as Record<string, unknown>;
  } catch (error) {
    return { fields_unreadable: (error as Error).message };
  }
}
