// A PostgreSQL cluster that has given out more than 2^31 transaction numbers: rows frozen long ago are not taken for new ones.
import { execFileSync, spawn } from "node:child_process";
import { chownSync, existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { expect, test } from "vitest";
import { findPostgres } from "#test/postgres.ts";
import { connect, sync } from "./harness.ts";

const found = findPostgres();
const bin = "bin" in found ? found.bin : "";

test.skipIf(!existsSync(join(bin, "pg_resetwal")) || process.getuid?.() !== 0)(
  "rows frozen two thousand million transactions ago are appended once",
  async () => {
    const folder = mkdtempSync(join(tmpdir(), "magic-wrap-"));
    const data = join(folder, "data");
    const [uid, gid] = ["-u", "-g"].map((flag) => Number(execFileSync("id", [flag, "nobody"]))) as [number, number];
    const own = (path: string) => chownSync(path, uid, gid);
    const run = (name: string, ...args: string[]) =>
      execFileSync(join(bin, name), args, {
        uid,
        gid,
        cwd: folder,
        stdio: "pipe",
        env: { ...process.env, LC_ALL: "C" },
      });
    const url = (database: string) => `postgres://postgres@localhost/${database}?host=${folder}`;
    mkdirSync(data);
    for (const path of [folder, data]) own(path);
    run("initdb", "-D", data, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--no-sync");
    const begin = async () => {
      const options = ["listen_addresses=", "fsync=off", "autovacuum=off"].flatMap((pair) => ["-c", pair]);
      const child = spawn(join(bin, "postgres"), ["-D", data, "-k", folder, ...options], { uid, gid, stdio: "ignore" });
      for (let tries = 0; tries < 400; tries++)
        try {
          await (await connect(url("postgres"))).end();
          return child;
        } catch {
          await sleep(50);
        }
      throw new Error("postgres did not come up");
    };
    let server = await begin();
    const stop = async () => {
      const gone = new Promise((resolve) => server.once("exit", resolve));
      server.kill("SIGINT");
      await gone;
    };
    const sql = (database: string, ...texts: string[]) =>
      run("psql", "-h", folder, "-U", "postgres", "-q", "-d", database, ...texts.flatMap((text) => ["-c", text]));
    try {
      sql("postgres", "CREATE TABLE t (id int, c int); INSERT INTO t VALUES (1, 1), (2, 2)", "CREATE DATABASE dst");
      sql("postgres", "ALTER DATABASE template0 ALLOW_CONNECTIONS true");
      for (const next of [2_000_000_000, 3_000_000_000]) {
        run("vacuumdb", "-h", folder, "-U", "postgres", "--all", "--freeze");
        await stop();
        // The commit log of the numbers to come: 2^20 of them a file.
        const log = join(
          data,
          "pg_xact",
          Math.floor(next / 2 ** 20)
            .toString(16)
            .toUpperCase()
            .padStart(4, "0"),
        );
        writeFileSync(log, Buffer.alloc(1 << 18));
        own(log);
        run("pg_resetwal", "-f", "-x", String(next), "-D", data);
        server = await begin();
      }
      run("vacuumdb", "-h", folder, "-U", "postgres", "--all", "--freeze");
      const ends = { from: url("postgres"), object: "t", to: url("dst"), table: "t" };
      const append = () => sync(ends, { mode: "incremental", cursor_field: "c" });
      expect((await append()).error).toBeNull();
      sql("postgres", "INSERT INTO t VALUES (3, 3)");
      expect(await append()).toMatchObject({ error: null, records_read: 1 });
    } finally {
      await stop();
      rmSync(folder, { recursive: true, force: true });
    }
  },
);
