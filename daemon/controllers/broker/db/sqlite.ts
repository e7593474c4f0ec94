// SQLite for db:query: the file is opened in a thread, because a statement blocks; a thread whose time is over is ended.
import { Worker } from "node:worker_threads";
import { MagicError } from "#contract/errors.ts";
import { caps, type Driver, type Mode, type QueryAnswer, type Session } from "./driver.ts";
import { openSlots } from "./slots.ts";
import { questionMarks } from "./statement.ts";

/** What goes to the thread. */
export type SqliteRequest =
  | { readonly kind: "begin" | "commit" | "rollback" }
  | { readonly kind: "query"; readonly sql: string; readonly params: readonly unknown[] };

export type SqliteReply =
  | { readonly ok: true; readonly answer: QueryAnswer | null }
  | { readonly ok: false; readonly code: "upstream_error" | "limit_exceeded"; readonly message: string };

export interface SqliteOptions {
  readonly file: string;
  readonly mode: Mode;
}

interface Thread {
  ask(request: SqliteRequest): Promise<QueryAnswer | null>;
  end(): void;
}

export function openSqlite(file: string, mode: Mode): Driver {
  // Writers wait for each other anyway; readers may be several.
  const slots = openSlots(mode === "write" ? 1 : caps.sessions);
  const idle: Thread[] = [];

  function session(thread: Thread): Session {
    let given = false;
    const give = (keep: boolean): void => {
      if (given) return;
      given = true;
      if (keep) idle.push(thread);
      else thread.end();
      slots.give();
    };
    return {
      async query(sql, params) {
        const marked = questionMarks(sql, params);
        return (await thread.ask({ kind: "query", ...marked })) ?? { rows: [], row_count: 0 };
      },
      commit: async () => void (await thread.ask({ kind: "commit" })),
      async release() {
        await thread.ask({ kind: "rollback" }).then(
          () => give(true),
          () => give(false),
        );
      },
      destroy: () => give(false),
    };
  }

  return {
    async begin(signal) {
      await slots.take(signal);
      const thread = idle.pop() ?? startThread({ file, mode });
      try {
        await thread.ask({ kind: "begin" });
        return session(thread);
      } catch (error) {
        slots.give();
        thread.end();
        throw error;
      }
    },
    async close() {
      for (const thread of idle.splice(0)) thread.end();
    },
  };
}

function startThread(options: SqliteOptions): Thread {
  const worker = new Worker(new URL(import.meta.resolve("#entry/sqlite-query")), {
    workerData: options,
    name: "db:query",
    resourceLimits: { maxOldGenerationSizeMb: 256 },
  });
  worker.unref();
  let waiting: PromiseWithResolvers<QueryAnswer | null> | null = null;
  let dead: MagicError | null = null;
  const die = (message: string): void => {
    dead ??= new MagicError("upstream_error", `the database's thread ended: ${message}`);
    waiting?.reject(dead);
    waiting = null;
  };
  worker.on("message", (reply: SqliteReply) => {
    const caller = waiting;
    waiting = null;
    if (reply.ok) caller?.resolve(reply.answer);
    else caller?.reject(new MagicError(reply.code, reply.message));
  });
  worker.on("error", (error) => die((error as Error).message));
  worker.on("exit", () => die("it was stopped"));
  return {
    ask(request) {
      if (dead) return Promise.reject(dead);
      waiting = Promise.withResolvers();
      worker.postMessage(request);
      return waiting.promise;
    },
    end: () => void worker.terminate(),
  };
}
