// Connections that are cut after so many bytes, on either side, in every mode: the run must fail at once and say what was lost.
import { mkdtempSync, rmSync } from "node:fs";
import net from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import mysql from "mysql2/promise";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { mysqlMissing, startMysql, type TestMysql } from "#test/mysql.ts";
import { postgresMissing, startPostgres, type TestPostgres } from "#test/postgres.ts";
import { connect, sync } from "./harness.ts";

type Kind = "postgres" | "mysql" | "sqlite" | "csv" | "parquet";

/** `pairs`: source and destination. `limits`: bytes after which the connection ends, both ways together. */
export function cuts(pairs: readonly (readonly ["postgres" | "mysql", Kind])[], limits: readonly number[]): void {
  describe.skipIf(postgresMissing() || mysqlMissing())("connections that are cut", () => {
    const folder = mkdtempSync(join(tmpdir(), "magic-cuts-"));
    let servers: [TestPostgres, TestMysql];
    let urls: Record<"from" | "to", Record<"postgres" | "mysql", string>>;

    beforeAll(async () => {
      servers = await Promise.all([startPostgres(), startMysql()]);
      const [postgres, my] = servers;
      urls = {
        from: { postgres: await postgres.createDatabase(), mysql: await my.createDatabase("src") },
        to: { postgres: await postgres.createDatabase(), mysql: await my.createDatabase("dst") },
      };
      const source = await connect(urls.from.postgres);
      await source.query(
        "CREATE TABLE many (id int PRIMARY KEY, t text, v int); INSERT INTO many SELECT i, repeat('x', 100), i FROM generate_series(1, 20000) i",
      );
      await source.end();
      const other = await mysql.createConnection(urls.from.mysql);
      await other.query("CREATE TABLE many (id int PRIMARY KEY, t text, v int)");
      await other.query("INSERT INTO many SELECT seq, repeat('x', 100), seq FROM seq_1_to_20000");
      await other.end();
    });
    afterAll(async () => {
      await Promise.all(servers?.map((server) => server.stop()) ?? []);
      rmSync(folder, { recursive: true, force: true });
    });

    for (const [from, to] of pairs)
      for (const mode of ["full_refresh", "incremental"] as const)
        test(`${from} to ${to}, ${mode}`, async () => {
          const table = `cut_${from}_${to}_${mode}`;
          const place = to === "postgres" || to === "mysql" ? urls.to[to] : join(folder, `${table}.${to}`);
          const ends = { from: urls.from[from], object: from === "mysql" ? "src.many" : "many", to: place, table };
          const more = {
            mode,
            primary_key: ["id"],
            cursor_field: mode === "incremental" ? "v" : null,
            deletes: mode === "incremental" && to !== "csv" && to !== "parquet" ? ("hard" as const) : null,
          };
          for (const side of ["from", "to"] as const)
            for (const limit of limits) {
              const kind = side === "from" ? from : to;
              if (kind !== "postgres" && kind !== "mysql") continue;
              const proxy = await cuttingProxy(socketOf(kind), limit);
              const outcome = await sync({ ...ends, [side]: through(ends[side], proxy.port) }, more);
              proxy.close();
              expect([side, limit, outcome]).toMatchObject([
                side,
                limit,
                { status: "failed", error: { code: "connection_lost" } },
              ]);
            }
          // Nothing of them is in the way of the run that gets through.
          expect(await sync(ends, more)).toMatchObject({
            status: "completed",
            error: null,
            proof: { destination_count: 20_000 },
          });
        });

    function socketOf(kind: "postgres" | "mysql"): () => net.Socket {
      if (kind === "postgres") return () => net.connect(`${servers[0].socketFolder}/.s.PGSQL.5432`);
      return () => net.connect(Number(new URL(urls.from.mysql).port), "127.0.0.1");
    }
  });
}

function through(url: string, port: number): string {
  const target = new URL(url);
  target.searchParams.delete("host");
  target.host = `127.0.0.1:${port}`;
  return target.href;
}

/** Passes exactly `limit` bytes of each connection on, so mostly a part of a message last, then ends both sides. */
export function cuttingProxy(target: () => net.Socket, limit: number): Promise<TestProxy> {
  return proxyWith(target, (client, upstream) => {
    let left = limit;
    const pass = (to: net.Socket) => (chunk: Buffer) => {
      if (left === 0) return;
      to.write(chunk.subarray(0, left));
      left = Math.max(0, left - chunk.length);
      if (left === 0) for (const socket of [client, upstream]) socket.destroySoon();
    };
    client.on("data", pass(upstream));
    upstream.on("data", pass(client));
  });
}

/** Passes everything on; what the server sends behind `mark` follows `ms` milliseconds later. */
export function holdingProxy(target: () => net.Socket, mark: Buffer, ms: number): Promise<TestProxy> {
  return proxyWith(target, (client, upstream) => {
    let before = Promise.resolve();
    const send = (chunk: Buffer) => {
      before = before.then(async () => {
        const end = chunk.indexOf(mark) + mark.length;
        if (end < mark.length || end === chunk.length) return void client.write(chunk);
        client.write(chunk.subarray(0, end));
        await new Promise((resolve) => setTimeout(resolve, ms));
        client.write(chunk.subarray(end));
      });
    };
    client.on("data", (chunk) => upstream.write(chunk));
    upstream.on("data", send);
  });
}

/** Puts a CopyData message whose length is 0 before the end of the rows, CopyDone. */
export function tearingProxy(target: () => net.Socket): Promise<TestProxy> {
  // With CommandComplete's first byte: "public" before a field of four bytes looks like the rest.
  const done = Buffer.from("630000000443", "hex");
  return proxyWith(target, (client, upstream) => {
    client.on("data", (chunk) => upstream.write(chunk));
    upstream.on("data", (chunk: Buffer) => {
      const end = chunk.indexOf(done);
      if (end < 0) return void client.write(chunk);
      client.write(Buffer.concat([chunk.subarray(0, end), Buffer.from("6400000000", "hex"), chunk.subarray(end)]));
    });
  });
}

/** Changes a MySQL server's packet, the one that begins after `from` bytes; its header is the first four. */
export function garblingProxy(
  target: () => net.Socket,
  from: number,
  garble: (packet: Buffer) => unknown,
): Promise<TestProxy> {
  return proxyWith(target, (client, upstream) => {
    let sent = 0;
    let rest = Buffer.alloc(0);
    client.on("data", (chunk) => upstream.write(chunk));
    upstream.on("data", (chunk: Buffer) => {
      rest = Buffer.concat([rest, chunk]);
      while (rest.length >= 4 && rest.length >= 4 + rest.readUIntLE(0, 3)) {
        const packet = rest.subarray(0, 4 + rest.readUIntLE(0, 3));
        rest = rest.subarray(packet.length);
        if (sent <= from && from < sent + packet.length) garble(packet);
        sent += packet.length;
        client.write(packet);
      }
    });
  });
}

interface TestProxy {
  readonly port: number;
  close(): void;
}

function proxyWith(
  target: () => net.Socket,
  join: (client: net.Socket, upstream: net.Socket) => void,
): Promise<TestProxy> {
  const proxy = net.createServer((client) => {
    const upstream = target();
    join(client, upstream);
    for (const socket of [client, upstream]) socket.on("error", () => {});
    client.on("close", () => upstream.destroySoon());
    upstream.on("close", () => client.destroySoon());
  });
  return new Promise((resolve) =>
    proxy.listen(0, "127.0.0.1", () =>
      resolve({ port: (proxy.address() as net.AddressInfo).port, close: () => proxy.close() }),
    ),
  );
}
