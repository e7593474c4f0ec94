// `_magic_state` in MySQL: one row a sync and stream, written in the transaction of its rows.
import { committedIn } from "../../engine/committed.ts";
import type { CommittedState } from "../../engine/destination.ts";
import type { StreamState } from "../../engine/source.ts";
import type { TableSchema } from "../../engine/types.ts";
import { ident, literal, type MysqlLink } from "./connect.ts";

interface Key {
  readonly syncId: string;
  readonly stream: string;
}

const nameIn = (database: string) => `${ident(database)}._magic_state`;

/** Waits for who has it; held until the connection ends, however it ends. */
export async function lock(link: MysqlLink, name: string): Promise<void> {
  for (;;) {
    const [row] = await link.rows(`SELECT GET_LOCK(${literal(`magic:${name}`.slice(0, 64))}, 1) AS got`);
    if (row?.["got"] === "1") return;
  }
}

/** The state of this sync and stream; nulls where there is none. */
export async function readState(link: MysqlLink, database: string, { syncId, stream }: Key): Promise<CommittedState> {
  const [there] = await link.rows(
    "SELECT 1 AS there FROM information_schema.tables WHERE table_schema = ? AND table_name = '_magic_state'",
    [database],
  );
  if (!there) return { state: null, schema: null };
  const [row] = await link.rows(
    `SELECT state, \`schema\` AS s FROM ${nameIn(database)} WHERE sync_id = ${literal(syncId)} AND stream = ${literal(stream)}`,
  );
  return committedIn(row && { state: row["state"] ?? null, schema: row["s"] ?? null }, `${database}._magic_state`);
}

/** Makes the table where it is missing. */
export async function ensureStateTable(link: MysqlLink, database: string): Promise<void> {
  await link.run(
    `CREATE TABLE IF NOT EXISTS ${nameIn(database)} (sync_id VARCHAR(64) NOT NULL, stream VARCHAR(255) NOT NULL, state JSON, \`schema\` LONGTEXT, updated_at DATETIME(6) NOT NULL, PRIMARY KEY (sync_id, stream)) ENGINE = InnoDB ROW_FORMAT = DYNAMIC CHARACTER SET utf8mb4 COLLATE utf8mb4_bin`,
  );
}

export async function writeState(
  link: MysqlLink,
  database: string,
  { syncId, stream }: Key,
  state: StreamState | null,
  sourceSchema: TableSchema,
): Promise<void> {
  const json = (value: unknown) => (value === null ? "NULL" : literal(JSON.stringify(value)));
  await link.run(
    `INSERT INTO ${nameIn(database)} (sync_id, stream, state, \`schema\`, updated_at) VALUES (${literal(syncId)}, ${literal(stream)}, ${json(state)}, ${json(sourceSchema)}, UTC_TIMESTAMP(6)) ` +
      "ON DUPLICATE KEY UPDATE state = VALUES(state), `schema` = VALUES(`schema`), updated_at = VALUES(updated_at)",
  );
}
