// The request that a test hands to a handler: every power checked against the contract, answered by the test's fakes.
import { HandlerError } from "#sdk/errors.ts";
import type { ChatChunk, ChatCompletion, ChatRequest, HandlerRequest, Json, Llm, QueryResult } from "#sdk/request.ts";
import type { TestContract } from "./contract.ts";
import { sampleOf } from "./sample.ts";

/** Answers a chat request: with the assistant's text, or with a whole completion. */
export type ChatFake = (request: ChatRequest) => string | ChatCompletion | Promise<string | ChatCompletion>;
export type FetchFake = (request: Request) => Response | Promise<Response>;
export type DbFake = (
  sql: string,
  params: readonly unknown[],
  database: string,
) => readonly object[] | Promise<readonly object[]>;

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
  readonly environment?: "sandbox" | "live";
  readonly signal?: AbortSignal;
}

interface LogLine {
  level: string;
  message: string;
  fields: Record<string, unknown>;
}

export function createRequest<Input>(
  input: Input,
  contract: TestContract,
  fakes: Fakes,
  kv: Map<string, unknown>,
): { request: HandlerRequest<Input>; logs: LogLine[] } {
  const { contract: declared } = contract;
  const logs: LogLine[] = [];
  const log =
    (level: string) =>
    (message: string, fields: Record<string, unknown> = {}) =>
      void logs.push({ level, message, fields });
  const request: HandlerRequest<Input> = {
    input,
    id: "req_test",
    controller: { name: declared.name, version: declared.version },
    environment: fakes.environment ?? "sandbox",
    signal: fakes.signal ?? new AbortController().signal,
    deadline: Date.now() + (declared.limits?.timeout_ms ?? 30_000),
    llm: { chat: ((asked: ChatRequest) => chat(asked, contract, fakes.llm)) as Llm["chat"] },
    fetch: (target, init) => fetchFake(new Request(target, init), contract, fakes.fetch),
    db: databases(contract, fakes.db),
    secrets: { get: (name) => secret(name, contract, fakes.secrets ?? {}) },
    kv: {
      get: async <T = Json>(key: string) => {
        contract.need("kv:read");
        return (kv.has(key) ? structuredClone(kv.get(key)) : null) as T | null;
      },
      set: async (key, value) => {
        contract.need("kv:write");
        kv.set(key, structuredClone(value));
      },
      delete: async (key) => {
        contract.need("kv:write");
        kv.delete(key);
      },
    },
    controllers: {
      invoke: async <Output>(name: string, other: unknown) => {
        contract.need("controller:invoke");
        const allowed = declared.scopes?.controllers;
        if (allowed && !allowed.includes(name)) throw contract.denied(`scopes.controllers does not list ${name}.`);
        const fake = fakes.controllers?.[name];
        if (!fake) throw new HandlerError("controller_not_found", `The test gives no controller ${name}.`);
        return (await fake(structuredClone(other))) as Output;
      },
    },
    syncs: {
      trigger: async (id) => {
        contract.need("sync:trigger");
        const allowed = declared.scopes?.syncs;
        if (allowed && !allowed.includes(id)) throw contract.denied(`scopes.syncs does not list ${id}.`);
        return { id: "run_test", status: "completed" };
      },
    },
    log: { debug: log("debug"), info: log("info"), warn: log("warn"), error: log("error") },
  };
  return { request, logs };
}

async function chat(
  asked: ChatRequest,
  contract: TestContract,
  fake: ChatFake | undefined,
): Promise<ChatCompletion | AsyncIterable<ChatChunk>> {
  contract.need("llm:chat");
  const models = contract.contract.scopes?.llm?.models;
  const model = asked.model ?? models?.[0] ?? "sandbox/echo";
  if (asked.model && models && !models.includes(asked.model))
    throw new HandlerError("model_not_allowed", `scopes.llm.models does not list ${asked.model}.`);
  const answer = await (fake ?? likeTheSandbox)(asked);
  const completion = typeof answer === "string" ? completionOf(model, answer) : answer;
  return asked.stream ? chunksOf(completion) : completion;
}

function likeTheSandbox(asked: ChatRequest): string {
  const format = asked["response_format"] as { json_schema?: { schema?: unknown } } | undefined;
  if (format?.json_schema?.schema) return JSON.stringify(sampleOf(format.json_schema.schema));
  const last = asked.messages.findLast((message) => message.role === "user");
  return typeof last?.content === "string" ? last.content : "";
}

function completionOf(model: string, content: string): ChatCompletion {
  return {
    id: "chatcmpl-test",
    object: "chat.completion",
    created: 0,
    model,
    choices: [{ index: 0, message: { role: "assistant", content }, finish_reason: "stop" }],
    usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2, cost_usd: 0 },
  };
}

async function* chunksOf(completion: ChatCompletion): AsyncGenerator<ChatChunk> {
  const { id, created, model } = completion;
  const base = { id, object: "chat.completion.chunk" as const, created, model };
  const choice = completion.choices[0];
  for (const word of choice?.message.content?.split(/(?<= )/) ?? [])
    yield { ...base, choices: [{ index: 0, delta: { content: word }, finish_reason: null }] };
  yield { ...base, choices: [{ index: 0, delta: {}, finish_reason: choice?.finish_reason ?? "stop" }] };
}

async function fetchFake(request: Request, contract: TestContract, fake: FetchFake | undefined): Promise<Response> {
  contract.need("http:egress");
  const url = new URL(request.url);
  const port = Number(url.port || (url.protocol === "http:" ? 80 : 443));
  const allowed = contract.contract.scopes?.http?.some(
    (grant) =>
      grant.host.toLowerCase() === url.hostname &&
      (grant.scheme ?? "https") === url.protocol.slice(0, -1) &&
      (grant.port ?? (grant.scheme === "http" ? 80 : 443)) === port &&
      (!grant.methods || grant.methods.includes(request.method as (typeof grant.methods)[number])),
  );
  if (!allowed) throw contract.denied(`scopes.http does not allow ${request.method} ${url.origin}.`);
  if (!fake) throw new TypeError("fetch failed: the test gives no `fetch`");
  return fake(request);
}

function databases(contract: TestContract, fake: DbFake | undefined): HandlerRequest["db"] {
  const query = async <R>(database: string, sql: string, params: readonly unknown[] = []): Promise<QueryResult<R>> => {
    contract.need("db:query");
    if (!contract.contract.scopes?.db?.some((grant) => grant.name === database))
      throw contract.denied(`scopes.db does not list ${database}.`);
    const rows = [...((await fake?.(sql, params, database)) ?? [])] as R[];
    return { rows, row_count: rows.length };
  };
  return {
    query,
    transaction: async (database, work) => work({ query: (sql, params) => query(database, sql, params) }),
  };
}

async function secret(name: string, contract: TestContract, values: Readonly<Record<string, string>>): Promise<string> {
  contract.need("secrets:read");
  if (!contract.contract.scopes?.secrets?.includes(name))
    throw contract.denied(`scopes.secrets does not list ${name}.`);
  const value = values[name];
  if (value === undefined) throw new HandlerError("not_found", `The test gives no secret ${name}.`);
  return value;
}
