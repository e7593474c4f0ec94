// Runs syncs in this process, and looks at what came out.
import pg from "pg";
import type { SyncOutcome, SyncSpec } from "#contract/sync.ts";
import { openDestination, openSource } from "#daemon/integrations/connectors/open.ts";
import { runSync } from "#daemon/integrations/engine/run.ts";
import { newId } from "#shared/ids.ts";
import { startPostgres, type TestPostgres } from "#test/postgres.ts";

export interface Ends {
  readonly from: string;
  readonly object: string;
  readonly to: string;
  readonly table: string;
}

export function specOf(ends: Ends, more: Partial<SyncSpec> = {}): SyncSpec {
  return {
    run_id: newId("run"),
    sync_id: null,
    source: { url: ends.from, object: ends.object },
    destination: { url: ends.to, object: ends.table },
    mode: "full_refresh",
    primary_key: null,
    cursor_field: null,
    deletes: null,
    on_bad_record: "quarantine",
    columns: null,
    mapping: null,
    stall_timeout_s: 20,
    state_file: null,
    allow_private: "any",
    ...more,
  };
}

export function sync(
  ends: Ends,
  more: Partial<SyncSpec> = {},
  signal: AbortSignal = new AbortController().signal,
): Promise<SyncOutcome> {
  const spec = specOf(ends, more);
  return runSync(spec, {
    openSource: () => openSource(spec.source, spec.allow_private === "any" ? [] : spec.allow_private),
    openDestination: () => openDestination(spec.destination),
    onProgress: () => {},
    signal,
  });
}

export interface Client {
  query(sql: string): Promise<Record<string, string | null>[]>;
  lines(table: string, columns?: string): Promise<string[]>;
  end(): Promise<void>;
}

/** Two databases of one server, and a client of each. */
export interface Pair {
  readonly server: TestPostgres;
  readonly from: string;
  readonly to: string;
  readonly source: Client;
  readonly target: Client;
  close(): Promise<void>;
}

export async function openPair(): Promise<Pair> {
  const server = await startPostgres();
  try {
    const [from, to] = [await server.createDatabase(), await server.createDatabase()];
    const [source, target] = [await connect(from), await connect(to)];
    const close = async () => {
      await Promise.all([source.end(), target.end()]);
      await server.stop();
    };
    return { server, from, to, source, target, close };
  } catch (error) {
    await server.stop();
    throw error;
  }
}

/** A client that gives every value as PostgreSQL's text. */
export async function connect(url: string): Promise<Client> {
  const client = new pg.Client({ connectionString: url });
  client.on("error", () => {});
  await client.connect();
  await client.query("SET TimeZone = 'UTC'; SET bytea_output = 'hex'");
  const query = async (sql: string) => {
    const result = await client.query({ text: sql, types: { getTypeParser: () => (value: string) => value } as never });
    return (Array.isArray(result) ? result.at(-1) : result).rows as Record<string, string | null>[];
  };
  return {
    query,
    // Sorted here, so that no collation matters.
    lines: async (table, columns = "*") =>
      (await query(`SELECT ROW(t.*)::text AS line FROM (SELECT ${columns} FROM ${table}) t`))
        .map(({ line }) => line ?? "")
        .sort(),
    end: () => client.end(),
  };
}
