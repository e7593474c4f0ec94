// A real MariaDB or MySQL for tests, where the machine has one: on a free loopback port, in a temporary folder.
import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { chownSync, existsSync, mkdtempSync, rmSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import mysql from "mysql2/promise";

export interface TestMysql {
  /** A URL of an empty database of its own, made by the call. */
  createDatabase(name?: string): Promise<string>;
  /** Ends the server and starts it again on the same data and port. */
  restart(signal?: "SIGTERM" | "SIGKILL"): Promise<void>;
  stop(): Promise<void>;
}

const installer = ["/usr/bin/mariadb-install-db", "/usr/local/bin/mariadb-install-db"].find((path) => existsSync(path));
const server = ["/usr/sbin/mariadbd", "/usr/local/bin/mariadbd", "/usr/libexec/mariadbd"].find((path) =>
  existsSync(path),
);

/** Why MySQL tests must be skipped, for `test.skipIf`; false when they can run. Says so once. */
export function mysqlMissing(): boolean {
  if (installer && server) return false;
  process.stderr.write("skipped: no MariaDB on this machine (apt-get install mariadb-server)\n");
  return true;
}

export async function startMysql(): Promise<TestMysql> {
  if (!installer || !server) throw new Error("no MariaDB on this machine");
  const folder = mkdtempSync(join(tmpdir(), "magic-my-"));
  const [uid, gid] =
    process.getuid?.() === 0 ? ["-u", "-g"].map((flag) => Number(execFileSync("id", [flag, "nobody"]))) : [];
  const identity = uid === undefined || gid === undefined ? {} : { uid, gid };
  if (uid !== undefined && gid !== undefined) chownSync(folder, uid, gid);
  const data = join(folder, "data");
  execFileSync(
    installer,
    // A tmpdir of its own: servers that are set up at the same time remove each other's temporary tables from /tmp.
    [
      "--no-defaults",
      `--datadir=${data}`,
      `--tmpdir=${folder}`,
      "--auth-root-authentication-method=normal",
      "--skip-test-db",
    ],
    { ...identity, cwd: folder, stdio: "pipe" },
  );
  const port = await freePort();
  const begin = () =>
    spawn(
      server as string,
      [
        "--no-defaults",
        `--datadir=${data}`,
        `--tmpdir=${folder}`,
        `--socket=${folder}/s`,
        `--pid-file=${folder}/pid`,
        `--port=${port}`,
        "--bind-address=127.0.0.1",
        "--skip-log-bin",
        // Each commit reaches the operating system: with 0 a killed server forgets its last second, answered or not.
        "--innodb-flush-log-at-trx-commit=2",
        "--innodb-buffer-pool-size=64M",
      ],
      { ...identity, cwd: folder, stdio: "ignore" },
    );
  let child = begin();
  const root = { host: "127.0.0.1", port, user: "root" };
  await ready(child, async () => (await mysql.createConnection({ ...root, socketPath: `${folder}/s` })).end());
  let admin = await mysql.createConnection({ user: "root", socketPath: `${folder}/s` });
  await admin.query("CREATE USER magic@'%' IDENTIFIED BY 'pass''word'");
  await admin.query("GRANT ALL ON *.* TO magic@'%' WITH GRANT OPTION");
  let made = 0;
  return {
    createDatabase: async (name = `test_${++made}`) => {
      await admin.query(`CREATE DATABASE \`${name}\` CHARACTER SET utf8mb4`);
      return `mysql://magic:${encodeURIComponent("pass'word")}@127.0.0.1:${port}/${name}`;
    },
    restart: async (signal = "SIGTERM") => {
      admin.destroy();
      const gone = new Promise((resolve) => child.once("exit", resolve));
      child.kill(signal);
      await gone;
      child = begin();
      await ready(child, async () => (await mysql.createConnection({ ...root, socketPath: `${folder}/s` })).end());
      admin = await mysql.createConnection({ user: "root", socketPath: `${folder}/s` });
    },
    stop: async () => {
      await admin.end();
      const gone = new Promise((resolve) => child.once("exit", resolve));
      child.kill("SIGKILL");
      await gone;
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

async function ready(child: ChildProcess, probe: () => Promise<void>): Promise<void> {
  for (let tries = 0; tries < 400; tries++) {
    if (child.exitCode !== null) throw new Error("mariadbd ended");
    try {
      return await probe();
    } catch {
      await sleep(50);
    }
  }
  throw new Error("mariadbd did not come up");
}

function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const probe = createServer();
    probe.on("error", reject);
    probe.listen(0, "127.0.0.1", () => {
      const { port } = probe.address() as { port: number };
      probe.close(() => resolve(port));
    });
  });
}
