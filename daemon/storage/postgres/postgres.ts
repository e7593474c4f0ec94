// State in Postgres: a pool, and one serializable transaction for each unit, run again when it meets another.
import { setTimeout as sleep } from "node:timers/promises";
import { Kysely, PostgresDialect } from "kysely";
import pg from "pg";
import { MagicError } from "#contract/errors.ts";
import { unitsClient } from "../client.ts";
import { translate } from "../failure.ts";
import { findUnit, type Unit } from "../find-unit.ts";
import { parseInteger } from "../integers.ts";
import { migrate } from "../migrate.ts";
import type { Database } from "../schema.ts";
import type { Storage } from "../storage.ts";

// How often a unit is tried: serialization_failure, deadlock_detected, and the unique_violation that a serializable transaction
// may meet instead of them (https://www.postgresql.org/docs/current/mvcc-serialization-failure-handling.html). A key that is
// really taken is refused again at once, so that one gets fewer tries.
const attempts: Readonly<Record<string, number>> = { "40001": 12, "40P01": 12, "23505": 4 };
// Any number that is ours: the key of the advisory lock under which one replica migrates while the others wait.
const migrationLock = 4_141_000_001;

export async function openPostgres(connectionString: string): Promise<Storage> {
  const pool = new pg.Pool({
    ...{ connectionString, max: 10, types: { getTypeParser } },
    ...{ connectionTimeoutMillis: 10_000, keepAlive: true },
  });
  // A connection that breaks is replaced by the next call, and the query under way says so: without listeners it would end the process,
  // idle or, between two statements of a unit, in use.
  pool.on("error", () => {});
  pool.on("connect", (client) => client.on("error", () => {}));
  const db = new Kysely<Database>({ dialect: new PostgresDialect({ pool }) });
  try {
    await migrateOnce(pool, db);
  } catch (error) {
    await db.destroy();
    throw translate(error) ?? error;
  }

  async function runUnit(unit: Unit, args: unknown): Promise<unknown> {
    for (let attempt = 1; ; attempt++) {
      let committing = false;
      try {
        return await db
          .transaction()
          .setIsolationLevel("serializable")
          .execute(async (transaction) => {
            const result = await unit(transaction, args);
            committing = true;
            return result;
          });
      } catch (error) {
        const code = (error as { code?: unknown }).code;
        if (typeof code !== "string" || attempt >= (attempts[code] ?? 1)) {
          const known = translate(error);
          throw known?.code === "storage_unavailable" && committing ? uncertain(error) : (known ?? error);
        }
        await sleep(Math.random() * 4 * 2 ** Math.min(attempt, 6));
      }
    }
  }

  const units = unitsClient(async (noun, unit, args) => runUnit(findUnit(noun, unit), args));
  return {
    units,
    dialect: "postgres",
    async check() {
      await units.setting.get({ key: "" });
    },
    close: () => db.destroy(),
  };
}

// The server may have committed, and only its word of that been lost.
function uncertain(cause: unknown): MagicError {
  const detail = "the Postgres that holds the state was lost before it said whether it has kept this";
  return new MagicError("storage_unavailable", detail, { cause, extra: { outcome: "unknown" } });
}

async function migrateOnce(pool: pg.Pool, db: Kysely<Database>): Promise<void> {
  const holder = await pool.connect();
  try {
    await holder.query("SELECT pg_advisory_lock($1)", [migrationLock]);
    await migrate(db, "postgres");
    await holder.query("SELECT pg_advisory_unlock($1)", [migrationLock]);
    holder.release();
  } catch (error) {
    holder.release(true);
    throw error;
  }
}

const { INT8, NUMERIC } = pg.types.builtins;

function getTypeParser(oid: number, format?: "text" | "binary"): unknown {
  if (format !== "binary" && (oid === INT8 || oid === NUMERIC)) return parseInteger;
  return pg.types.getTypeParser(oid, format as "text");
}
