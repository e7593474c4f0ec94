import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { connectionStates, deliveryStates, mayMove, runStates, syncStates } from "#contract/states.ts";
import { temporaryStorage } from "#test/temporary.ts";

test("docs/states.md draws the machines that are enforced", () => {
  const page = readFileSync(new URL("../../docs/states.md", import.meta.url), "utf8");
  const drawn = [...page.matchAll(/stateDiagram-v2\n([\s\S]*?)```/g)].map(([, lines = ""]) =>
    lines
      .trim()
      .split("\n")
      .map((line) => line.trim()),
  );
  const machines = [connectionStates, syncStates, runStates, deliveryStates];
  expect(drawn).toEqual(
    machines.map((machine) =>
      Object.entries(machine).flatMap(([from, targets]) => targets.map((to: string) => `${from} --> ${to}`)),
    ),
  );
});

test("storage refuses every step that is not drawn, for each pair of states of a sync", async () => {
  const { units } = await temporaryStorage();
  const now = "2026-01-01T00:00:00.000Z";
  const connection = (id: string) => ({
    ...{ id, environment: "sandbox" as const, provider: "p", name: "n", status: "connected" as const, metadata: {} },
    ...{ health: { status: "healthy" as const, checked_at: null, latency_ms: null, message: null }, secret: null },
    ...{ created_at: now, updated_at: now, last_synced_at: null },
  });
  for (const id of ["conn_a", "conn_b"]) await units.connection.create({ connection: connection(id), limit: null });
  const body = {
    ...{ name: null, source_object: "o", destination_table: "t", schedule: "manual", timezone: null, metadata: {} },
    ...{ mode: "full_refresh" as const, primary_key: null, cursor_field: null, columns: null, mapping: null },
    ...{ on_bad_record: "quarantine" as const, deletes: null, stall_timeout_s: null },
  };
  const ways = { active: [], running: ["running"], paused: ["paused"], failed: ["running", "failed"] } as const;
  const names = Object.keys(syncStates) as (keyof typeof syncStates)[];
  for (const from of names)
    for (const to of names) {
      const id = `sync_${from}_${to}`;
      const ends = { source_connection: "conn_a", destination_connection: "conn_b" };
      await units.sync.create({ id, environment: "sandbox", ...ends, body, due: null, now, limit: null });
      for (const status of ways[from]) await units.sync.writeStatus({ id, status, now });
      const step = units.sync.writeStatus({ id, status: to, now });
      if (mayMove(syncStates, from, to)) await step;
      else await expect(step, `${from} to ${to}`).rejects.toMatchObject({ code: "conflict" });
    }
});
