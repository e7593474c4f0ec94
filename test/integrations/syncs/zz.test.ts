import { mkdtempSync, rmSync } from "node:fs";
import { createServer } from "node:http";
import net from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import mysql from "mysql2/promise";
import { test } from "vitest";
import { startMysql } from "#test/mysql.ts";
import { startPostgres } from "#test/postgres.ts";
import { connect, sync } from "./harness.ts";

function proxyTo(target: () => net.Socket, how: "cut" | "freeze", limit: number) {
  const open: net.Socket[] = [];
  const proxy = net.createServer((client) => {
    const up = target();
    let left = limit;
    open.push(client, up);
    const pass = (to: net.Socket) => (chunk: Buffer) => {
      if (left <= 0 && how === "freeze") return;
      to.write(chunk.subarray(0, left));
      left = Math.max(0, left - chunk.length);
      if (left === 0 && how === "cut") for (const s of [client, up]) s.destroySoon();
    };
    client.on("data", pass(up)).on("error", () => {});
    up.on("data", pass(client)).on("error", () => {});
    if (how === "cut") {
      client.on("close", () => up.destroySoon());
      up.on("close", () => client.destroySoon());
    }
  });
  return new Promise<{ port: number; close(): void }>((r) =>
    proxy.listen(0, "127.0.0.1", () =>
      r({
        port: (proxy.address() as net.AddressInfo).port,
        close: () => {
          proxy.close();
          for (const s of open) s.destroy();
        },
      }),
    ),
  );
}
test("x", async () => {
  const s = await startPostgres();
  const [from, to] = [await s.createDatabase(), await s.createDatabase()];
  const m = await startMysql();
  const my = await m.createDatabase("src");
  const my2 = await m.createDatabase("dst");
  const folder = mkdtempSync(join(tmpdir(), "zz-"));
  const [a, b] = [await connect(from), await connect(to)];
  const c = await mysql.createConnection({ uri: my, multipleStatements: true });
  await a.query(
    "create table many (id int primary key, t text, v int); insert into many select i, repeat('x', 100), i from generate_series(1,20000) i",
  );
  await c.query(
    "create table many (id int primary key, t text, v int); insert into many select seq, repeat('x', 100), seq from seq_1_to_20000",
  );
  const lines: string[] = [];
  const pgSock = () => net.connect(`${s.socketFolder}/.s.PGSQL.5432`);
  const mySock = () => net.connect(Number(new URL(my).port), "127.0.0.1");
  const via = (url: string, port: number) => {
    const u = new URL(url);
    u.searchParams.delete("host");
    u.host = `127.0.0.1:${port}`;
    return u.href;
  };
  const pairs: Record<string, [string, string, string]> = {
    "my>pg": [my, "src.many", to],
    "pg>my": [from, "many", my2],
    "my>my": [my, "src.many", my2],
    "pg>pg": [from, "many", to],
    "pg>sqlite": [from, "many", join(folder, "x.sqlite")],
    "my>csv": [my, "src.many", join(folder, "x.csv")],
    "pg>parquet": [from, "many", join(folder, "x.parquet")],
  };
  const only = process.env["ONLY"];
  for (const [pair, [f, o, t]] of Object.entries(pairs))
    for (const mode of ["full_refresh", "incremental"] as const)
      for (const side of ["from", "to"] as const)
        for (const how of ["cut", "freeze"] as const)
          for (const limit of [3000, 200_001, 1_500_003]) {
            const url = side === "from" ? f : t;
            if (!url.includes("://")) continue;
            if (only && !pair.includes(only)) continue;
            const table = `t_${pair.replace(">", "_")}_${mode}`;
            const p = await proxyTo(url.startsWith("mysql") ? mySock : pgSock, how, limit);
            const ends = {
              from: side === "from" ? via(f, p.port) : f,
              object: o,
              to: side === "to" ? via(t, p.port) : t,
              table,
            };
            const started = performance.now();
            const out = (await Promise.race([
              sync(ends, {
                mode,
                cursor_field: mode === "incremental" ? "v" : null,
                deletes: mode === "incremental" && !t.includes(".csv") && !t.includes(".parquet") ? "hard" : null,
                primary_key: ["id"],
                stall_timeout_s: 2,
              }),
              new Promise((r) => setTimeout(() => r("HANG"), 15000)),
            ])) as any;
            const took = ((performance.now() - started) / 1000).toFixed(1);
            lines.push(
              `${out === "HANG" || Number(took) > 6 || !["connection_lost", "run_stalled"].includes(out.error?.code) ? "!! " : "   "}${pair} ${mode} ${side} ${how} ${limit}: ${out === "HANG" ? "HANG" : `${out.status} ${out.error?.code} ${out.error?.message?.slice(0, 120)}`} ${took}s`,
            );
            p.close();
          }
  console.log(lines.join("\n"));
  await Promise.all([a.end(), b.end(), c.end()]);
  await s.stop();
  await m.stop();
  rmSync(folder, { recursive: true });
}, 900000);
