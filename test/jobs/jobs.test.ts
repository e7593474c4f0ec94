import { expect, onTestFinished, test, vi } from "vitest";
import { createJobs } from "#daemon/jobs/jobs.ts";
import type { Job, QueueOptions } from "#daemon/jobs/queue.ts";
import { openStorage } from "#daemon/storage/open.ts";
import type { Storage } from "#daemon/storage/storage.ts";
import { temporaryFolder, temporaryStorage } from "#test/temporary.ts";

async function queue<T>(storage: Storage, options: QueueOptions<T>) {
  const jobs = createJobs({ storage });
  const defined = jobs.define("test", options);
  await jobs.start();
  onTestFinished(() => jobs.stop());
  return { jobs, queue: defined };
}

test("every job runs once, never more of them at a time than allowed", async () => {
  const seen: number[] = [];
  let active = 0;
  let most = 0;
  const { queue: numbers } = await queue<number>(await temporaryStorage(), {
    concurrency: 4,
    async handle({ payload }) {
      most = Math.max(most, ++active);
      await new Promise((resolve) => setTimeout(resolve, 2));
      active--;
      seen.push(payload);
      return undefined;
    },
  });
  await Promise.all(Array.from({ length: 200 }, (_, i) => numbers.put(i)));
  await vi.waitFor(() => expect(seen).toHaveLength(200), 20_000);
  expect(new Set(seen).size).toBe(200);
  expect(most).toBe(4);
});

test("jobs that rest leave their places to others, so many at most", async () => {
  const begun: Job<string>[] = [];
  const goOn = Promise.withResolvers<undefined>();
  const { queue: jobs } = await queue<string>(await temporaryStorage(), {
    ...{ concurrency: 1, resting: 2 },
    async handle(job) {
      begun.push(job);
      job.rest(true);
      return goOn.promise;
    },
  });
  for (const name of ["a", "b", "c", "d", "e"]) await jobs.put(name);
  await vi.waitFor(() => expect(begun).toHaveLength(3), 20_000);
  await new Promise((resolve) => setTimeout(resolve, 100));
  expect(begun).toHaveLength(3);
  // One goes on, and who was refused a rest may have it.
  begun[0]?.rest(false);
  begun[2]?.rest(true);
  await new Promise((resolve) => setTimeout(resolve, 100));
  expect(begun).toHaveLength(3);
  goOn.resolve(undefined);
  await vi.waitFor(() => expect(begun).toHaveLength(5), 20_000);
});

test("a job waits for its time, runs again when it asks to, and after an error", async () => {
  const attempts: number[] = [];
  const counted: number[] = [];
  const start = Date.now();
  const { queue: jobs } = await queue<string>(await temporaryStorage(), {
    concurrency: 1,
    async handle({ attempt }) {
      counted.push(attempt);
      attempts.push(Date.now() - start);
      if (attempts.length === 1) return { runAgainAt: Date.now() + 100 };
      if (attempts.length === 2) throw new Error("not yet");
      return undefined;
    },
  });
  await jobs.put("x", { runAt: start + 150 });
  await vi.waitFor(() => expect(attempts).toHaveLength(3), 20_000);
  expect(attempts[0]).toBeGreaterThanOrEqual(150);
  expect((attempts[1] ?? 0) - (attempts[0] ?? 0)).toBeGreaterThanOrEqual(99);
  expect((attempts[2] ?? 0) - (attempts[1] ?? 0)).toBeGreaterThanOrEqual(990);
  // Who runs every few seconds for months is tried again as soon as others after an error.
  expect(counted).toEqual([1, 1, 2]);
});

test("who runs again and again leaves the place to who waits, though it was due before", async () => {
  const seen: string[] = [];
  const { queue: jobs } = await queue<string>(await temporaryStorage(), {
    concurrency: 1,
    async handle({ payload }) {
      seen.push(payload);
      if (seen.length === 1) await jobs.put("waiting", { runAt: Date.now() - 1_000 });
      return payload === "greedy" && seen.length < 5 ? { runAgainAt: Date.now() - 60_000 } : undefined;
    },
  });
  await jobs.put("greedy");
  await vi.waitFor(() => expect(seen).toContain("waiting"), 10_000);
  expect(seen.slice(0, 2)).toEqual(["greedy", "waiting"]);
});

