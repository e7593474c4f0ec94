// magic connector new, by options, against a server that pages in different ways.
import { mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { parse } from "yaml";
import { createSandbox } from "#test/cli/magic.ts";
import { listen } from "#test/listen.ts";

const orders = Array.from({ length: 25 }, (_, at) => ({
  ...{ kind: "order", id: `o${at + 1}`, total: at % 2 === 0 ? at : at + 0.5, note: at === 3 ? null : "text" },
  updated_at: `2026-05-${String(at + 1).padStart(2, "0")}T00:00:00Z`,
}));

let origin: string;
let close: () => Promise<void>;
const sandbox = createSandbox();
beforeAll(async () => {
  const server = createServer((request, response) => {
    const url = new URL(request.url ?? "/", `https://${request.headers.host}`);
    const json = (status: number, body: unknown, headers = {}): void => {
      response.writeHead(status, { "content-type": "application/json", ...headers }).end(JSON.stringify(body));
    };
    if (request.headers.authorization !== "Bearer hush-hush") return json(401, { error: { message: "who are you?" } });
    const since = url.searchParams.get("since") ?? "";
    const all = orders.filter((order) => order.updated_at >= since);
    const offset = Number(url.searchParams.get("offset") ?? url.searchParams.get("cursor") ?? 0);
    const page = Number(url.searchParams.get("page") ?? 1);
    const next = new URL(url);
    next.searchParams.set("page", String(page + 1));
    const numbered = all.slice((page - 1) * 10, page * 10);
    if (url.pathname === "/v1/linked")
      return json(200, numbered, page < 3 ? { link: `<${next.href}>; rel="next", <${url.href}>; rel="first"` } : {});
    if (url.pathname === "/v1/numbered") return json(200, { data: numbered, meta: { page, per_page: 10, total: 25 } });
    if (url.pathname === "/v1/zeroed") {
      const from = Number(url.searchParams.get("page") ?? 0);
      return json(200, { items: all.slice(from * 10, from * 10 + 10), page: from });
    }
    if (url.pathname === "/v1/cursors") {
      const more = offset + 10 < all.length ? String(offset + 10) : null;
      return json(200, { result: { orders: all.slice(offset, offset + 10) }, paging: { next_cursor: more } });
    }
    return json(404, { message: "nothing here" });
  });
  ({ origin, close } = await listen(server));
});
afterAll(async () => {
  await close();
  await sandbox.dispose();
});

const config = JSON.stringify({ token: "hush-hush" });
const magic = (args: readonly string[]) => sandbox.magic(args, { env: { MAGIC_HTTP_REWRITE: `*=${origin}` } });
const make = (path: string, ...more: string[]) =>
  magic([
    ...["connector", "new", path, "--base-url", "https://api.example.com/v1", "--auth", "bearer", "--path", path],
    ...["--config", config, "--json", ...more],
  ]);

test("finds records, key and pages, and writes a connector that reads all", { timeout: 120_000 }, async () => {
  const wanted = [
    ["linked", [], { type: "link" }],
    ["numbered", ["data"], { type: "page", parameter: "page", size: 10, start: 1 }],
    ["zeroed", ["items"], { type: "page", parameter: "page", size: 10, start: 0 }],
    ["cursors", ["result", "orders"], { type: "cursor", path: ["paging", "next_cursor"], parameter: "cursor" }],
  ] as const;
  await Promise.all(
    wanted.map(async ([path, records_path, pagination]) => {
      const made = await make(path);
      expect(made, made.stderr).toMatchObject({ code: 0 });
      expect(JSON.parse(made.stdout)).toMatchObject({
        name: path,
        streams: [path],
        records_path,
        primary_key: ["id"],
        pagination,
      });
      const text = readFileSync(JSON.parse(made.stdout).file, "utf8");
      expect(text).not.toContain("hush-hush");
      expect(parse(text).streams[0].schema_loader.schema.properties).toMatchObject({
        id: { type: ["string", "null"] },
        total: { type: ["number", "null"] },
        updated_at: { type: ["string", "null"], format: "date-time" },
      });
      const read = await magic(["connector", "read", path, path, "--config", config, "--output", "ndjson"]);
      expect(read.stdout.split("\n").filter((line) => line.includes('"record"'))).toHaveLength(25);
    }),
  );
});

test("incremental by options; wrong credentials, missing options and a path without records are told", async () => {
  const cursor = ["--cursor-field", "updated_at", "--cursor-param", "since", "--stream", "orders", "--force"];
  expect(await make("numbered", ...cursor)).toMatchObject({ code: 0 });
  const state = JSON.stringify({ cursor: "2026-05-24T00:00:00Z" });
  const read = await magic([
    ...["connector", "read", "numbered", "orders", "--config", config, "--state", state, "--output", "ndjson"],
  ]);
  expect(read.stdout.split("\n").filter((line) => line.includes('"record"'))).toHaveLength(2);

  const rejected = await make("linked", "--config", '{"token": "hush-not"}', "--force");
  expect(rejected.code).toBe(5);
  expect(rejected.stderr).toContain("who are you?");
  expect(rejected.stderr).not.toContain("hush-not");
  expect(await make("nowhere")).toMatchObject({ code: 4 });
  const missing = await magic(["connector", "new", "shop", "--json"]);
  expect(missing.code).toBe(2);
  expect(missing.stderr).toMatch(/--base-url.*--auth.*--path/s);
});

test("an API at a private address is read where magic.yaml opens it, by new, test and read", {
  timeout: 120_000,
}, async () => {
  const root = mkdtempSync(join(sandbox.folder, "project-"));
  const run = (...args: string[]) => sandbox.magic([...args, "--config", config, "--root", root]);
  const begin = ["connector", "new", "private", "--base-url", `${origin}/v1`, "--auth", "bearer", "--path", "numbered"];
  const unread = await run("connector", "read", "stripe", "nothing", "--sandbox");
  expect(unread.stderr).toContain("next: Correct the name or the path that the detail tells.");
  writeFileSync(join(root, "magic.yaml"), "version: 1\n");
  expect((await run(...begin)).stderr).toContain("egress.allow_private in magic.yaml does not list it");
  writeFileSync(join(root, "magic.yaml"), `version: 1\negress: { allow_private: ["${new URL(origin).host}"] }\n`);
  for (const args of [begin, ["connector", "test", "private"], ["connector", "read", "private", "numbered"]]) {
    const done = await run(...args);
    expect(done, done.stderr).toMatchObject({ code: 0 });
  }
});
