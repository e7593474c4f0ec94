// `_magic_state` in PostgreSQL: one row a sync and stream, written in the transaction that makes its rows visible.
import { committedIn } from "../../engine/committed.ts";
import type { CommittedState } from "../../engine/destination.ts";
import type { StreamState } from "../../engine/source.ts";
import type { TableSchema } from "../../engine/types.ts";
import { BEGIN, type PostgresLink } from "./connect.ts";
import { ident, literal } from "./sql.ts";

const nameIn = (schema: string) => `${ident(schema)}._magic_state`;

/** Keeps other runs of the sync out until the connection ends; waits for one that is under way. */
export async function lockSync(link: PostgresLink, syncId: string, stream: string): Promise<void> {
  await link.rows("SELECT pg_advisory_lock(hashtextextended($1, 4141))::text", [`${syncId}/${stream}`]);
}

/**
 * Keeps other syncs from making or replacing the same table until the transaction ends; waits for one that does. Gives the table as it
 * is then, by its oid; null: there is none.
 */
export async function lockTable(
  link: PostgresLink,
  { schema, name }: { readonly schema: string; readonly name: string },
): Promise<string | null> {
  await link.rows("SELECT pg_advisory_xact_lock(hashtextextended($1, 4142))::text", [JSON.stringify([schema, name])]);
  // to_regclass would answer from a cache that is as old as the transaction.
  const [row] = await link.rows<{ oid: string }>(
    "SELECT c.oid::text AS oid FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = $1 AND c.relname = $2",
    [schema, name],
  );
  return row?.oid ?? null;
}

/** The state of this sync and stream; nulls where there is none. */
export async function readState(
  link: PostgresLink,
  schema: string,
  syncId: string,
  stream: string,
): Promise<CommittedState> {
  const [found] = await link.rows<{ there: string | null }>("SELECT to_regclass($1)::text AS there", [nameIn(schema)]);
  if (!found?.there) return { state: null, schema: null };
  const [row] = await link.rows<{ state: string | null; schema: string | null }>(
    `SELECT state::text, schema::text FROM ${nameIn(schema)} WHERE sync_id = $1 AND stream = $2`,
    [syncId, stream],
  );
  return committedIn(row, `${schema}._magic_state`);
}

/** Makes the table where it is missing; in a transaction of its own, so that two syncs do not wait for each other's rows. */
export async function ensureStateTable(link: PostgresLink, schema: string): Promise<void> {
  // Two creators at once race even with IF NOT EXISTS: they take turns.
  await link.run(`ROLLBACK; ${BEGIN}; SELECT pg_advisory_xact_lock(4143)`);
  const [found] = await link.rows<{ place: string | null; there: string | null }>(
    "SELECT to_regnamespace($1)::text AS place, to_regclass($2)::text AS there",
    [ident(schema), nameIn(schema)],
  );
  if (found?.there) return;
  // IF NOT EXISTS asks for the right to make schemas where there is nothing to make.
  if (!found?.place) await link.run(`CREATE SCHEMA ${ident(schema)}`);
  await link.run(
    `CREATE TABLE ${nameIn(schema)} (sync_id text NOT NULL, stream text NOT NULL, state jsonb, schema jsonb, ` +
      "updated_at timestamptz NOT NULL DEFAULT now(), PRIMARY KEY (sync_id, stream))",
  );
}

export async function writeState(
  link: PostgresLink,
  schema: string,
  key: { readonly syncId: string; readonly stream: string },
  state: StreamState | null,
  sourceSchema: TableSchema,
): Promise<void> {
  const json = (value: unknown) => (value === null ? "NULL" : `${literal(JSON.stringify(value))}::jsonb`);
  await link.run(
    `INSERT INTO ${nameIn(schema)} (sync_id, stream, state, schema, updated_at) VALUES (${literal(key.syncId)}, ${literal(key.stream)}, ${json(state)}, ${json(sourceSchema)}, now()) ` +
      "ON CONFLICT (sync_id, stream) DO UPDATE SET state = EXCLUDED.state, schema = EXCLUDED.schema, updated_at = EXCLUDED.updated_at",
  );
}
