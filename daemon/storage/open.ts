// Opens the state of a root: SQLite in a thread of its own, or Postgres.
import { MagicError } from "#contract/errors.ts";
import type { Storage, StorageOptions } from "./storage.ts";

/**
 * Opens and migrates.
 *
 * @throws MagicError `config_invalid` (an address of something else), `database_corrupt` (the file is left untouched), `state_unusable`, `storage_full`, `storage_unavailable`.
 */
export async function openStorage(options: StorageOptions): Promise<Storage> {
  if (options.databaseUrl) {
    // The driver takes any other scheme for its own. A path is a socket's folder.
    if (!/^(?:postgres(?:ql)?:|socket:|\/)/.test(options.databaseUrl))
      throw wrongUrl("must begin with postgres:// or postgresql://");
    const { openPostgres } = await import("./postgres/postgres.ts");
    return openPostgres(options.databaseUrl).catch((error) => {
      if (error.code !== "ERR_INVALID_URL") throw error;
      throw wrongUrl("is no URL: what its user or password has of :/?#[]@ is written as %3A, %2F, ...");
    });
  }
  const { openSqlite } = await import("./sqlite/thread.ts");
  return openSqlite(options);
}

function wrongUrl(why: string): MagicError {
  const next = "Correct it, or leave it out: the state is then in .magic/magic.db.";
  return new MagicError("config_invalid", `MAGIC_DATABASE_URL ${why}.`, { extra: { next } });
}
