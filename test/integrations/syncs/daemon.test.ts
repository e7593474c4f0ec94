// Live syncs in a real daemon: triggered over HTTP, run in worker processes, cancelled, taken up again after the daemon was killed.
import { execFileSync } from "node:child_process";
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { postgresMissing, startPostgres, type TestPostgres } from "#test/postgres.ts";
import { folderOfFile } from "#test/temporary.ts";
import { within } from "../../patience.ts";
import { connect } from "./harness.ts";

interface Daemon {
  readonly pid: number;
  readonly base_url: string;
  readonly local_token: string;
}
type Body = Record<string, never> & { id: string; status: string };

describe.skipIf(postgresMissing())("live syncs in the daemon", () => {
  const root = folderOfFile();
  const env = { ...process.env, MAGIC_HOME: join(root, "home"), CI: "1" };
  let server: TestPostgres;
  let daemon: Daemon;
  let source: Awaited<ReturnType<typeof connect>>;
  let target: Awaited<ReturnType<typeof connect>>;
  let connections: [string, string];

  const magic = (...args: string[]) =>
    JSON.parse(
      execFileSync(process.execPath, ["bin/magic.js", ...args, "--root", root, "--json"], { env, encoding: "utf8" }),
    );
  const call = async (method: string, path: string, body?: unknown, more = {}): Promise<Body> => {
    const headers = {
      ...more,
      authorization: `Bearer ${daemon.local_token}`,
      "magic-environment": "live",
      ...(body ? { "content-type": "application/json" } : {}),
    };
    const response = await fetch(daemon.base_url + path, {
      method,
      headers,
      ...(body ? { body: JSON.stringify(body) } : {}),
    });
    const text = await response.text();
    if (response.status >= 400) throw new Error(`${method} ${path}: ${response.status} ${text}`);
    return text === "" ? ({} as Body) : JSON.parse(text);
  };
  const until = async (id: string, wanted: readonly string[], timeoutMs = 15_000) => {
    const started = performance.now();
    for (;;) {
      const run = await call("GET", `/v1/runs/${id}`);
      if (wanted.includes(run.status)) return run;
      if (performance.now() - started > timeoutMs) throw new Error(`still ${run.status}: ${JSON.stringify(run)}`);
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  };
  const newSync = (table: string, more = {}) =>
    call("POST", "/v1/syncs", {
      source: { connection: connections[0], object: table },
      destination: { connection: connections[1], table },
      ...more,
    });

  beforeAll(async () => {
    server = await startPostgres();
    const [from, to] = [await server.createDatabase(), await server.createDatabase()];
    [source, target] = [await connect(from), await connect(to)];
    writeFileSync(join(root, "magic.yaml"), 'version: 1\negress: { allow_private: ["127.0.0.1:5432"] }\n');
    daemon = magic("daemon", "start", "--port", "0");
    const make = async (url: string) =>
      (await call("POST", "/v1/connections", { provider: "postgres", config: { url } })).id;
    connections = [await make(from), await make(to)];
  });
  afterAll(async () => {
    magic("daemon", "stop");
    await Promise.all([source?.end(), target?.end()]);
    await server?.stop();
  });

  test("a realtime sync follows its table by itself, deletions too; by a cursor field alone it takes what is new", async () => {
    const table =
      "CREATE TABLE live (id int PRIMARY KEY); CREATE TABLE added (id int PRIMARY KEY); CREATE TABLE shown (id int PRIMARY KEY)";
    await source.query(
      `${table}; INSERT INTO live VALUES (1), (2); INSERT INTO added VALUES (1), (2); INSERT INTO shown VALUES (1)`,
    );
    await target.query(
      `${table}; INSERT INTO live VALUES (9); INSERT INTO added VALUES (9); INSERT INTO shown VALUES (9)`,
    );
    const realtime = { schedule: "realtime" };
    const made = [
      await newSync("live", realtime),
      await newSync("added", { ...realtime, cursor_field: "id" }),
      await newSync("shown", { ...realtime, mode: "cdc", cursor_field: "id" }),
    ];
    await expect.poll(() => target.lines("live"), { timeout: 15_000 }).toEqual(["(1)", "(2)"]);
    await expect.poll(() => target.lines("added"), { timeout: 15_000 }).toEqual(["(1)", "(2)", "(9)"]);
    await expect.poll(() => target.lines("shown"), { timeout: 15_000 }).toEqual(["(1)"]);
    for (const { id } of made) await call("DELETE", `/v1/syncs/${id}`);
    await source.query("DROP TABLE live, added, shown");
  });

  test("an event says that data has changed where rows have only gone, and none where nothing happened", async () => {
    const table = "CREATE TABLE gone (id int PRIMARY KEY)";
    await source.query(table);
    await target.query(`${table}; INSERT INTO gone VALUES (1)`);
    const webhook = await call("POST", "/v1/webhooks", { url: "https://example.com", events: ["data.changed"] });
    const { id } = await newSync("gone", { mode: "cdc" });
    const events = async () => {
      const run = await call("POST", `/v1/syncs/${id}/trigger`, {});
      expect(await until(run.id, ["completed"])).toMatchObject({ records_read: 0 });
      return (await call("GET", `/v1/webhooks/${webhook.id}/deliveries`)) as unknown as { data: unknown[] };
    };
    expect((await events()).data).toHaveLength(1);
    expect(await target.lines("gone")).toEqual([]);
    expect((await events()).data).toHaveLength(1);
    await call("DELETE", `/v1/webhooks/${webhook.id}`);
    await source.query("DROP TABLE gone");
  });

  test("a connection is checked and discovered, and 100 rows arrive within a second of the trigger", async () => {
    await source.query(
      "CREATE TABLE hundred (id bigint PRIMARY KEY, n numeric(38,10)); INSERT INTO hundred SELECT i, i / 3.0 FROM generate_series(9007199254740993, 9007199254741092) i",
    );
    expect(await call("POST", `/v1/connections/${connections[0]}/check`)).toMatchObject({ status: "connected" });
    expect(await call("GET", `/v1/connections/${connections[0]}/objects`)).toMatchObject({
      data: [{ name: "public.hundred", primary_key: ["id"] }],
    });
    const bare = await call("POST", "/v1/connections", { provider: "postgres", credentials: { password: "p" } });
    await expect(call("GET", `/v1/connections/${bare.id}/objects`)).rejects.toThrow(/400 .*has no url in its config/);
    const { id } = await newSync("hundred");
    const started = performance.now();
    const run = await until((await call("POST", `/v1/syncs/${id}/trigger`)).id, ["completed", "failed"]);
    const seconds = (performance.now() - started) / 1000;
    expect(run).toMatchObject({
      status: "completed",
      records_read: 100,
      records_synced: 100,
      proof: { source_count: 100, destination_count: 100 },
    });
    expect(seconds).toBeLessThan(3);
    expect(await target.lines("hundred")).toEqual(await source.lines("hundred"));
  });

  test("rejected records stand under the run, with their reasons", async () => {
    await source.query("CREATE TABLE picky (id int PRIMARY KEY); INSERT INTO picky VALUES (1), (2)");
    await target.query("CREATE TABLE picky (id int PRIMARY KEY CHECK (id <> 2))");
    const { id } = await newSync("picky");
    const run = await until((await call("POST", `/v1/syncs/${id}/trigger`)).id, ["completed", "failed"]);
    expect(run).toMatchObject({ status: "completed", records_rejected: 1 });
    expect(await call("GET", `/v1/runs/${run.id}/rejects`)).toMatchObject({
      data: [{ key: "2", reason: expect.stringContaining("check constraint") }],
    });
  });

  test("what hides rows is told under the run; a connection that is led to another database is read from the beginning", async () => {
    await source.query(
      "CREATE TABLE led (id int PRIMARY KEY, n int); INSERT INTO led VALUES (1, 100), (2, 100); ALTER TABLE led ENABLE ROW LEVEL SECURITY; CREATE POLICY one ON led USING (id = 1); CREATE ROLE partly LOGIN; GRANT SELECT ON led TO partly",
    );
    const other = await server.createDatabase();
    const client = await connect(other);
    await client.query("CREATE TABLE led (id int PRIMARY KEY, n int); INSERT INTO led VALUES (3, 1)");
    await client.end();
    const url = server.url.replace("/postgres?", "/test_1?").replace("postgres@", "partly@");
    const connection = (await call("POST", "/v1/connections", { provider: "postgres", config: { url } })).id;
    const ends = {
      source: { connection, object: "led" },
      destination: { connection: connections[1], table: "led" },
    };
    const { id } = await call("POST", "/v1/syncs", { ...ends, mode: "incremental", cursor_field: "n" });
    const run = async () =>
      until((await call("POST", `/v1/syncs/${id}/trigger`)).id, ["completed", "failed"]) as Promise<Body>;
    expect(await run()).toMatchObject({ records_read: 1, errors: [], warnings: [{ code: "row_level_security" }] });
    await call("PATCH", `/v1/connections/${connection}`, { config: { url: other } });
    expect(await run()).toMatchObject({ records_read: 1, warnings: [{ code: "source_changed" }] });
    expect(await target.lines("led")).toEqual(["(1,100)", "(3,1)"]);
  });

  test("a run that is refused its credentials shows in the connection whose they are", async () => {
    await source.query("CREATE ROLE shut NOLOGIN");
    const url = server.url.replace("postgres@", "shut@");
    const connection = (await call("POST", "/v1/connections", { provider: "postgres", config: { url } })).id;
    const ends = {
      source: { connection, object: "hundred" },
      destination: { connection: connections[1], table: "shut" },
    };
    const { id } = await call("POST", "/v1/syncs", ends);
    const run = await until((await call("POST", `/v1/syncs/${id}/trigger`)).id, ["completed", "failed"]);
    expect(run).toMatchObject({ status: "failed", error: { code: "credentials_rejected" } });
    await vi.waitFor(
      async () =>
        expect(await call("GET", `/v1/connections/${connection}`)).toMatchObject({
          status: "failed",
          health: { status: "unhealthy", message: expect.stringContaining("shut") },
        }),
      { timeout: 15_000, interval: 100 },
    );
    expect(await call("GET", `/v1/connections/${connections[1]}`)).toMatchObject({ status: "connected" });
  });

  test("a run that is cancelled ends within two seconds, its worker too; a trigger meanwhile gives the same run", async () => {
    const { id } = await newSync("hundred", { mode: "incremental", cursor_field: "id" });
    const holder = await lock("hundred");
    const run = await call("POST", `/v1/syncs/${id}/trigger`);
    await until(run.id, ["running"]);
    const workers = workersOf(daemon.pid);
    expect((await call("POST", `/v1/syncs/${id}/trigger`)).id).toBe(run.id);
    const waiting = (seconds: number) =>
      call("GET", `/v1/runs/${run.id}`, undefined, { prefer: `respond-async, wait=${seconds}` });
    const asked = performance.now();
    expect((await waiting(1)).status).toBe("running");
    expect(performance.now() - asked).toBeGreaterThan(990);
    const started = performance.now();
    const ending = waiting(5);
    await call("POST", `/v1/runs/${run.id}/cancel`);
    expect((await ending).status).toBe("canceled");
    expect(performance.now() - started).toBeLessThan(within(4_500));
    while (workers.some(alive) && performance.now() - started < within(8_000))
      await new Promise((resolve) => setTimeout(resolve, 20));
    expect(performance.now() - started).toBeLessThan(within(6_000));
    await holder.end();
  });

  test("a killed daemon takes its workers with it, and the next one finishes the run", async () => {
    const { id } = await newSync("hundred");
    const holder = await lock("hundred");
    const run = await call("POST", `/v1/syncs/${id}/trigger`);
    await until(run.id, ["running"]);
    let workers: number[] = [];
    for (let tries = 0; tries < 100 && workers.length === 0; tries++) {
      workers = workersOf(daemon.pid);
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    expect(workers.length).toBe(1);
    process.kill(daemon.pid, "SIGKILL");
    for (let tries = 0; tries < 150 && workers.some(alive); tries++)
      await new Promise((resolve) => setTimeout(resolve, 20));
    expect(workers.filter(alive)).toEqual([]);
    await holder.end();
    await source.query("INSERT INTO hundred VALUES (1, 1)");
    daemon = magic("daemon", "start", "--port", "0");
    expect(await until(run.id, ["completed", "failed"], 25_000)).toMatchObject({
      status: "completed",
      records_synced: 101,
    });
    expect(await target.lines("hundred")).toEqual(await source.lines("hundred"));
  });

  test("a private address that magic.yaml does not name is not reached", async () => {
    const { id } = await call("POST", "/v1/connections", {
      provider: "postgres",
      config: { url: "postgres://postgres@127.0.0.1:6543/x" },
    });
    expect(await call("POST", `/v1/connections/${id}/check`)).toMatchObject({
      status: "failed",
      health: { message: expect.stringContaining("127.0.0.1") },
    });
  });

  test("deleting a connection ends the run that uses it", async () => {
    const { id } = await newSync("hundred");
    const holder = await lock("hundred");
    const run = await call("POST", `/v1/syncs/${id}/trigger`);
    await until(run.id, ["running"]);
    await call("DELETE", `/v1/connections/${connections[1]}`);
    await until(run.id, ["canceled"]);
    await holder.end();
    expect(await target.query("SELECT count(*) AS n FROM hundred")).toEqual([{ n: "101" }]);
  });

  async function lock(table: string): Promise<Awaited<ReturnType<typeof connect>>> {
    const url = server.url.replace("/postgres?", "/test_1?");
    const holder = await connect(url);
    await holder.query(`BEGIN; LOCK TABLE ${table} IN ACCESS EXCLUSIVE MODE`);
    return holder;
  }
});

/** Sync workers below a process. */
function workersOf(pid: number): number[] {
  if (!existsSync("/proc/self/stat")) return [];
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .filter((one) => {
      try {
        const stat = readFileSync(`/proc/${one}/stat`, "utf8");
        const parent = Number(stat.slice(stat.lastIndexOf(")") + 2).split(" ")[1]);
        return parent === pid && readFileSync(`/proc/${one}/cmdline`, "utf8").includes("sync-worker") && alive(one);
      } catch {
        return false;
      }
    });
}

// A zombie is dead, though kill(pid, 0) finds it.
function alive(pid: number): boolean {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    return stat.slice(stat.lastIndexOf(")") + 2, stat.lastIndexOf(")") + 3) !== "Z";
  } catch {
    return false;
  }
}
