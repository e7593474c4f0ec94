// The callers of a controller that misbehaves, in a process of their own: what they receive must not delay who measures.
//   argv: URL TOKEN TIMEOUT_MS; messages: { controller } begins, { stop } ends and is answered with what came out.
import { setTimeout as sleep } from "node:timers/promises";
import { Pool } from "undici";

const CALLERS = 2;
/** A refusal is answered at once; asking again without end would be a flood of HTTP and not of the controller's. */
const AFTER_REFUSAL_MS = 50;
const [url = "", token = "", timeout = ""] = process.argv.slice(2);
const pool = new Pool(url, { connections: 8, pipelining: 1 });
let going = false;
let under: Promise<unknown> = Promise.resolve();
let outcomes = new Map<string, number>();
let late: number[] = [];

process.on("message", async (message: { controller?: string; stop?: boolean }) => {
  if (message.controller !== undefined) {
    const path = `/v1/controllers/${message.controller}/invoke`;
    going = true;
    outcomes = new Map();
    late = [];
    under = Promise.all(Array.from({ length: CALLERS }, (_, turn) => caller(path, turn)));
  } else {
    going = false;
    await under;
    process.send?.({ outcomes: [...outcomes], late });
  }
});
process.send?.({ ready: true });

async function caller(path: string, turn: number): Promise<void> {
  await sleep(turn * 150);
  while (going) {
    const began = performance.now();
    const outcome = await call(path);
    const ms = performance.now() - began;
    outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1);
    if (outcome === "timeout") late.push(ms - Number(timeout));
    if (ms < 20) await sleep(AFTER_REFUSAL_MS);
  }
}

async function call(path: string): Promise<string> {
  const headers = { "content-type": "application/json", authorization: `Bearer ${token}` };
  const answer = await pool.request({ path, method: "POST", headers, body: '{"input":{"go":true}}' });
  if (answer.statusCode === 200) {
    await answer.body.dump({ limit: 1 << 30 });
    return "ok";
  }
  return ((await answer.body.json()) as { code: string }).code;
}
