// Load on one target: a number of connections, each sending its next request when the last one was answered, or a fixed rate.
// Prints one line of JSON: requests, events, failures, and latencies in milliseconds (from the scheduled moment at a fixed rate).
import { type Dispatcher, Pool } from "undici";

interface Job {
  readonly url: string;
  readonly token: string;
  readonly body: string;
  readonly connections: number;
  readonly seconds: number;
  /** Requests a second; 0: as fast as the answers come. */
  readonly rate: number;
}

const job = JSON.parse(process.argv[2] ?? "") as Job;
const pool = new Pool(job.url, { connections: job.connections, pipelining: 1, headersTimeout: 0, bodyTimeout: 0 });
const latencies: number[] = [];
const seen = { requests: 0, events: 0, failures: 0 };
const until = performance.now() + job.seconds * 1000;

function send(scheduled: number): Promise<void> {
  return new Promise((resolve) => {
    let ok = false;
    const handler: Dispatcher.DispatchHandler = {
      onRequestStart() {},
      onResponseStart(_controller, status) {
        ok = status === 200;
      },
      onResponseData(_controller, chunk) {
        for (let at = chunk.indexOf("data: "); at >= 0; at = chunk.indexOf("data: ", at + 6)) seen.events++;
      },
      onResponseEnd() {
        if (ok) seen.requests++;
        else seen.failures++;
        latencies.push(performance.now() - scheduled);
        resolve();
      },
      onResponseError() {
        seen.failures++;
        resolve();
      },
    };
    const headers = { "content-type": "application/json", authorization: `Bearer ${job.token}` };
    pool.dispatch({ method: "POST", path: "/v1/chat/completions", body: job.body, headers }, handler);
  });
}

if (job.rate === 0) {
  const worker = async () => {
    while (performance.now() < until) await send(performance.now());
  };
  await Promise.all(Array.from({ length: job.connections }, worker));
} else {
  const open = new Set<Promise<void>>();
  let next = performance.now();
  while (next < until) {
    while (next <= performance.now()) {
      const one: Promise<void> = send(next).finally(() => open.delete(one));
      open.add(one);
      next += 1000 / job.rate;
    }
    await new Promise((resolve) => setTimeout(resolve, 1));
  }
  await Promise.all(open);
}
latencies.sort((a, b) => a - b);
const at = (share: number) => latencies[Math.floor(latencies.length * share)] ?? 0;
console.log(JSON.stringify({ ...seen, p50: at(0.5), p99: at(0.99) }));
await pool.destroy();
