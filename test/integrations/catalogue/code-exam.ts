// The examination of the connectors that are written in code, with real files and servers: written to and read from, incrementally, proven by
// the engine's own count, and a wrong place told as such. What it says is the grade.
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { openSource } from "#daemon/integrations/connectors/open.ts";
import { listen } from "#test/listen.ts";
import { mysqlMissing, startMysql } from "#test/mysql.ts";
import { postgresMissing, startPostgres } from "#test/postgres.ts";
import { sync } from "../syncs/harness.ts";

export const codeConnectorIds = ["csv", "http", "jsonl", "mysql", "parquet", "postgres", "sqlite"] as const;

/** What is wrong; null: G1. undefined: this machine has no such server. */
export async function examineCode(id: (typeof codeConnectorIds)[number]): Promise<string | null | undefined> {
  const folder = mkdtempSync(join(tmpdir(), "magic-exam-"));
  try {
    if (id === "http") return await examineHttp(folder);
    if (id === "postgres" || id === "mysql") return await examineServer(id, folder);
    return await examineStore(join(folder, `store.${id}`), "orders", join(folder, `nowhere/store.${id}`), folder);
  } catch (error) {
    return (error as Error).message;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

async function examineServer(id: "postgres" | "mysql", folder: string): Promise<string | null | undefined> {
  if (id === "postgres" ? postgresMissing() : mysqlMissing()) return undefined;
  const server = await (id === "postgres" ? startPostgres() : startMysql());
  try {
    const url = new URL(await server.createDatabase("exam"));
    const wrong = new URL(url);
    wrong.pathname = "/nowhere";
    return await examineStore(url.href, id === "postgres" ? "public.orders" : "exam.orders", wrong.href, folder);
  } finally {
    await server.stop();
  }
}

const orders = (count: number): string =>
  Array.from({ length: count }, (_, at) =>
    JSON.stringify({ id: at + 1, name: `Order ${at + 1}, "quoted"`, at: `2026-05-${String(at + 1).padStart(2, "0")}` }),
  ).join("\n");

function must(holds: boolean, otherwise: string): asserts holds {
  if (!holds) throw new Error(otherwise);
}

async function examineStore(store: string, object: string, nowhere: string, folder: string): Promise<null> {
  const given = join(folder, "given.jsonl");
  const taken = join(folder, "taken.sqlite");
  const fill = async (count: number): Promise<void> => {
    writeFileSync(given, `${orders(count)}\n`);
    const ends = { from: given, object: "given", to: store, table: object };
    const { error, records_synced } = await sync(ends, { primary_key: ["id"] });
    must(error === null, `writing: ${error?.message}`);
    must(records_synced === count, `writing: ${records_synced} of ${count} records`);
  };
  await fill(3);
  const source = await openSource({ url: store, object });
  try {
    await source.check();
    const found = await source.discover();
    const fields = found.map(({ schema }) => Object.keys((schema["properties"] ?? {}) as object));
    must(
      fields.some((names) => ["id", "name", "at"].every((name) => names.includes(name))),
      `discover: ${JSON.stringify(fields)}`,
    );
  } finally {
    await source.close();
  }
  const take = () =>
    sync(
      { from: store, object, to: taken, table: "orders" },
      { sync_id: "sync_exam", mode: "incremental", primary_key: ["id"], cursor_field: "at" },
    );
  const first = await take();
  must(first.error === null, `reading: ${first.error?.message}`);
  must(first.records_synced === 3, `reading: ${first.records_synced} of 3 records`);
  await fill(5);
  const second = await take();
  must(second.error === null, `reading on: ${second.error?.message}`);
  must(second.records_synced >= 2 && second.records_synced <= 5, `reading on: ${second.records_synced} records`);
  const whole = await sync({ from: taken, object: "orders", to: join(folder, "all.jsonl"), table: "all" });
  must(whole.records_read === 5, `reading on: ${whole.records_read} of 5 records are there`);
  const lost = await sync({ from: nowhere, object, to: join(folder, "lost.jsonl"), table: "lost" });
  must(lost.error !== null && lost.error.code !== "internal", `a wrong place: ${lost.error?.code ?? "not noticed"}`);
  return null;
}

/** A destination only: every record arrives once, past an answer of 503. */
async function examineHttp(folder: string): Promise<null> {
  const got: string[] = [];
  let refusals = 1;
  const server = createServer((request, response) => {
    void text(request).then((body) => {
      if (refusals-- > 0) return response.writeHead(503, { "retry-after": "0" }).end();
      got.push(body);
      return response.writeHead(200).end("{}");
    });
  });
  const { origin, close } = await listen(server);
  const to = `${origin}/records`;
  try {
    const given = join(folder, "given.jsonl");
    writeFileSync(given, `${orders(3)}\n`);
    const { error, records_synced } = await sync({ from: given, object: "given", to, table: "orders" });
    must(error === null, `writing: ${error?.message}`);
    must(records_synced === 3, `writing: ${records_synced} of 3 records`);
    must(
      ["Order 1", "Order 2", "Order 3"].every((name) => got.join("").split(name).length === 2),
      "writing: not once each",
    );
    return null;
  } finally {
    await close();
  }
}
