// Daemons killed without warning: nothing that was acknowledged is lost. 200 kills of writes; 10,000 events with 20 kills.
import { type ChildProcess, fork } from "node:child_process";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { temporaryFolder } from "#test/temporary.ts";
import { startReceiver, writeProject } from "./receiver.ts";

interface Running {
  readonly child: ChildProcess;
  readonly exited: Promise<void>;
  call(
    method: string,
    path: string,
    body?: unknown,
  ): Promise<{ status: number; body: { id: string; data: never[]; has_more: boolean; next_cursor: string } }>;
}

async function start(root: string, home: string): Promise<Running> {
  const child = fork(fileURLToPath(new URL("daemon-process.ts", import.meta.url)), [root, home], {
    cwd: fileURLToPath(new URL("../..", import.meta.url)),
  });
  const exited = new Promise<void>((resolve) => child.once("exit", () => resolve()));
  const { url, token } = await new Promise<{ url: string; token: string }>((resolve, reject) => {
    child.once("message", (message) => resolve(message as never));
    void exited.then(() => reject(new Error("it ended before it was ready")));
  });
  return {
    child,
    exited,
    async call(method, path, body) {
      const answer = await fetch(new URL(path, url), {
        method,
        headers: { authorization: `Bearer ${token}`, "magic-environment": "live", "content-type": "application/json" },
        ...(method === "GET" ? {} : { body: JSON.stringify(body ?? {}) }),
      });
      return { status: answer.status, body: (await answer.json()) as never };
    },
  };
}

async function all(running: Running, path: string): Promise<Record<string, never>[]> {
  const found: Record<string, never>[] = [];
  for (let cursor = ""; ; ) {
    const { body } = await running.call("GET", `${path}limit=100${cursor && `&starting_after=${cursor}`}`);
    found.push(...body.data);
    if (!body.has_more) return found;
    cursor = body.next_cursor;
  }
}

const kills = Number(process.env["MAGIC_TEST_KILLS"] ?? 200);
const events = Number(process.env["MAGIC_TEST_EVENTS"] ?? 10_000);

test(`kill -9 at ${kills} random moments of writes loses no acknowledged write`, async () => {
  const [root, home] = [temporaryFolder(), temporaryFolder()];
  const acknowledged: string[] = [];
  for (let round = 0; round < kills; round++) {
    const running = await start(root, home);
    // From the first acknowledged write on, so that every kill falls among writes however slow the machine is.
    let armed = false;
    const write = async (): Promise<void> => {
      for (;;) {
        const made = await running.call("POST", "/v1/connections", { provider: "postgres" }).catch(() => undefined);
        if (made === undefined) return;
        if (made.status !== 201) throw new Error(`a write was answered with ${made.status}`);
        acknowledged.push(made.body.id);
        if (!armed) setTimeout(() => running.child.kill("SIGKILL"), Math.random() * 150);
        armed = true;
      }
    };
    await Promise.all([...Array.from({ length: 8 }, write), running.exited]);
  }
  const last = await start(root, home);
  const kept = new Set((await all(last, "/v1/connections?")).map((one) => String(one["id"])));
  last.child.kill();
  await last.exited;
  process.stderr.write(`${acknowledged.length} acknowledged writes over ${kills} kills\n`);
  expect(acknowledged.length).toBeGreaterThan(kills);
  expect(acknowledged.filter((id) => !kept.has(id))).toEqual([]);
});

test(`${events} events reach a receiver that fails 30 % of the time, over 20 kills: none lost, duplicates share one id`, async () => {
  const [root, home] = [temporaryFolder(), temporaryFolder()];
  const receiver = await startReceiver();
  const failures = new Map<string, number>();
  receiver.answer = ({ headers }) => {
    const id = String(headers["webhook-id"]);
    const inRow = failures.get(id) ?? 0;
    const fails = inRow < 5 && Math.random() < 0.3;
    failures.set(id, fails ? inRow + 1 : 0);
    return { status: fails ? 503 : 200 };
  };
  const schedule = [0, 0.1, 0.2, 0.2, 0.3, 0.3, 0.5, 0.5, 1, 1];
  writeProject(root, { egress: { allow_private: [receiver.address] }, webhooks: { retry_schedule_s: schedule } });
  let running = await start(root, home);
  const { body: webhook } = await running.call("POST", "/v1/webhooks", { url: receiver.url, events: ["sync.failed"] });
  const accepted: string[] = [];
  for (let round = 0; round <= 20; round++) {
    const goal = Math.ceil((events * (round + 1)) / 21);
    const send = async (): Promise<void> => {
      while (accepted.length < goal) {
        const sent = await running.call("POST", `/v1/webhooks/${webhook.id}/test`).catch(() => undefined);
        if (sent?.status === 202) accepted.push((sent.body as unknown as { event_id: string }).event_id);
        else return;
      }
    };
    while (accepted.length < goal) await Promise.all(Array.from({ length: 16 }, send));
    if (round === 20) break;
    running.child.kill("SIGKILL");
    await running.exited;
    running = await start(root, home);
  }
  const pending = async (): Promise<number> =>
    (await running.call("GET", `/v1/webhooks/${webhook.id}/deliveries?status=pending&limit=1`)).body.data.length;
  for (const end = Date.now() + 600_000; (await pending()) > 0 && Date.now() < end; )
    await new Promise((resolve) => setTimeout(resolve, 500));
  expect(await pending()).toBe(0);
  const deliveries = await all(running, `/v1/webhooks/${webhook.id}/deliveries?`);
  running.child.kill();
  await running.exited;
  const bodies = new Map<string, Set<string>>();
  for (const { headers, body } of receiver.received) {
    const id = String(headers["webhook-id"]);
    bodies.set(id, (bodies.get(id) ?? new Set()).add(body));
  }
  process.stderr.write(`${accepted.length} events accepted, ${receiver.received.length} requests received\n`);
  expect(accepted.filter((id) => !bodies.has(id))).toEqual([]);
  expect([...bodies.values()].filter((seen) => seen.size !== 1)).toEqual([]);
  expect(deliveries.filter(({ status }) => String(status) !== "succeeded")).toEqual([]);
});
