// PostgreSQL for db:query. Each use is one transaction of a session that keeps nothing: READ ONLY where the grant says read, rolled back
// in the end, so that no setting of it lives on. A login that could reach beyond the database is refused.
import type { Socket } from "node:net";
import pg from "pg";
import { MagicError } from "#contract/errors.ts";
import { pinnedSocket } from "#daemon/egress/pinned-socket.ts";
import {
  caps,
  type Driver,
  ENDED,
  type Mode,
  type QueryAnswer,
  RELEASE_WITHIN_MS,
  type Session,
  STATEMENT_TIMEOUT_MS,
} from "./driver.ts";
import { driverValue, openMeter, refused, wireValue } from "./meter.ts";
import { BEGIN_WITHIN_MS, patiently } from "./patience.ts";
import { openReaper } from "./reaper.ts";
import { openSlots } from "./slots.ts";
import { countBytes } from "./wire-cap.ts";

const IDLE_MS = 30_000;

/**
 * A superuser turns a read-only session into COPY ... TO PROGRAM and pg_read_file; so do these roles' members, and whoever may become one:
 * a statement can take on every role that the login is a member of, and the login itself where a setting gave it another.
 */
const REACH = `select exists (select from pg_roles where pg_has_role(session_user, oid, 'member') and (rolsuper or rolname in
  ('pg_execute_server_program', 'pg_read_server_files', 'pg_write_server_files'))) as reach`;

/** When the session of this number began: behind a balancer another server may have one of the same number. */
const BEGAN = "select extract(epoch from backend_start)::text from pg_stat_activity where pid";

/** Text forms that lose nothing and that READ knows, whatever the server, the database or the login has set. */
const AS_READ = "SET LOCAL bytea_output = 'hex'; SET LOCAL extra_float_digits = 3; SET LOCAL DateStyle = 'ISO'";

/** Booleans, floats and JSON as such; everything else, int8 and numeric above all, as the database writes it. */
const READ = new Map<number, (text: string) => unknown>([
  [16, (text) => text === "t"],
  ...[21, 23, 26, 700, 701].map((oid) => [oid, (text: string) => wireValue(Number(text))] as const),
  ...[114, 3802].map((oid) => [oid, (text: string) => JSON.parse(text) as unknown] as const),
  [1184, rfc3339],
  [17, (text) => Buffer.from(text.slice(2), "hex").toString("base64")],
]);

/** Its declaration says otherwise. */
const arrays = pg.types.arrayParser as unknown as {
  create(text: string, read: (member: string) => unknown): { parse(): unknown[] };
};

/** Arrays, by the type of their members. */
const MEMBERS = new Map(
  [
    "1000:16 1001:17 1005:21 1007:23 1016:20 1028:26 1021:700 1022:701 1231:1700 1002:18 1003:19 1009:25 1014:1042 1015:1043",
    "2951:2950 199:114 3807:3802 1182:1082 1183:1083 1270:1266 1115:1114 1185:1184 1187:1186 1041:869 651:650",
  ].flatMap((line) => line.split(" ").map((pair) => pair.split(":").map(Number) as [number, number])),
);

const types = {
  getTypeParser: (oid: number) => {
    const member = MEMBERS.get(oid);
    if (member === undefined) return READ.get(oid) ?? asWritten;
    const read = READ.get(member) ?? asWritten;
    return (text: string) => arrays.create(text, read).parse();
  },
};

function asWritten(text: string): string {
  return text;
}

function rolledBack(): MagicError {
  return new MagicError("upstream_error", "the database rolled the transaction back: a statement of it had failed");
}

function rfc3339(text: string): string {
  const time = new Date(text.replace(" ", "T").replace(/([+-]\d\d)$/, "$1:00"));
  if (Number.isNaN(time.getTime())) return text;
  // A Date ends at milliseconds, Postgres at microseconds: what is compared with the row's own time has to be all of it.
  const micros = /\.(\d{4,6})/.exec(text)?.[1];
  return micros === undefined ? time.toISOString() : time.toISOString().replace(/\.\d{3}Z$/, `.${micros}Z`);
}

