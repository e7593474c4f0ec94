// request.db: databases and modes as the contract has them; parameters and rows change as a real database's driver changes them.
import { MAX_DIMENSIONS, MAX_ROWS } from "#contract/runtime-limits.ts";
import { firstWord, statementRefusal } from "#contract/statement.ts";
import { HandlerError } from "#sdk/errors.ts";
import type { HandlerRequest, QueryResult } from "#sdk/request.ts";
import type { TestContract } from "./contract.ts";
import { asJson, bounded } from "./json.ts";

export type DbFake = (
  sql: string,
  params: readonly unknown[],
  database: string,
) => readonly object[] | Promise<readonly object[]>;

/** What a read-only session refuses whatever it is done to. */
const WRITES = [
  "insert",
  "update",
  "delete",
  "merge",
  "replace",
  "truncate",
  "create",
  "alter",
  "drop",
  "grant",
  "revoke",
];

export function fakeDatabases(contract: TestContract, fake: DbFake | undefined): HandlerRequest["db"] {
  async function run<R>(database: string, sql: string, params: readonly unknown[] = []): Promise<QueryResult<R>> {
    bounded(database, "database", 200);
    const refusal = statementRefusal(bounded(sql, "sql"));
    if (refusal !== null) throw new HandlerError("invalid_request", refusal);
    if (!Array.isArray(params)) throw new HandlerError("invalid_request", "params must be a list");
    contract.need({ capability: "db:query", name: database });
    if (WRITES.includes(firstWord(sql))) contract.need({ capability: "db:query", name: database, mode: "write" });
    const rows = (
      (await fake?.(
        sql,
        params.map((value) => parameter(value)),
        database,
      )) ?? []
    ).map(rowOf) as R[];
    if (rows.length > MAX_ROWS) throw new HandlerError("limit_exceeded", `the query has more than ${MAX_ROWS} rows`);
    return { rows, row_count: rows.length };
  }
  return {
    query: run,
    transaction: async (database, work) => {
      contract.need({ capability: "db:query", name: bounded(database, "database", 200) });
      let over = false;
      try {
        return await work({
          query: async (sql, params) => {
            if (over) throw new HandlerError("invalid_request", "the transaction is over");
            return await run(database, sql, params);
          },
        });
      } finally {
        over = true;
      }
    },
  };
}

/** As the driver gets it: JSON, big integers as text, bytes as they are; so are a list's members. */
function parameter(value: unknown, dimensions = 0): unknown {
  if (typeof value === "bigint") return value.toString();
  if (value instanceof Uint8Array) return value;
  if (value instanceof ArrayBuffer) return new Uint8Array(value);
  if (ArrayBuffer.isView(value)) return new Uint8Array(value.buffer, value.byteOffset, value.byteLength);
  const lost = typeof value === "function" || typeof value === "symbol";
  if (lost || ((typeof value === "number" || value instanceof Date) && !Number.isFinite(+value)))
    throw new HandlerError("invalid_request", `params: ${String(value)} cannot be sent`);
  if (Array.isArray(value) && dimensions < MAX_DIMENSIONS)
    return value.map((member: unknown) => parameter(member, dimensions + 1));
  return asJson(value) ?? null;
}

function rowOf(row: object): object {
  return Object.fromEntries(Object.entries(row).map(([name, value]) => [name, column(value)]));
}

function column(value: unknown): unknown {
  if (typeof value === "bigint") return value.toString();
  if (value instanceof Uint8Array) return Buffer.from(value).toString("base64");
  return asJson(value) ?? null;
}
