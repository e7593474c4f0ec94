// The state of a root, as everything else in the daemon sees it. open.ts opens one.
import type { Units } from "./client.ts";
import type { DialectName } from "./dialect.ts";

export interface Storage {
  readonly units: Units;
  readonly dialect: DialectName;
  /** Resolves when there is a database that may be written to. @throws the error that a unit would meet. */
  check(): Promise<void>;
  /** Waits for the units under way, then closes. */
  close(): Promise<void>;
}

export interface StorageOptions {
  /** The root whose `.magic/magic.db` holds the state, where no `databaseUrl` is given. */
  readonly root: string;
  /** `postgres://...`: all state there instead. */
  readonly databaseUrl?: string | undefined;
  /** A cap for the SQLite file, in pages of 4 KiB; beyond it a write is `storage_full`, as on a full disk. */
  readonly maxPages?: number | undefined;
  /** Called once when storage has died and nothing will be answered any more. */
  readonly onFatal?: ((error: Error) => void) | undefined;
}