/** A session at the server: its number, and when it began. */
interface Running {
  readonly pid: number;
  readonly began: string;
}

interface Held {
  readonly client: pg.Client;
  timer: NodeJS.Timeout | null;
}

export function openPostgres(url: string, mode: Mode, address?: string): Driver {
  const slots = openSlots(caps.sessions);
  const idle: Held[] = [];
  let closed = false;
  // Ended, not cancelled: a DO block can catch the latter, and do without a statement_timeout.
  const reap = openReaper<Running>(async (left, signal) => {
    const client = await connect();
    const late = (): void => void client.end().catch(() => {});
    signal.addEventListener("abort", late);
    if (signal.aborted) return late();
    await client
      .query(
        `select pg_terminate_backend(pid) from unnest($1::int[], $2::text[]) as session (pid, began) where began = (${BEGAN} = session.pid)`,
        [left.map(({ pid }) => pid), left.map(({ began }) => began)],
      )
      .finally(() => void client.end().catch(() => {}));
  });

  /** What a session's server knows it by; a pooler in between has numbers of its own, and no session here is known. */
  const known = new WeakMap<pg.Client, Running>();

  async function connect(caller?: AbortSignal): Promise<pg.Client> {
    const client = new pg.Client({
      connectionString: url,
      ...(address !== undefined && { stream: () => pinnedSocket(address) }),
      statement_timeout: STATEMENT_TIMEOUT_MS,
      connectionTimeoutMillis: 10_000,
      application_name: "magic db:query",
      types: types as never,
      ...(mode === "read" && { options: "-c default_transaction_read_only=on" }),
    });
    // The server of a connection is its maker's choice: the password of PGPASSWORD or ~/.pgpass is not for it.
    if (address !== undefined && !URL.parse(url)?.password) Object.assign(client, { password: async () => "" });
    client.on("error", () => {});
    const look = async () => {
      await client.connect();
      return await client.query<{ reach: boolean; pid: number; began: string | null }>(
        `${REACH}, pg_backend_pid() as pid, (${BEGAN} = pg_backend_pid()) as began`,
      );
    };
    try {
      const { rows } = await patiently(() => socketOf(client).destroy(), look, BEGIN_WITHIN_MS, caller);
      const [row] = rows;
      if (row?.reach !== false)
        throw new MagicError(
          "capability_denied",
          "the database login is a superuser, or may run programs or touch files on its server: a read-only session would not hold it; use a plain role",
        );
      const { pid, began } = row;
      if (began !== null && pid === processOf(client)) known.set(client, { pid, began });
      return client;
    } catch (error) {
      void client.end().catch(() => {});
      throw error instanceof MagicError ? error : refused(error);
    }
  }

  function keep(client: pg.Client): void {
    const held: Held = { client, timer: null };
    held.timer = setTimeout(() => {
      idle.splice(idle.indexOf(held), 1);
      void client.end().catch(() => {});
    }, IDLE_MS).unref();
    idle.push(held);
  }

  async function open(caller: AbortSignal): Promise<pg.Client> {
    const held = idle.pop();
    if (held?.timer) clearTimeout(held.timer);
    if (held)
      try {
        return await enter(held.client, caller);
      } catch (error) {
        // The server has ended it meanwhile.
        if (caller.aborted) throw error;
      }
    return await enter(await connect(caller), caller);
  }

  /** Opens the transaction, or ends the session. */
  async function enter(client: pg.Client, caller: AbortSignal): Promise<pg.Client> {
    // A read-only transaction can be made writable until its first query: this is it.
    const begin = mode === "read" ? `BEGIN READ ONLY; ${AS_READ}; SELECT 1` : `BEGIN; ${AS_READ}`;
    try {
      await patiently(
        () => socketOf(client).destroy(),
        () => client.query(begin),
        BEGIN_WITHIN_MS,
        caller,
      );
      return client;
    } catch (error) {
      void client.end().catch(() => {});
      throw error;
    }
  }

  function session(client: pg.Client): Session {
    let open = true;
    let given = false;
    let running = 0;
    const destroy = (): void => {
      open = false;
      if (given) return;
      given = true;
      socketOf(client).destroy();
      const left = running > 0 ? known.get(client) : undefined;
      if (left) void reap(left).then(slots.give);
      else slots.give();
    };
    return {
      async query(sql, params) {
        try {
          running++;
          const answer = await stream(
            client,
            sql,
            params.map((value) => driverValue(value)),
            () => running--,
          );
          // Whatever the statement's text hid: outside the broker's transaction nothing more is sent.
          if (client.getTransactionStatus() === "I") throw new MagicError("invalid_request", ENDED);
          return answer;
        } catch (error) {
          if (error instanceof MagicError) {
            destroy();
            throw error;
          }
          throw refused(error);
        }
      },
      // PostgreSQL before 16 lets large objects be written where nothing may be, and sends a NOTIFY: what reads has nothing to commit.
      async commit() {
        if (mode === "read") {
          if (client.getTransactionStatus() === "E") throw rolledBack();
          return;
        }
        const { command } = await patiently(
          () => socketOf(client).destroy(),
          () => client.query("COMMIT"),
          STATEMENT_TIMEOUT_MS,
        ).catch((error: unknown) => {
          throw refused(error);
        });
        open = false;
        // What failed inside of it was caught and passed over; the server says so in no other way.
        if (command !== "COMMIT") throw rolledBack();
      },
      async release() {
        if (given) return;
        const late = setTimeout(destroy, RELEASE_WITHIN_MS);
        try {
          if (open) await client.query("ROLLBACK");
          // Settings, temporary tables, advisory locks and prepared statements are the next caller's business no more.
          await client.query("DISCARD ALL");
          if (given) return;
          given = true;
          slots.give();
          if (closed) void client.end().catch(() => {});
          else keep(client);
        } catch {
          destroy();
        } finally {
          clearTimeout(late);
        }
      },
      destroy,
    };
  }

  return {
    async begin(signal, _many, free = signal) {
      await slots.take(free);
      try {
        return session(await open(signal));
      } catch (error) {
        slots.give();
        throw error instanceof MagicError ? error : refused(error);
      }
    },
    async close() {
      closed = true;
      await Promise.all(
        idle.splice(0).map(({ client, timer }) => {
          if (timer) clearTimeout(timer);
          return client.end().catch(() => {});
        }),
      );
    },
  };
}

/** Runs one statement (the extended protocol takes no second), its rows counted as they come. `onOver`: the server has ended it. */
function stream(client: pg.Client, text: string, values: readonly unknown[], onOver: () => void): Promise<QueryAnswer> {
  return new Promise((resolve, reject) => {
    const meter = openMeter();
    const uncounted = countBytes(socketOf(client), reject);
    // queryMode: without it a statement without parameters would go by the simple protocol, which takes several at once.
    const query = new pg.Query({ text, values: [...values], types, queryMode: "extended" } as never);
    query.on("row", (row: Record<string, unknown>) => {
      try {
        meter.add(row);
      } catch (error) {
        reject(error);
      }
    });
    query.on("end", (result) => {
      uncounted();
      onOver();
      resolve({ rows: meter.rows, row_count: result?.rowCount ?? meter.rows.length });
    });
    query.on("error", (error) => {
      uncounted();
      onOver();
      reject(error);
    });
    client.query(query as never);
  });
}

function socketOf(client: pg.Client): Socket {
  return (client as unknown as { connection: { stream: Socket } }).connection.stream;
}

function processOf(client: pg.Client): number {
  return (client as unknown as { processID: number }).processID;
}
