// A fixed number of GET requests over some connections, each sending its next one when the last was answered. Prints one line of
// JSON: seconds, failures, and latencies in milliseconds.
import { Pool } from "undici";

interface Job {
  readonly url: string;
  readonly path: string;
  readonly token: string;
  readonly connections: number;
  readonly requests: number;
}

const { url, path, token, connections, requests } = JSON.parse(process.argv[2] ?? "") as Job;
const pool = new Pool(url, { connections, pipelining: 1 });
const latencies: number[] = [];
let [sent, failures] = [0, 0];
// For the local token, which chooses; a key has its own.
const headers = { authorization: `Bearer ${token}`, "magic-environment": "live" };
const worker = async () => {
  while (sent++ < requests) {
    const started = performance.now();
    const { statusCode, body } = await pool.request({ method: "GET", path, headers });
    await body.dump();
    latencies.push(performance.now() - started);
    if (statusCode !== 200) failures++;
  }
};
const started = performance.now();
await Promise.all(Array.from({ length: connections }, worker));
const seconds = (performance.now() - started) / 1000;
latencies.sort((a, b) => a - b);
const at = (share: number) => latencies[Math.floor(latencies.length * share)] ?? 0;
console.log(JSON.stringify({ seconds, failures, p50: at(0.5), p99: at(0.99) }));
await pool.destroy();
