// The spare worker: real processes, each of which runs one thing at most.
import type { ChildProcess } from "node:child_process";
import { once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import { afterEach, expect, test } from "vitest";
import { keepSpare, type Workers } from "#daemon/integrations/live/spare-worker.ts";
import { startWorker } from "#shared/sync-worker.ts";

const started: ChildProcess[] = [];
let workers: Workers;

function keep(times: { idleMs?: number; pauseMs?: number } = {}): Workers {
  workers = keepSpare(
    () => {
      const worker = startWorker();
      started.push(worker);
      return worker;
    },
    { pauseMs: 1, ...times },
  );
  return workers;
}

const postgres = { url: "postgres://user:secret@localhost/x", object: "o" };
const running = (): ChildProcess[] => started.filter((one) => one.exitCode === null && one.signalCode === null);

async function end(worker: ChildProcess): Promise<void> {
  const closed = once(worker, "close");
  worker.kill("SIGKILL");
  await closed;
}

async function spare(count: number): Promise<ChildProcess> {
  while (started.length < count) await sleep(5);
  return started[count - 1] as ChildProcess;
}

afterEach(async () => {
  workers.close();
  for (const worker of running()) await end(worker);
  started.length = 0;
});

test("after the last work there is one spare, which the next work gets; nobody starts one meanwhile", async () => {
  const { take } = keep();
  const [first, second] = [take(postgres, postgres), take(postgres)];
  expect(second).not.toBe(first);
  await end(first);
  await sleep(50);
  expect(started).toHaveLength(2);
  await end(second);
  const third = await spare(3);
  const taken = take(postgres);
  expect(taken).toBe(third);
  expect(take(postgres)).not.toBe(taken);
  expect(taken.spawnargs.join(" ")).not.toContain("secret");
  // It works, loaded as it is.
  const answer = new Promise((resolve) =>
    taken.on("message", (reply: { type: string }) => reply.type === "answer" && resolve(reply)),
  );
  taken.send({
    type: "check",
    id: 7,
    end: { ...postgres, url: "postgres://user:secret@127.0.0.1:1/x" },
    allow_private: [],
  });
  expect(await answer).toMatchObject({ id: 7, error: { code: "unreachable" } });
});

test("a spare that dies is nobody's: the next work gets a new process", async () => {
  const { take } = keep();
  await end(take(postgres));
  const dead = await spare(2);
  await end(dead);
  const worker = take(postgres);
  expect(worker).not.toBe(dead);
  expect(worker.connected).toBe(true);
});

test("a spare that nobody needs ends, and so does one whose daemon closes", async () => {
  const { take } = keep({ idleMs: 200 });
  await end(take(postgres));
  const idle = await spare(2);
  await once(idle, "exit");
  expect(idle.signalCode).toBe("SIGKILL");
  await end(take(postgres));
  const last = await spare(4);
  const gone = once(last, "exit");
  workers.close();
  await gone;
  await sleep(50);
  expect(running()).toEqual([]);
});
