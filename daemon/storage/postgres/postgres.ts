// State in Postgres: a pool, and one serializable transaction for each unit, run again when it meets another.
import { setTimeout as sleep } from "node:timers/promises";
import { type DialectAdapter, Kysely, PostgresDialect, sql } from "kysely";
import pg from "pg";
import { MagicError } from "#contract/errors.ts";
import { createTurns, type Turns } from "#shared/turns.ts";
import { unitsClient } from "../client.ts";
import { translate } from "../failure.ts";
import { findUnit, type Unit } from "../find-unit.ts";
import { parseInteger } from "../integers.ts";
import { migrate } from "../migrate.ts";
import type { Database } from "../schema.ts";
import type { Storage } from "../storage.ts";
import { guardMessages } from "./messages.ts";

// How often a unit is tried: serialization_failure, deadlock_detected, and the unique_violation that a serializable transaction
// may meet instead of them (https://www.postgresql.org/docs/current/mvcc-serialization-failure-handling.html). A key that is
// really taken is refused again at once, so that one gets fewer tries. At too_many_connections one of the pool's may soon be free.
const attempts: Readonly<Record<string, number>> = { "40001": 12, "40P01": 12, "23505": 4, "53300": 8 };
// Its word that a COMMIT kept nothing: those of above, and query_canceled.
const undone: ReadonlySet<unknown> = new Set(["40001", "40P01", "57014"]);
// Any number that is ours: the key of the advisory lock under which one replica migrates while the others wait.
const MIGRATION_LOCK = 4_141_000_001;

interface Bounds {
  /** How long one waits for a connection, */
  readonly connectMs: number;
  /** and who has a connection for a server that says nothing at all. */
  readonly heldMs: number;
}
interface UnitBounds extends Bounds {
  /** How long the server waits for a lock or whatever else holds a statement up. */
  readonly statementMs: number;
}
const ofUnits: UnitBounds = { connectMs: 10_000, statementMs: 15_000, heldMs: 20_000 };
const ofChecks: Bounds = { connectMs: 2_000, heldMs: 2_000 };

// A pool makes its clients itself.
class GuardedClient extends pg.Client {
  constructor(config?: pg.ClientConfig) {
    super(config);
    guardMessages(this);
  }
}

export async function openPostgres(connectionString: string, bounds: UnitBounds = ofUnits): Promise<Storage> {
  await migrateOnce(connectionString);
  // A pooler hands the server's sessions from one to another: what is set for a session there would hold for strangers, and theirs for us.
  let pooler = false;
  // Whoever reads a table from end to end meets everyone who writes to it, and while tables are small that is what is planned. Where it
  // must be done all the same, its cost looks worth a compilation, which takes longer than the query.
  const settings = { statement_timeout: bounds.statementMs, enable_seqscan: "off", jit: "off" };
  const locally = Object.entries(settings)
    .map(([name, value]) => `set local ${name} = ${value}`)
    .join("; ");
  const limit = async (client: pg.ClientBase): Promise<void> => {
    const set = Object.entries(settings).map(([name, value]) => `set_config('${name}', '${value}', false)`);
    const direct = `select ${set.join(", ")} where pg_backend_pid() = ${numberOf(client)}`;
    const { rows } = await client.query({ text: direct, query_timeout: bounds.connectMs } as pg.QueryConfig);
    pooler = rows.length === 0;
  };
  const pool = poolOf({ connectionString, max: 10, types: { getTypeParser }, onConnect: limit }, bounds);
  // A connection of its own, which is kept: that all others are busy does not mean that the server is away.
  const probe = poolOf({ connectionString, max: 1, idleTimeoutMillis: 0 }, ofChecks);
  const db = new Kysely<Database>({ dialect: new PostgresDialect({ pool }) });

  const meetings = createTurns();

  // Once units of a name have met, all of that name come one after another until none waits: together they would only meet again.
  async function runUnit(name: string, unit: Unit, args: unknown): Promise<unknown> {
    let leave = meetings.taken(name) ? await queueUp(meetings, name, bounds.connectMs) : undefined;
    const tryAgain = async (attempt: number): Promise<void> => {
      if (leave === undefined) leave = await queueUp(meetings, name, bounds.connectMs);
      else await sleep(Math.random() * 4 * 2 ** Math.min(attempt, 6));
    };
    try {
      return await untilAlone(unit, args, tryAgain);
    } finally {
      leave?.();
    }
  }

  async function untilAlone(unit: Unit, args: unknown, tryAgain: (attempt: number) => Promise<void>): Promise<unknown> {
    for (let attempt = 1; ; attempt++) {
      let committing = false;
      try {
        return await db
          .transaction()
          .setIsolationLevel("serializable")
          .execute(async (transaction) => {
            if (pooler) await sql.raw(locally).execute(transaction);
            const result = await unit(transaction, args);
            committing = true;
            return result;
          });
      } catch (error) {
        const code = (error as { code?: unknown }).code;
        if (typeof code !== "string" || attempt >= (attempts[code] ?? 1)) {
          const known = translate(error);
          const open = committing && known?.code === "storage_unavailable" && !undone.has(code);
          throw open ? uncertain(error) : (known ?? error);
        }
        await tryAgain(attempt);
      }
    }
  }

  const units = unitsClient(async (noun, unit, args) => runUnit(`${noun}.${unit}`, findUnit(noun, unit), args));
  return {
    units,
    dialect: "postgres",
    async check() {
      const { rows } = await probe.query("show transaction_read_only");
      if (rows[0]?.transaction_read_only === "on")
        throw new MagicError("storage_unavailable", "the Postgres that holds the state can only be read");
    },
    async close() {
      await Promise.all([db.destroy(), probe.end()]);
    },
  };
}

