// For every key the place of its last row: in memory as long as they are few, else in a SQLite file of the run's own.
import { rmSync } from "node:fs";
import type { DatabaseSync, StatementSync } from "node:sqlite";

const HELD_KEYS = 200_000;
const HELD_LENGTH = 32 << 20;

export interface KeyTable {
  set(key: string, place: number): void;
  get(key: string): number | undefined;
  remove(): void;
}

/** `heldKeys`: how many stay in memory. */
export async function openKeyTable(path: string, heldKeys = HELD_KEYS): Promise<KeyTable> {
  const { DatabaseSync } = await import("node:sqlite");
  let held = new Map<string, number>();
  let length = 0;
  let db: DatabaseSync | null = null;
  let find: StatementSync | null = null;
  // Of a run that was killed.
  rmSync(path, { force: true });
  const spill = () => {
    if (!db) {
      db = new DatabaseSync(path);
      db.exec(
        "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA locking_mode = EXCLUSIVE; PRAGMA cache_size = -65536;" +
          "CREATE TABLE keys (key TEXT PRIMARY KEY, place INTEGER) WITHOUT ROWID",
      );
    }
    const put = db.prepare("INSERT INTO keys VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET place = excluded.place");
    db.exec("BEGIN");
    // In the order of the index, whose pages are then written once each.
    for (const key of [...held.keys()].sort()) put.run(key, held.get(key) ?? 0);
    db.exec("COMMIT");
    find ??= db.prepare("SELECT place FROM keys WHERE key = ?");
    held = new Map();
    length = 0;
  };
  return {
    set: (key, place) => {
      if (!held.has(key)) length += key.length;
      held.set(key, place);
      if (held.size >= heldKeys || length >= HELD_LENGTH) spill();
    },
    // What is held is newer.
    get: (key) => held.get(key) ?? (find?.get(key) as { place: number } | undefined)?.place,
    remove: () => {
      db?.close();
      db = null;
      rmSync(path, { force: true });
    },
  };
}