test("what was taken or ended without a word of it is not held for the length of a lease", async () => {
  const storage = await temporaryStorage();
  const { job } = storage.units;
  const lost = new Set(["claim", "finish"]);
  const claim: typeof job.claim = async (args) => {
    const claimed = await job.claim(args);
    if (claimed.length > 0 && lost.delete("claim")) throw new Error("no word of it");
    return claimed;
  };
  const finish: typeof job.finish = async (args) => {
    if (lost.delete("finish")) throw new Error("no word of it");
    await job.finish(args);
  };
  const units = new Proxy(storage.units, {
    get: (all, noun) =>
      noun === "job"
        ? new Proxy(job, { get: (of, name) => ({ claim, finish })[String(name)] ?? Reflect.get(of, name) })
        : Reflect.get(all, noun),
  });
  const attempts: number[] = [];
  const at: number[] = [];
  const handle = async ({ attempt }: { readonly attempt: number }) => {
    attempts.push(attempt);
    at.push(performance.now());
    return undefined;
  };
  const { queue: jobs } = await queue<string>({ ...storage, units }, { concurrency: 2, handle });
  await jobs.put("x");
  await vi.waitFor(
    () => {
      jobs.wake();
      expect(attempts).toEqual([2, 3]);
    },
    { timeout: 10_000 },
  );
  // Nor is a handler called without a pause while only its end cannot be stored.
  expect((at[1] ?? 0) - (at[0] ?? 0)).toBeGreaterThan(390);
  await vi.waitFor(async () => expect(await storage.units.job.pending()).toBe(false));
});

test("a key names one job: the last put counts, also while it runs, and it can be cancelled", async () => {
  const seen: string[] = [];
  let release = (): void => {};
  const { queue: jobs } = await queue<string>(await temporaryStorage(), {
    concurrency: 1,
    async handle({ payload }) {
      seen.push(payload);
      if (payload === "b")
        await new Promise<void>((resolve) => {
          release = resolve;
        });
      return undefined;
    },
  });
  await jobs.put("a", { key: "k", runAt: Date.now() + 60_000 });
  await jobs.put("b", { key: "k" });
  await vi.waitFor(() => expect(seen).toEqual(["b"]), 10_000);
  await jobs.put("c", { key: "k" });
  release();
  await vi.waitFor(() => expect(seen).toEqual(["b", "c"]), 10_000);
  await jobs.put("d", { key: "k", runAt: Date.now() + 1500 });
  await jobs.cancel("k");
  await new Promise((resolve) => setTimeout(resolve, 1700));
  expect(seen).toEqual(["b", "c"]);
});

test("what was put, and what was running, survives the process", async () => {
  const root = temporaryFolder();
  const first = await openStorage({ root });
  const dead = createJobs({ storage: first });
  const never = dead.define<string>("test", { concurrency: 2, handle: () => new Promise(() => {}) });
  await dead.start();
  await never.put("running");
  await never.put("later", { runAt: Date.now() + 50 });
  await new Promise((resolve) => setTimeout(resolve, 30));
  await first.close();

  const seen: string[] = [];
  const storage = await temporaryStorage({ root });
  await queue<string>(storage, {
    concurrency: 2,
    async handle({ payload }) {
      seen.push(payload);
      return undefined;
    },
  });
  await vi.waitFor(() => expect(seen.sort()).toEqual(["later", "running"]), 20_000);
});

test("a clock that is set back keeps nothing waiting, one that jumps ahead runs nothing twice", async () => {
  const storage = await temporaryStorage();
  let now = Date.now();
  const clock = { now: () => now, monotonic: () => performance.now() };
  const seen: string[] = [];
  let release = (): void => {};
  const jobs = createJobs({ storage, clock });
  const queue = jobs.define<string>("test", {
    ...{ concurrency: 4, aheadMs: () => 0 },
    async handle({ payload }) {
      seen.push(payload);
      if (payload === "long")
        await new Promise<void>((resolve) => {
          release = resolve;
        });
      return undefined;
    },
  });
  await queue.put("before");
  now -= 3_600_000;
  await jobs.start();
  onTestFinished(() => jobs.stop());
  await vi.waitFor(() => expect(seen).toEqual(["before"]), 10_000);
  await queue.put("long");
  await vi.waitFor(() => expect(seen).toEqual(["before", "long"]), 10_000);
  now += 7_200_000;
  await queue.put("after");
  await vi.waitFor(() => expect(seen).toEqual(["before", "long", "after"]), 10_000);
  release();
});
