// PostgreSQL for db:query. Each use is one transaction of a session that keeps nothing: READ ONLY where the grant says read, rolled back
// in the end, so that no setting of it lives on. A login that could reach beyond the database is refused.
import pg from "pg";
import { MagicError } from "#contract/errors.ts";
import { pinnedSocket } from "#daemon/egress/pinned-socket.ts";
import { guardMessages } from "#daemon/storage/postgres/messages.ts";
import { onAbort } from "#shared/abort.ts";
import { caps, type Driver, type Mode, STATEMENT_TIMEOUT_MS } from "./driver.ts";
import { refused } from "./meter.ts";
import { BEGIN_WITHIN_MS, patiently } from "./patience.ts";
import { openSession, socketOf } from "./postgres-session.ts";
import { AS_READ, types } from "./postgres-values.ts";
import { openReaper } from "./reaper.ts";
import { openSlots } from "./slots.ts";

const IDLE_MS = 30_000;

/**
 * A superuser turns a read-only session into COPY ... TO PROGRAM and pg_read_file; so do these roles' members, and whoever may become one:
 * a statement can take on every role that the login is a member of, and the login itself where a setting gave it another.
 */
const REACH = `select exists (select from pg_roles where pg_has_role(session_user, oid, 'member') and (rolsuper or rolname in
  ('pg_execute_server_program', 'pg_read_server_files', 'pg_write_server_files'))) as reach`;

/** When the session of this number began: behind a balancer another server may have one of the same number. */
const BEGAN = "select extract(epoch from backend_start)::text from pg_stat_activity where pid";

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
    onAbort(signal, () => void client.end().catch(() => {}));
    if (signal.aborted) return;
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
    guardMessages(client);
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

  return {
    async begin(signal, _many, free = signal, whose) {
      await slots.take(free, whose);
      try {
        const client = await open(signal);
        return openSession(client, mode, (reusable, running) => {
          const left = running ? known.get(client) : undefined;
          if (left) void reap(left).then(slots.give);
          else slots.give();
          if (!reusable) return;
          if (closed) void client.end().catch(() => {});
          else keep(client);
        });
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

function processOf(client: pg.Client): number {
  return (client as pg.Client & { readonly processID: number }).processID;
}
