// request.kv over a map: values are JSON, they expire, and sizes and number have their limits.
import { kvLimits } from "#contract/runtime-limits.ts";
import { HandlerError } from "#sdk/errors.ts";
import type { Json, Kv } from "#sdk/request.ts";
import type { TestContract } from "./contract.ts";
import { bounded } from "./json.ts";

/** What is held, and until when; kept between the invocations of one test. */
export interface KvEntries {
  readonly values: Map<string, unknown>;
  /** Milliseconds since the epoch, for those that expire. */
  readonly expiry: Map<string, number>;
}

function keyOf(value: unknown): string {
  const key = bounded(value, "key", kvLimits.key);
  if (!key.isWellFormed() || key.includes("\0"))
    throw new HandlerError("invalid_request", "key must be text that UTF-8 can hold, without NUL");
  return key;
}

export function fakeKv(contract: TestContract, { values, expiry }: KvEntries): Kv {
  function drop(key: string): void {
    values.delete(key);
    expiry.delete(key);
  }
  function dropExpired(): void {
    for (const [key, until] of expiry) if (until <= Date.now()) drop(key);
  }
  return {
    get: async <T = Json>(key: string) => {
      contract.need({ capability: "kv:read" });
      if ((expiry.get(keyOf(key)) ?? Number.POSITIVE_INFINITY) <= Date.now()) drop(key);
      return (values.has(key) ? structuredClone(values.get(key)) : null) as T | null;
    },
    set: async (key, value, options) => {
      const text = JSON.stringify(value);
      if (text === undefined) throw new HandlerError("invalid_request", "kv.set: the value is not JSON");
      if (typeof (options ?? {}) !== "object" || Object.keys(options ?? {}).some((name) => name !== "ttl_s"))
        throw new HandlerError("invalid_request", "kv.set: its options are { ttl_s }");
      contract.need({ capability: "kv:write" });
      const ttl = options?.ttl_s;
      if (ttl !== undefined && ttl !== null && !(typeof ttl === "number" && ttl > 0 && ttl <= kvLimits.ttlS))
        throw new HandlerError("invalid_request", "ttl_s must be a positive number of seconds");
      const own = keyOf(key);
      const kept: unknown = JSON.parse(bounded(text, "value", kvLimits.value));
      drop(own);
      if (values.size >= kvLimits.keys) dropExpired();
      if (values.size >= kvLimits.keys)
        throw new HandlerError(
          "limit_exceeded",
          `${contract.contract.name} holds ${kvLimits.keys} keys, and no more fit`,
        );
      values.set(own, kept);
      if (ttl) expiry.set(key, Date.now() + ttl * 1000);
    },
    delete: async (key) => {
      contract.need({ capability: "kv:write" });
      drop(keyOf(key));
    },
  };
}
