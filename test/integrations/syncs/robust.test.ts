// What goes wrong on the way: connections cut, servers restarted, huge rows, signed HTTP batches, the command's exit codes.
import { execFile, execFileSync } from "node:child_process";
import { once } from "node:events";
import { readdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { createServer, type IncomingMessage } from "node:http";
import net from "node:net";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { Webhook } from "standardwebhooks";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { connectPostgres, type PostgresLink } from "#daemon/integrations/connectors/postgres/connect.ts";
import { copyFrom } from "#daemon/integrations/connectors/postgres/copy-from.ts";
import { postgresError } from "#daemon/integrations/connectors/postgres/errors.ts";
import { newId } from "#shared/ids.ts";
import { postgresMissing } from "#test/postgres.ts";
import { folderOfFile } from "#test/temporary.ts";
import { cuttingProxy, holdingProxy, tearingProxy } from "./cuts.ts";
import { connect, openPair, type Pair, specOf, sync } from "./harness.ts";
import { runAndKill } from "./kill.ts";

describe.skipIf(postgresMissing())("on the way", () => {
  const folder = folderOfFile();
  let pair: Pair;
  let { from, to, source, target } = {} as Pair;

  beforeAll(async () => {
    pair = await openPair();
    ({ from, to, source, target } = pair);
    await source.query(
      "CREATE TABLE many (id int PRIMARY KEY, t text); INSERT INTO many SELECT i, repeat('x', 100) FROM generate_series(1, 20000) i",
    );
  });
  afterAll(async () => {
    // A restart has given it other clients.
    await Promise.all([source?.end(), target?.end()]);
    await pair?.server.stop();
  });
  const ends = (object: string) => ({ from, object, to, table: object });

  test("a connection that is cut in the middle of the copy fails the run, and the old rows stay", async () => {
    expect(await sync(ends("many"))).toMatchObject({ status: "completed" });
    for (const end of ["from", "to"] as const) {
      const proxy = await cuttingProxy(() => net.connect(`${pair.server.socketFolder}/.s.PGSQL.5432`), 400_000);
      const url = new URL(end === "from" ? from : to);
      url.searchParams.delete("host");
      url.host = `127.0.0.1:${proxy.port}`;
      const outcome = await sync({ ...ends("many"), [end]: url.href });
      proxy.close();
      expect(outcome).toMatchObject({ status: "failed", error: { code: "connection_lost" } });
    }
    expect(await target.query("SELECT count(*) AS n FROM many")).toEqual([{ n: "20000" }]);
    expect(await sync(ends("many"))).toMatchObject({ status: "completed", records_synced: 20_000 });
  });

  test("rows whose number the server tells in a later packet than their end are counted all the same", async () => {
    const done = Buffer.from("6300000004", "hex");
    const proxy = await holdingProxy(() => net.connect(`${pair.server.socketFolder}/.s.PGSQL.5432`), done, 150);
    const url = new URL(from);
    url.searchParams.delete("host");
    url.host = `127.0.0.1:${proxy.port}`;
    for (const columns of [null, ["id"]]) {
      const outcome = await sync({ ...ends("many"), from: url.href }, { columns, sync_id: `held_${columns}` });
      expect(outcome).toMatchObject({ error: null, status: "completed", records_synced: 20_000 });
    }
    proxy.close();
    await sync(ends("many"));
  });

  test("a message without a length in the middle of the rows fails the run, whoever takes them", async () => {
    await source.query("CREATE TABLE torn AS SELECT i AS id FROM generate_series(1, 100) i");
    for (const to of [ends("torn").to, join(folder, "torn.jsonl")]) {
      const proxy = await tearingProxy(() => net.connect(`${pair.server.socketFolder}/.s.PGSQL.5432`));
      const url = new URL(from);
      url.searchParams.delete("host");
      url.host = `127.0.0.1:${proxy.port}`;
      const outcome = await sync({ ...ends("torn"), from: url.href, to });
      proxy.close();
      expect(outcome).toMatchObject({ status: "failed", error: { code: "connection_lost" } });
    }
  });

  /** A run waits for a lock of the source's table, which the run before it does not any more. */
  const locked = (table: string) =>
    vi.waitFor(
      async () => {
        const waiting = `SELECT 1 FROM pg_locks WHERE NOT granted AND relation = '${table}'::regclass`;
        expect(await source.query(waiting)).not.toEqual([]);
      },
      { timeout: 10_000, interval: 20 },
    );

  test("a session never lies idle between transactions, where a pooler would hand it to others with its locks", async () => {
    // ReadyForQuery, idle: once, after the log-in.
    const idle = Buffer.from("5a0000000549", "hex");
    const seen: Buffer[][] = [];
    const cancels: string[] = [];
    const server = net.createServer((client) => {
      client.on("error", () => {});
      client.once("data", (first: Buffer) => {
        if (first.length === 16) {
          client.once("end", () => cancels.push("client"));
          return void setTimeout(() => client.end(() => cancels.push("server")), 50);
        }
        const upstream = net.connect(`${pair.server.socketFolder}/.s.PGSQL.5432`);
        upstream.on("error", () => {});
        const read: Buffer[] = [];
        seen.push(read);
        upstream.on("data", (chunk: Buffer) => read.push(chunk));
        upstream.write(first);
        client.pipe(upstream).pipe(client);
      });
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const through = (given: string) => {
      const url = new URL(given);
      url.searchParams.delete("host");
      url.host = `127.0.0.1:${(server.address() as net.AddressInfo).port}`;
      return url.href;
    };
    await source.query("CREATE TABLE pooled AS SELECT i AS id FROM generate_series(1, 10) i");
    const pooled = { ...ends("pooled"), from: through(from), to: through(to) };
    for (const mode of ["full_refresh", "incremental", "incremental"] as const)
      expect((await sync(pooled, { mode, cursor_field: "id", primary_key: ["id"] })).error).toBeNull();
    // PgBouncer 1.18 ends where who cancels leaves before it has answered.
    await source.query("BEGIN; LOCK TABLE pooled");
    const cancel = new AbortController();
    const run = sync(pooled, {}, cancel.signal);
    await locked("pooled");
    cancel.abort();
    expect(await run).toMatchObject({ status: "canceled" });
    await source.query("ROLLBACK");
    expect(cancels[0]).toBe("server");
    server.close();
    expect(seen.length).toBeGreaterThan(5);
    for (const read of seen) {
      const all = Buffer.concat(read);
      expect(all.indexOf(idle)).toBe(all.lastIndexOf(idle));
    }
  });

  test("a backend that an administrator ends fails the run with a clear error, and the next run goes on", async () => {
    const holder = await connect(from);
    await holder.query("BEGIN; LOCK TABLE many IN ACCESS EXCLUSIVE MODE");
    const run = sync(ends("many"));
    await locked("many");
    await source.query("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'magic sync'");
    expect(await run).toMatchObject({ status: "failed", error: { code: "connection_lost" } });
    await holder.query("ROLLBACK");
    await holder.end();
    expect(await sync(ends("many"))).toMatchObject({ status: "completed" });
  });

  test("a session that ends while nobody asks it anything tells whoever asks next what ended it", async () => {
    for (const ask of [
      (link: PostgresLink) => link.run("SELECT 1"),
      async (link: PostgresLink) => once(link.client.query(await copyFrom("COPY many FROM STDIN")), "finish"),
    ]) {
      const link = await connectPostgres({ url: to, side: "destination" });
      const [row] = await link.rows<{ pid: string }>("SELECT pg_backend_pid()::text AS pid");
      await source.query(`SELECT pg_terminate_backend(${row?.pid})`);
      await new Promise((resolve) => setTimeout(resolve, 100));
      const refused = await ask(link).catch((error: unknown) => postgresError(error, "destination", "writing"));
      const told = { code: "connection_lost", message: expect.stringMatching(/administrator command/) };
      expect([String(ask), refused]).toMatchObject([String(ask), told]);
      await link.close();
    }
  });

  test("a server that is restarted under a run fails it at once, and the next run goes on", async () => {
    const [quick, slow] = [await connect(from), await connect(to)];
    await quick.query("CREATE TABLE slowly AS SELECT i AS id FROM generate_series(1, 10) i");
    // The copy is under way: the view's rows come one in 100 ms.
    await quick.query(
      "CREATE VIEW slow_rows AS SELECT id, pg_sleep(0.1)::text AS t FROM slowly CROSS JOIN generate_series(1, 100)",
    );
    await slow.query("CREATE TABLE slow_rows (id int, t text); INSERT INTO slow_rows VALUES (0, 'old')");
    await Promise.all([quick.end(), slow.end(), source.end(), target.end()]);
    const run = sync(ends("slow_rows"));
    await new Promise((resolve) => setTimeout(resolve, 500));
    await pair.server.restart();
    [source, target] = [await connect(from), await connect(to)];
    expect(await run).toMatchObject({ status: "failed", error: { code: "connection_lost" } });
    expect(await target.lines("slow_rows")).toEqual(["(0,old)"]);
    await source.query("CREATE OR REPLACE VIEW slow_rows AS SELECT id, 'new'::text AS t FROM slowly");
    expect(await sync(ends("slow_rows"))).toMatchObject({ status: "completed", records_synced: 10 });
    expect(
      await target.query("SELECT count(*) AS n FROM pg_class WHERE relname LIKE '\\_magic\\_s%' AND relkind = 'r'"),
    ).toEqual([{ n: "1" }]);
  });

  test("a row of 8 MB arrives", async () => {
    await source.query(
      "CREATE TABLE huge (id int PRIMARY KEY, t text); INSERT INTO huge VALUES (1, 'a'), (2, repeat('é', 4000000)), (3, 'b')",
    );
    expect(await sync(ends("huge"))).toMatchObject({ status: "completed", records_synced: 3 });
    const file = join(folder, "huge.sqlite");
    expect(await sync({ ...ends("huge"), to: file })).toMatchObject({ status: "completed", records_synced: 3 });
    expect(await sync({ from: file, object: "huge", to, table: "huge_back" })).toMatchObject({ status: "completed" });
    expect(await target.query("SELECT md5(t) AS m FROM huge_back WHERE id = 2")).toEqual(
      await source.query("SELECT md5(t) AS m FROM huge WHERE id = 2"),
    );
  });

  test("two runs of one sync do not run at once: the second waits and then finds its place", async () => {
    await source.query(
      "CREATE TABLE shared (id int, n int); INSERT INTO shared SELECT i, i FROM generate_series(1, 1000) i",
    );
    const run = () => sync(ends("shared"), { mode: "incremental", cursor_field: "n" });
    const both = await Promise.all([run(), run()]);
    expect(both.map(({ error }) => error)).toEqual([null, null]);
    expect(await target.query("SELECT count(*) AS n FROM shared")).toEqual([{ n: "1000" }]);
    for (const ending of ["csv", "sqlite"]) {
      const file = join(folder, `shared.${ending}`);
      const into = () => sync({ ...ends("shared"), to: file }, { mode: "incremental", cursor_field: "n" });
      const three = await Promise.all([into(), into(), into()]);
      expect(three.map(({ error }) => error)).toEqual([null, null, null]);
      expect(three.map(({ records_read }) => records_read).sort()).toEqual([0, 0, 1000]);
      expect(three.map(({ proof }) => proof.source_count)).toEqual([1000, 1000, 1000]);
      expect(readdirSync(folder).filter((name) => name.startsWith(`.shared.${ending}`))).toEqual([]);
    }
  });

  test("an HTTP endpoint gets signed batches, again after a 503, and the cursor stays in the state file", async () => {
    const secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
    const got: { id: string }[] = [];
    const ids: string[] = [];
    let failures = 1;
    const receiver = createServer(async (request, response) => {
      const body = await bodyOf(request);
      const payload = new Webhook(secret).verify(body, request.headers as Record<string, string>) as {
        records: { id: string }[];
      };
      ids.push(String(request.headers["webhook-id"]));
      if (failures-- > 0) return response.writeHead(503).end();
      got.push(...payload.records);
      return response.end("ok");
    });
    await new Promise<void>((resolve) => receiver.listen(0, "127.0.0.1", resolve));
    const url = `http://127.0.0.1:${(receiver.address() as net.AddressInfo).port}/in`;
    const state_file = join(folder, "http.json");
    const more = {
      mode: "incremental",
      cursor_field: "n",
      state_file,
      destination: { url, object: "x", credentials: { signing_secret: secret } },
    } as const;
    const spec = specOf({ ...ends("shared"), to: url }, more);
    expect(await runAndKill(spec, null)).toMatchObject({ status: "completed", records_synced: 1000 });
    expect(got).toHaveLength(1000);
    expect(new Set(ids).size).toBe(2);
    await source.query("INSERT INTO shared VALUES (1001, 1001)");
    expect(await runAndKill({ ...spec, run_id: newId("run") }, null)).toMatchObject({
      status: "completed",
      records_synced: 1,
    });
    expect(got).toHaveLength(1001);
    // A value that comes back is no batch of before; one that is sent from the same state again is.
    const committed = readFileSync(state_file);
    const again = () => runAndKill({ ...spec, run_id: newId("run") }, null);
    for (let runs = 0; runs < 2; runs++) {
      await source.query("UPDATE shared SET n = 3000 WHERE id = 1001");
      expect(await again()).toMatchObject({ records_synced: 1 });
    }
    expect(new Set(ids.slice(-2)).size).toBe(2);
    writeFileSync(state_file, committed);
    await again();
    expect(ids.at(-1)).toBe(ids.at(-3));
    receiver.close();
  });

  test("a record that JSON would change goes into quarantine before an HTTP endpoint, as before a file", async () => {
    await source.query(
      `CREATE TABLE nothings (id int PRIMARY KEY, j jsonb); INSERT INTO nothings VALUES (1, 'null'), (2, NULL), (3, '{"n": 1}')`,
    );
    let got: unknown;
    const receiver = createServer(async (request, response) => {
      got = JSON.parse(await bodyOf(request));
      response.end();
    });
    await new Promise<void>((resolve) => receiver.listen(0, "127.0.0.1", resolve));
    const url = `http://127.0.0.1:${(receiver.address() as net.AddressInfo).port}/in`;
    const outcome = await sync({ ...ends("nothings"), to: url });
    receiver.close();
    expect(outcome).toMatchObject({ error: null, records_synced: 2, rejects: [{ key: "1", column: "j" }] });
    expect(got).toMatchObject({
      records: [
        { id: 2, j: null },
        { id: 3, j: { n: 1 } },
      ],
    });
  });

  test("what an HTTP endpoint says of a batch that it refuses is told, however much it says, and where it breaks off", async () => {
    await source.query("CREATE TABLE refused AS SELECT 1 AS id");
    const receiver = createServer((request, response) => {
      response.statusCode = 422;
      if (request.url === "/broken") response.setHeader("content-length", 1000);
      response.write('{"error":\n "no field x"}');
      if (request.url === "/long") response.end(" ".repeat(1 << 20));
      else if (request.url === "/broken") setTimeout(() => request.socket.destroy(), 200);
      else response.end();
    });
    await new Promise<void>((resolve) => receiver.listen(0, "127.0.0.1", resolve));
    const url = `http://127.0.0.1:${(receiver.address() as net.AddressInfo).port}`;
    for (const path of ["/", "/long", "/broken"]) {
      const { error } = await sync({ ...ends("refused"), to: url + path });
      expect(error).toEqual({
        code: "destination_refused",
        message: `${url} refused a batch of records: status 422, {"error": "no field x"}.`,
      });
    }
    receiver.close();
  });

  test("an HTTP endpoint gets its URL's user; a secret that signs nothing and a state that cannot be read are told before a batch", async () => {
    const users: unknown[] = [];
    const receiver = createServer((request, response) => {
      users.push(request.headers.authorization);
      response.end();
    });
    await new Promise<void>((resolve) => receiver.listen(0, "127.0.0.1", resolve));
    const url = `http://bob:p%40ss@127.0.0.1:${(receiver.address() as net.AddressInfo).port}/in`;
    const run = (more: object) => sync({ ...ends("many"), to: url }, { columns: ["id"], ...more });
    expect((await run({})).error).toBeNull();
    expect(new Set(users)).toEqual(new Set([`Basic ${Buffer.from("bob:p@ss").toString("base64")}`]));
    const sent = users.length;
    const destination = { url, object: "x", credentials: { signing_secret: "no base64 !" } };
    expect(await run({ destination })).toMatchObject({ error: { code: "validation_failed" } });
    expect(await run({ state_file: folder })).toMatchObject({ error: { code: "source_failed" } });
    expect(users).toHaveLength(sent);
    receiver.close();
  });

  test("a state that somebody edited is understood, or refused by name", async () => {
    const file = join(folder, "edited.jsonl");
    const state = join(folder, "edited.json");
    const more = { mode: "incremental", cursor_field: "id", sync_id: "sync_edited" } as const;
    const run = (to: string) => sync({ from, object: "many", to, table: "edited" }, { ...more, state_file: state });
    for (const end of [file, to]) expect(await run(end)).toMatchObject({ error: null, records_synced: 20_000 });
    const kept = JSON.parse(readFileSync(state, "utf8"));
    const edits: [object, string | undefined][] = [
      [{ streams: { many: { ...kept.streams.many, state: { cursor: 19_999 } } } }, undefined],
      [{ streams: { many: { ...kept.streams.many, state: { cursor: {} } } } }, "source_failed"],
      [{ streams: { many: { ...kept.streams.many, schema: { columns: 7 } } } }, "source_failed"],
      [
        { streams: { many: { ...kept.streams.many, schema: { ...kept.streams.many.schema, primaryKey: 7 } } } },
        "source_failed",
      ],
      [{ streams: { many: { schema: kept.streams.many.schema } } }, undefined],
      [{ streams: { many: null } }, "source_failed"],
      [{ streams: null }, "source_failed"],
    ];
    for (const [edit, code] of edits) {
      writeFileSync(state, JSON.stringify({ ...kept, ...edit }));
      expect([edit, (await run(file)).error?.code]).toEqual([edit, code]);
    }
    await target.query(`UPDATE _magic_state SET state = '{"cursor": 5}' WHERE sync_id = 'sync_edited'`);
    expect(await run(to)).toMatchObject({ error: null, records_synced: 20_000 });
    expect(await target.query("SELECT count(*) AS n FROM edited")).toEqual([{ n: "20000" }]);
    const lite = join(folder, "edited.sqlite");
    expect((await run(lite)).error).toBeNull();
    const db = new DatabaseSync(lite);
    const sets = [
      `state = '{"cursor": {}}'`,
      `schema = '{"columns": [{"name": "id"}], "primaryKey": []}'`,
      "state = '7'",
    ];
    for (const set of sets) {
      await target.query(`UPDATE _magic_state SET ${set} WHERE sync_id = 'sync_edited'`);
      db.exec(`UPDATE _magic_state SET ${set}`);
      for (const end of [to, lite])
        expect((await run(end)).error).toMatchObject({
          code: "source_failed",
          message: expect.stringContaining("_magic_state"),
        });
    }
    db.close();
  });

  test("a destination that cannot grow is said so, and leaves neither a file nor a part of one", async () => {
    for (const ending of ["csv", "parquet", "sqlite"]) {
      const to = join(folder, `limited.${ending}`);
      // The shell's limit on file sizes stands in for a full disk.
      const command = `ulimit -f 200; exec '${process.execPath}' bin/magic.js sync run --from '${from}' --object many --to '${to}' --table many --json`;
      const env = { ...process.env, MAGIC_HOME: join(folder, "home"), CI: "1" };
      const result = await new Promise<{ code: unknown; stdout: string }>((resolve) =>
        execFile("bash", ["-c", command], { env }, (error, stdout) => resolve({ code: error?.code ?? 0, stdout })),
      );
      // Parquet's compression may keep it under the limit: then all of it is there.
      if (ending === "parquet" && result.code === 0) continue;
      expect([ending, result.code]).toEqual([ending, 8]);
      expect(JSON.parse(result.stdout)).toMatchObject({ status: "failed", error: { code: "destination_refused" } });
      expect(readdirSync(folder).filter((name) => name.includes(`limited.${ending}`))).toEqual([]);
    }
  });

  test("a declarative connector's records are upserted page by page, and the next run asks for what is new", async () => {
    const asked: string[] = [];
    const records = [1, 2, 3, 4, 5].map((id) => ({
      id,
      name: `n${id}`,
      price: id + 0.5,
      updated_at: `2024-01-0${id}T00:00:00Z`,
      tags: ["a", id],
    }));
    const api = createServer((request, response) => {
      const url = new URL(request.url ?? "/", "http://x");
      asked.push(url.search);
      const since = url.searchParams.get("since") ?? "";
      const offset = Number(url.searchParams.get("offset") ?? 0);
      const found = records.filter(({ updated_at }) => updated_at >= since).slice(offset, offset + 2);
      response.setHeader("content-type", "application/json");
      response.end(JSON.stringify({ items: found }));
    });
    await new Promise<void>((resolve) => api.listen(0, "127.0.0.1", resolve));
    const { port } = api.address() as net.AddressInfo;
    const stream = {
      type: "DeclarativeStream",
      name: "items",
      primary_key: "id",
      schema_loader: {
        type: "InlineSchemaLoader",
        schema: {
          type: "object",
          properties: {
            id: { type: "integer" },
            name: { type: "string" },
            price: { type: "number" },
            updated_at: { type: "string" },
            tags: { type: "array" },
          },
        },
      },
      retriever: {
        type: "SimpleRetriever",
        requester: { type: "HttpRequester", url_base: `http://127.0.0.1:${port}`, path: "/items", http_method: "GET" },
        record_selector: { type: "RecordSelector", extractor: { type: "DpathExtractor", field_path: ["items"] } },
        paginator: {
          type: "DefaultPaginator",
          page_token_option: { type: "RequestOption", inject_into: "request_parameter", field_name: "offset" },
          pagination_strategy: { type: "OffsetIncrement", page_size: 2 },
        },
      },
      incremental_sync: {
        type: "DatetimeBasedCursor",
        cursor_field: "updated_at",
        datetime_format: "%Y-%m-%dT%H:%M:%SZ",
        start_datetime: "2024-01-01T00:00:00Z",
        start_time_option: { type: "RequestOption", inject_into: "request_parameter", field_name: "since" },
      },
    };
    const manifest = {
      version: "6.0.0",
      type: "DeclarativeSource",
      check: { type: "CheckStream", stream_names: ["items"] },
      streams: [stream],
      spec: { type: "Spec", connection_specification: { type: "object", properties: {} } },
    };
    const more = {
      mode: "incremental",
      cursor_field: "updated_at",
      allow_private: [`127.0.0.1:${port}`],
      source: { url: "connector://shop", object: "items", connector: { id: "shop", manifest, config: {} } },
    } as const;
    const first = await sync(ends("items"), more);
    expect(first.error).toBeNull();
    expect(first).toMatchObject({ records_read: 5, records_synced: 5 });
    records.push({ id: 6, name: "n6", price: 6.5, updated_at: "2024-02-01T00:00:00Z", tags: [] });
    Object.assign(records[0] ?? {}, { name: "changed", updated_at: "2024-02-02T00:00:00Z" });
    asked.length = 0;
    expect((await sync(ends("items"), more)).error).toBeNull();
    expect(asked[0]).toContain("since=2024-01-05");
    expect(await target.lines("items", "id, name")).toEqual([
      "(1,changed)",
      "(2,n2)",
      "(3,n3)",
      "(4,n4)",
      "(5,n5)",
      "(6,n6)",
    ]);
    api.close();
  });

  test("magic sync run prints the run and exits as the contract says", async () => {
    const home = join(folder, "home");
    const signingSecret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
    const taken: unknown[] = [];
    const receiver = createServer((request, response) => {
      const chunks: Buffer[] = [];
      request.on("data", (chunk) => chunks.push(chunk));
      request.on("end", () => {
        const body = Buffer.concat(chunks).toString();
        taken.push(new Webhook(signingSecret).verify(body, request.headers as Record<string, string>));
        response.end();
      });
    });
    await new Promise<void>((resolve) => receiver.listen(0, "127.0.0.1", resolve));
    const run = (...args: string[]) =>
      new Promise<{ code: number; stdout: string; stderr: string }>((resolve) => {
        const env = { ...process.env, MAGIC_HOME: home, CI: "1", MAGIC_SIGNING_SECRET: signingSecret };
        execFile(
          process.execPath,
          ["bin/magic.js", "sync", "run", ...args, "--json"],
          { env },
          (error, stdout, stderr) => resolve({ code: error ? Number(error.code) : 0, stdout, stderr }),
        );
      });
    writeFileSync(join(folder, "bad.csv"), "id\n1\nx\n");
    await target.query("CREATE TABLE strict (id int)");
    await source.query("CREATE TABLE moving (id int PRIMARY KEY, n int); INSERT INTO moving VALUES (1, 1)");
    const copy = [
      "--from",
      from,
      "--object",
      "moving",
      "--to",
      to,
      "--table",
      "moving",
      "--state",
      join(folder, "moving.json"),
    ];
    execFileSync("mkfifo", [join(folder, "pipe.csv")]);
    const cases: [string[], number, object][] = [
      [
        ["--from", join(folder, "pipe.csv"), "--to", to, "--table", "piped"],
        8,
        { status: "failed", error: { code: "source_failed" } },
      ],
      [
        copy,
        0,
        {
          object: "run",
          status: "completed",
          trigger: "manual",
          records_read: 1,
          records_synced: 1,
          proof: { source_count: 1, destination_count: 1 },
          rejects: [],
          errors: [],
        },
      ],
      [
        ["--from", join(folder, "bad.csv"), "--object", "bad", "--to", to, "--table", "strict"],
        0,
        {
          status: "completed",
          records_rejected: 1,
          rejects: [{ key: "row 2", column: "id", reason: expect.stringContaining("integer") }],
        },
      ],
      [
        [
          "--from",
          from,
          "--object",
          "moving",
          "--to",
          `http://127.0.0.1:${(receiver.address() as net.AddressInfo).port}/`,
        ],
        0,
        { status: "completed", records_synced: 1 },
      ],
      [
        ["--from", from, "--object", "no.table", "--to", to, "--table", "t"],
        4,
        { status: "failed", error: { code: "object_not_found" } },
      ],
      [
        ["--from", "postgres://u:p@127.0.0.1:1/x", "--object", "t", "--to", to, "--table", "t"],
        8,
        { status: "failed", error: { code: "unreachable" } },
      ],
    ];
    for (const [args, code, document] of cases) {
      const result = await run(...args);
      expect([result.code, result.stderr]).toEqual([code, expect.any(String)]);
      expect(JSON.parse(result.stdout)).toMatchObject(document);
      if (code !== 0)
        expect(JSON.parse(result.stderr.trim().split("\n").at(-1) ?? "")).toMatchObject({ exit_code: code });
    }
    receiver.close();
    expect(taken).toMatchObject([{ table: "moving", records: [{ id: 1, n: 1 }] }]);
    await source.query("ALTER TABLE moving ALTER COLUMN n TYPE text");
    expect(await run(...copy)).toMatchObject({ code: 7 });
    const lines = ["--from", join(folder, "bad.csv"), "--to", join(folder, "copied.csv")];
    expect(await run(...lines, "--mode", "cdc")).toMatchObject({ code: 3 });
    expect(await run(...copy, "--mode", "nonsense")).toMatchObject({ code: 2, stdout: "" });

    const [kept, link] = [join(folder, "kept.json"), join(folder, "link.json")];
    writeFileSync(kept, "");
    symlinkSync(kept, link);
    writeFileSync(join(folder, "ids.csv"), "id\n1\n");
    const files = ["--from", join(folder, "ids.csv"), "--to", join(folder, "copied.csv")];
    const appended = [...files, "--mode", "incremental", "--cursor-field", "id", "--state"];
    expect(await run(...appended, link)).toMatchObject({ code: 0 });
    expect(await run(...appended, kept)).toMatchObject({ code: 0 });
    expect(readFileSync(join(folder, "copied.csv"), "utf8").trim().split("\n")).toHaveLength(2);
  });
});

async function bodyOf(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks).toString("utf8");
}
