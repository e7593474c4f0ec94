import { availableParallelism } from "node:os";
import { setTimeout as sleep } from "node:timers/promises";
import { expect, test } from "vitest";
import type { Cell } from "#daemon/controllers/cell/cell.ts";
import { openPool } from "#daemon/controllers/cell/pool.ts";

test("of hundreds of cells that are asked for at once a few are started at a time, and one that fails holds up none", async () => {
  let [starting, most, started] = [0, 0, 0];
  const pool = openPool({
    size: 1,
    async start() {
      most = Math.max(most, ++starting);
      const nth = ++started;
      await sleep(1);
      starting--;
      if (nth % 10 === 0) throw new Error("no process to be had");
      return { pid: nth, gone: new Promise(() => {}), kill() {} } as unknown as Cell;
    },
  });
  const taken = await Promise.allSettled(Array.from({ length: 300 }, () => pool.take()));
  const cells = taken.flatMap((each) => (each.status === "fulfilled" ? [each.value.pid] : []));
  expect(new Set(cells).size).toBe(cells.length);
  expect(cells.length).toBeGreaterThan(260);
  expect(most).toBeLessThanOrEqual(Math.max(4, availableParallelism()));
});

test("whoever no longer needs a cell leaves the line, and a pool that closes starts none for who stands in it", async () => {
  let started = 0;
  const begun = Promise.withResolvers<Cell>();
  const pool = openPool({
    size: 1,
    start() {
      started++;
      return begun.promise;
    },
  });
  const most = Math.max(4, availableParallelism());
  const first = Array.from({ length: most }, () => pool.take().catch(() => {}));
  const overtaken = new AbortController();
  const left = pool.take(overtaken.signal);
  const waits = pool.take();
  overtaken.abort();
  await expect(left).rejects.toThrow("nobody needs the cell");
  const closes = pool.close();
  await expect(waits).rejects.toThrow("nobody needs the cell");
  begun.reject(new Error("no process to be had"));
  await Promise.all([...first, closes]);
  expect(started).toBe(most);
});

test("a call that needs a cell does not wait behind hundreds of reloads", async () => {
  const pool = openPool({
    size: 1,
    async start() {
      await sleep(1);
      return { gone: new Promise(() => {}), kill() {} } as unknown as Cell;
    },
  });
  const { signal } = new AbortController();
  let reloaded = 0;
  const reloads = Array.from({ length: 300 }, () => pool.take(signal).then(() => reloaded++));
  await pool.take();
  expect(reloaded).toBeLessThan(10 + 2 * Math.max(4, availableParallelism()));
  await Promise.all(reloads);
});