function poolOf(config: pg.PoolConfig, { connectMs, heldMs }: Bounds): pg.Pool {
  const pool = new pg.Pool({ ...config, Client: GuardedClient, connectionTimeoutMillis: connectMs, keepAlive: true });
  // A connection that breaks is replaced by the next call, and the query under way says so: without listeners it would end the process,
  // idle or, between two statements of a unit, in use.
  pool.on("error", () => {});
  pool.on("connect", (client) => client.on("error", () => {}));
  // A server that is frozen, or that a network has forgotten, answers nothing and closes nothing: such a connection is given up.
  const ends = new Map<pg.PoolClient, NodeJS.Timeout>();
  pool.on("connect", (client) => client.connection.stream.on("data", () => ends.get(client)?.refresh()));
  pool.on("acquire", (client) => {
    ends.set(client, setTimeout(() => client.connection.stream.destroy(), heldMs).unref());
  });
  pool.on("release", (_error, client) => {
    clearTimeout(ends.get(client));
    ends.delete(client);
  });
  return pool;
}

// Not for ever: the turns spare meetings, and whoever has waited that long may as well meet others.
async function queueUp(turns: Turns, name: string, longestMs: number): Promise<() => void> {
  const turn = turns.take(name);
  await Promise.race([turn, sleep(longestMs, undefined, { ref: false })]);
  return () => void turn.then((leave) => leave());
}

/** The number by which a connection can be cancelled: the session's own, unless a pooler is in between. */
function numberOf(client: pg.ClientBase): number {
  return Number((client as pg.ClientBase & { readonly processID: number | null }).processID);
}

// The server may have committed, and only its word of that been lost.
function uncertain(cause: unknown): MagicError {
  const detail = "the Postgres that holds the state was lost before it said whether it has kept this";
  return new MagicError("storage_unavailable", detail, { cause, extra: { outcome: "unknown" } });
}

// Over a connection without bounds: a migration may take long, and another daemon waits for it.
async function migrateOnce(connectionString: string): Promise<void> {
  const pool = new pg.Pool({
    Client: GuardedClient,
    connectionString,
    max: 1,
    connectionTimeoutMillis: ofUnits.connectMs,
  });
  pool.on("error", () => {});
  pool.on("connect", (client) => client.on("error", () => {}));
  const db = new Kysely<Database>({ dialect: new UnlockedDialect({ pool }) });
  try {
    // Whatever the role's own is: a snapshot that is older than the lock would not show what its holder before made.
    const locked = db.transaction().setIsolationLevel("read committed");
    await locked.execute(async (transaction) => {
      await sql`select pg_advisory_xact_lock(${sql.lit(MIGRATION_LOCK)})`.execute(transaction);
      await migrate(transaction, "postgres");
    });
  } catch (error) {
    throw translate(error) ?? error;
  } finally {
    await db.destroy();
  }
}

// Kysely's own lock is a session's: given back in another session, where a pooler is in between, it stays and holds up every later start.
class UnlockedDialect extends PostgresDialect {
  override createAdapter(): DialectAdapter {
    const none = async (): Promise<void> => {};
    return Object.assign(super.createAdapter(), { acquireMigrationLock: none, releaseMigrationLock: none });
  }
}

const { INT8, NUMERIC } = pg.types.builtins;

function getTypeParser(oid: number, format?: "text" | "binary"): unknown {
  if (format !== "binary" && (oid === INT8 || oid === NUMERIC)) return parseInteger;
  return pg.types.getTypeParser(oid, format as "text");
}
