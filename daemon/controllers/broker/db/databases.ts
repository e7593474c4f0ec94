// The databases of magic.yaml, opened when a controller first asks and shared by all that may.
import { resolve } from "node:path";
import { MagicError } from "#contract/errors.ts";
import type { DatabaseTarget } from "../../ports.ts";
import type { Driver, Mode } from "./driver.ts";

export interface Databases {
  driver(target: DatabaseTarget, mode: Mode): Promise<Driver>;
  close(): Promise<void>;
}

export function openDatabases(root: string): Databases {
  const open = new Map<string, Promise<Driver>>();
  return {
    driver({ url }, mode) {
      const key = `${mode} ${url}`;
      let driver = open.get(key);
      if (!driver) {
        driver = openDriver(root, url, mode);
        open.set(key, driver);
        driver.catch(() => open.delete(key));
      }
      return driver;
    },
    async close() {
      const all = [...open.values()];
      open.clear();
      await Promise.all(all.map((driver) => driver.then((one) => one.close()).catch(() => {})));
    },
  };
}

/** Drivers are loaded with the first database of their kind. */
async function openDriver(root: string, url: string, mode: Mode): Promise<Driver> {
  if (/^postgres(ql)?:/.test(url)) return (await import("./postgres.ts")).openPostgres(url, mode);
  if (/^(mysql|mariadb):/.test(url))
    return (await import("./mysql.ts")).openMysql(url.replace(/^mariadb:/, "mysql:"), mode);
  if (url.startsWith("sqlite:")) {
    const path = url.slice("sqlite:".length).replace(/^\/\//, "");
    return (await import("./sqlite.ts")).openSqlite(path === ":memory:" ? path : resolve(root, path), mode);
  }
  throw new MagicError("config_invalid", "the database's url must begin with postgres://, mysql:// or sqlite:");
}
