// The state's two databases: SQLite, and a real Postgres that the tests of one file share.
import { afterAll, beforeAll } from "vitest";
import type { Storage } from "#daemon/storage/storage.ts";
import { postgresMissing, startPostgres, type TestPostgres } from "./postgres.ts";
import { temporaryStorage } from "./temporary.ts";

export interface SharedPostgres {
  /** For `test.skipIf`. */
  readonly missing: boolean;
  /** From the first test on. */
  readonly server: TestPostgres;
}

/** Called where a file's tests are declared: started before them, and stopped after them. */
export function sharedPostgres(): SharedPostgres {
  const missing = postgresMissing();
  let server: TestPostgres | undefined;
  if (!missing) {
    beforeAll(async () => {
      server = await startPostgres();
    });
    afterAll(() => server?.stop());
  }
  return {
    missing,
    get server() {
      if (!server) throw new Error("no Postgres was started");
      return server;
    },
  };
}

export interface Dialect {
  readonly name: "sqlite" | "postgres";
  /** A state of its own for one test. */
  open(): Promise<Storage>;
}

/** For `describe.each`: both, or SQLite alone where there is no Postgres. */
export function dialectsWith(postgres: SharedPostgres): readonly Dialect[] {
  const sqlite: Dialect = { name: "sqlite", open: () => temporaryStorage() };
  if (postgres.missing) return [sqlite];
  const open = async () => temporaryStorage({ databaseUrl: await postgres.server.createDatabase() });
  return [sqlite, { name: "postgres", open }];
}
