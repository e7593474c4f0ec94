// SQLite for db:query: the file is opened in a process of its own, because a statement blocks and one without end cannot be stopped in
// any other way (a thread would run on, and hold the file's lock).
import { fork } from "node:child_process";
import type { Socket } from "node:net";
import type { SQLInputValue } from "node:sqlite";
import { fileURLToPath } from "node:url";
import { MagicError } from "#contract/errors.ts";
import { startedBehind } from "../../cell/standing.ts";
import { caps, type Driver, type Mode, type QueryAnswer, type Session } from "./driver.ts";
import { driverValue, refused } from "./meter.ts";
import { openSlots } from "./slots.ts";
import { questionMarks } from "./statement.ts";

/** What goes to the process. */
export type SqliteRequest =
  | { readonly kind: "begin" | "commit" | "rollback" }
  | { readonly kind: "query"; readonly sql: string; readonly params: readonly SQLInputValue[] };

export type SqliteReply =
  | { readonly ok: true; readonly answer: QueryAnswer | null }
  | { readonly ok: false; readonly code: "limit_exceeded" | "invalid_request"; readonly message: string }
  /** What the database said. */
  | {
      readonly ok: false;
      readonly code: "upstream_error";
      readonly message: string;
      readonly errcode: number | undefined;
    };

/** The descriptor whose other end the daemon holds as long as it lives. */
export const LIFELINE = 4;

interface Process {
  readonly alive: boolean;
  ask(request: SqliteRequest): Promise<QueryAnswer | null>;
  end(): void;
}

/** A process takes some 50 MB. */
const IDLE_MS = 60_000;

export function openSqlite(file: string, mode: Mode): Driver {
  // Writers wait for each other anyway; readers may be several.
  const slots = openSlots(mode === "write" ? 1 : caps.sessions);
  const idle = new Map<Process, NodeJS.Timeout | undefined>();
  let closed = false;

  function keep(held: Process): void {
    const rest = (): void => {
      idle.delete(held);
      held.end();
    };
    // What is in memory would go with the process.
    idle.set(held, file === ":memory:" ? undefined : setTimeout(rest, IDLE_MS).unref());
  }

  /** The one used last: those that fewer calls at once do not need come to their end. */
  function reuse(): Process | undefined {
    for (const [held, timer] of [...idle].reverse()) {
      clearTimeout(timer);
      idle.delete(held);
      if (held.alive) return held;
    }
    return undefined;
  }

  function session(held: Process): Session {
    let given = false;
    const give = (reusable: boolean): void => {
      if (given) return;
      given = true;
      if (reusable && !closed) keep(held);
      else held.end();
      slots.give();
    };
    return {
      async query(sql, params) {
        const marked = questionMarks("sqlite", sql, params);
        const request = { kind: "query", sql: marked.sql, params: marked.params.map(bindable) } as const;
        return (await held.ask(request)) ?? { rows: [], row_count: 0 };
      },
      commit: async () => void (await held.ask({ kind: "commit" })),
      async release() {
        await held.ask({ kind: "rollback" }).then(
          () => give(true),
          () => give(false),
        );
      },
      destroy: () => give(false),
    };
  }

  return {
    async begin(signal, _many, free = signal, whose) {
      await slots.take(free, whose);
      let held = reuse();
      try {
        held ??= startProcess(file, mode);
        await held.ask({ kind: "begin" });
        return session(held);
      } catch (error) {
        slots.give();
        held?.end();
        throw error;
      }
    },
    async close() {
      closed = true;
      for (let held = reuse(); held; held = reuse()) held.end();
    },
  };
}

function startProcess(file: string, mode: Mode): Process {
  const child = fork(fileURLToPath(import.meta.resolve("#entry/sqlite-query")), [file, mode], {
    env: {},
    execArgv: ["--no-warnings", "--max-old-space-size=256"],
    serialization: "advanced",
    // In a session of its own: eight that compute in the daemon's would leave it a ninth of what that has of the machine.
    detached: true,
    stdio: ["ignore", "ignore", "ignore", "ipc", "pipe"],
  });
  // It answers in the order in which it was asked; a handler need not wait for one statement before it sends the next.
  const waiting: PromiseWithResolvers<QueryAnswer | null>[] = [];
  let dead: MagicError | null = null;
  const die = (message: string): void => {
    dead ??= new MagicError("upstream_error", `the database's process ended: ${message}`);
    for (const one of waiting.splice(0)) one.reject(dead);
  };
  child.on("message", (reply: SqliteReply) => {
    const caller = waiting.shift();
    if (reply.ok) caller?.resolve(reply.answer);
    else if (reply.code === "upstream_error")
      caller?.reject(refused(Object.assign(new Error(reply.message), { errcode: reply.errcode })));
    else caller?.reject(new MagicError(reply.code, reply.message));
  });
  child.on("error", (error) => die(error.message));
  child.on("exit", () => die("it was stopped"));
  // Where there is no descriptor left it has neither a channel nor pipes, and its error is told in a moment.
  if (!child.connected) throw new MagicError("upstream_error", "the database's process cannot be started");
  if (child.pid !== undefined) void startedBehind(child.pid);
  child.unref();
  child.channel?.unref();
  const lifeline = child.stdio[LIFELINE] as Socket | null;
  lifeline?.unref();
  lifeline?.on("error", () => {});
  return {
    get alive() {
      return dead === null;
    },
    ask(request) {
      if (dead) return Promise.reject(dead);
      const answer = Promise.withResolvers<QueryAnswer | null>();
      waiting.push(answer);
      child.send(request, (error) => error && die(error.message));
      return answer.promise;
    },
    end: () => void child.kill("SIGKILL"),
  };
}

/**
 * A whole number as SQLite's own: a text column would keep 42 as `42.0`. An object as the text that it is kept as: one that nests by the
 * thousand cannot be read at the other end of the channel.
 */
function bindable(param: unknown): SQLInputValue {
  const value = driverValue(param);
  if (typeof value === "boolean") return value ? 1n : 0n;
  if (Number.isSafeInteger(value)) return BigInt(value as number);
  if (value === undefined || value === null) return null;
  if (typeof value === "string" || typeof value === "number" || value instanceof Uint8Array) return value;
  return JSON.stringify(value);
}
