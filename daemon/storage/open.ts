// Opens the state of a root: SQLite in a thread of its own, or Postgres.
import type { Storage, StorageOptions } from "./storage.ts";

/**
 * Opens and migrates.
 *
 * @throws MagicError `database_corrupt` (the file is left untouched), `state_unusable`, `storage_full`, `storage_unavailable`.
 */
export async function openStorage(options: StorageOptions): Promise<Storage> {
  if (options.databaseUrl) {
    const { openPostgres } = await import("./postgres/postgres.ts");
    return openPostgres(options.databaseUrl);
  }
  const { openSqlite } = await import("./sqlite/thread.ts");
  return openSqlite(options);
}
