// The databases of magic.yaml, opened when a controller first asks and shared by all that may.
import { statSync } from "node:fs";
import { resolve } from "node:path";
import { MagicError } from "#contract/errors.ts";
import { databaseFile, stateFolder } from "#shared/paths.ts";
import type { DatabaseTarget } from "../../ports.ts";
import type { Driver, Mode } from "./driver.ts";

export interface Databases {
  /** One at a time for each name and mode: where the target has changed, the old one ends when it is given back. */
  driver(name: string, target: DatabaseTarget, mode: Mode): Promise<Driver>;
  close(): Promise<void>;
}

interface Opened {
  readonly place: string;
  readonly driver: Promise<Driver>;
}

export function openDatabases(root: string): Databases {
  const open = new Map<string, Opened>();
  const end = ({ driver }: Opened) => driver.then((one) => one.close()).catch(() => {});
  return {
    driver(name, target, mode) {
      const key = `${mode} ${name}`;
      const place = `${target.url} ${target.address ?? ""}`;
      const known = open.get(key);
      if (known?.place === place) return known.driver;
      if (known) void end(known);
      const opened = { place, driver: openDriver(root, target, mode) };
      open.set(key, opened);
      opened.driver.catch(() => {
        if (open.get(key) === opened) open.delete(key);
      });
      return opened.driver;
    },
    async close() {
      const all = [...open.values()];
      open.clear();
      await Promise.all(all.map(end));
    },
  };
}

/** Drivers are loaded with the first database of their kind. */
async function openDriver(root: string, { url, address }: DatabaseTarget, mode: Mode): Promise<Driver> {
  if (/^postgres(ql)?:/.test(url)) return (await import("./postgres.ts")).openPostgres(url, mode, address);
  if (/^(mysql|mariadb):/.test(url))
    return (await import("./mysql.ts")).openMysql(url.replace(/^mariadb:/, "mysql:"), mode, address);
  if (url.startsWith("sqlite:")) {
    const path = url.slice("sqlite:".length).replace(/^\/\//, "");
    if (path !== ":memory:") refuseOwn(resolve(root, path), root);
    return (await import("./sqlite.ts")).openSqlite(path === ":memory:" ? path : resolve(root, path), mode);
  }
  throw new MagicError("config_invalid", "the database's url must begin with postgres://, mysql:// or sqlite:");
}

// Whoever writes to it makes keys and versions of his own. It is the file that counts: links lead to it under any name.
function refuseOwn(file: string, root: string): void {
  const [asked, own] = [file, databaseFile(stateFolder(root))].map((path) =>
    statSync(path, { bigint: true, throwIfNoEntry: false }),
  );
  if (own !== undefined && asked?.ino === own.ino && asked.dev === own.dev)
    throw new MagicError("capability_denied", "the database is the daemon's own: let magic.yaml name another file");
}
