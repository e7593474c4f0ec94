// A database of magic.yaml that names a live connection: through the broker, the sealed credentials and the egress guard.
import { mkdirSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { expect, onTestFinished, test, vi } from "vitest";
import { startDaemon } from "#test/integrations/daemon.ts";
import { listen } from "#test/listen.ts";
import { contractOf, put } from "./harness.ts";

test("a controller queries a live connection by its name in magic.yaml, where the connection may be reached", async () => {
  vi.stubEnv("PGPASSWORD", "of-the-daemons-user");
  onTestFinished(() => void vi.unstubAllEnvs());
  // A server that asks whoever comes for the password itself.
  const canary = createServer((socket) => {
    reached++;
    socket.on("error", () => undefined);
    socket.once("data", () => {
      socket.write(Buffer.from("R\0\0\0\b\0\0\0\x03", "latin1"));
      socket.once("data", (answer) => {
        told.push(answer.toString("latin1"));
        socket.destroy();
      });
    });
  });
  let reached = 0;
  const told: string[] = [];
  const { port } = await listen(canary);
  try {
    const daemon = await startDaemon();
    const live = async (method: string, path: string, body: unknown) =>
      (await daemon.call(method, path, body, { live: true })).body;
    const file = new DatabaseSync(join(daemon.root, "shop.sqlite"));
    file.exec("create table t (id integer primary key, name text); insert into t values (1, 'one')");
    file.close();
    const shop = await live("POST", "/v1/connections", { provider: "sqlite", config: { path: "shop.sqlite" } });
    const far = { url: `postgres://u@localhost:${port}/d` };
    const server = await live("POST", "/v1/connections", { provider: "postgres", config: far });
    const configure = async (allowed: readonly string[]) => {
      writeFileSync(
        join(daemon.root, "magic.yaml"),
        JSON.stringify({
          version: 1,
          databases: {
            shop: { connection: shop.id },
            far: { connection: server.id },
            gone: { connection: "conn_nonesuch" },
          },
          egress: { allow_private: allowed },
        }),
      );
      expect(await daemon.app.project.reload()).toBe(true);
    };
    await configure([]);

    const folder = join(daemon.root, "controllers/q");
    mkdirSync(folder, { recursive: true });
    const scopes = { db: [{ name: "shop" }, { name: "far" }, { name: "gone" }] };
    put(join(folder, "contract.yaml"), JSON.stringify(contractOf("q", { capabilities: ["db:query"], scopes })));
    put(
      join(folder, "handler.ts"),
      `export default async ({ input, db }) => {
        try { return (await db.query(input.db, input.sql ?? "select * from t")).rows; }
        catch (error) { return { code: error.code }; }
      };`,
    );
    await live("POST", "/v1/controllers", await live("POST", "/v1/dev/builds", { folder }));
    const query = async (input: object) => (await live("POST", "/v1/controllers/q/invoke", { input })).output;

    expect(await query({ db: "shop" })).toEqual([{ id: 1, name: "one" }]);
    expect(await query({ db: "shop", sql: "delete from t" })).not.toEqual([]);
    expect(await query({ db: "gone" })).toEqual({ code: "not_found" });
    expect(await query({ db: "far" })).toEqual({ code: "egress_blocked" });
    expect(reached).toBe(0);
    await configure([`localhost:${port}`]);
    expect(await query({ db: "far" })).not.toEqual({ code: "egress_blocked" });
    expect(reached).toBeGreaterThan(0);
    await live("POST", `/v1/connections/${server.id}/check`, {});
    expect(told).toHaveLength(2);
    expect(told.join()).not.toContain("of-the-daemons-user");

    await live("PATCH", `/v1/connections/${shop.id}`, { config: { path: "other.sqlite" } });
    expect(await query({ db: "shop" })).not.toEqual([{ id: 1, name: "one" }]);
    await live("DELETE", `/v1/connections/${shop.id}`, undefined);
    expect(await query({ db: "shop" })).toEqual({ code: "not_found" });
  } finally {
    canary.close();
  }
});
