// From a save to the first answer of the new version, over HTTP, while 100 invokes a second arrive whatever happens (open loop).
//   node build.js && node bench/controllers/reload.ts [--edits 100] [--contract]
import { loadavg } from "node:os";
import { parseArgs } from "node:util";
import { quantile, startDaemon } from "./daemon.ts";

const { values } = parseArgs({
  options: { edits: { type: "string", default: "100" }, contract: { type: "boolean", default: false } },
});
const edits = Number(values.edits);
const daemon = await startDaemon();
const contract = (n: number): string =>
  `name: busy\nversion: 1.0.0\ndescription: edit ${n}\ninput_schema: { type: object }\noutput_schema: { type: object, properties: { n: { type: integer } }, required: [n] }\n`;
const handler = (n: number): string =>
  `import { defineHandler, reply } from "magic/sdk";\nexport default defineHandler(async () => reply({ n: ${n} }));\n`;
daemon.write("controllers/busy/contract.yaml", contract(0));
daemon.write("controllers/busy/handler.ts", handler(0));

const phases: Record<string, number[]> = {};
const told: number[] = [];
let reloads = 0;
const session = await daemon.request("/v1/dev/sessions", {
  method: "POST",
  body: JSON.stringify({ folder: `${daemon.root}/controllers` }),
});
if (session.status !== 200) throw new Error(await session.text());
void (async () => {
  let rest = "";
  for await (const chunk of session.body as unknown as AsyncIterable<Uint8Array>) {
    const lines = (rest + Buffer.from(chunk).toString()).split("\n");
    rest = lines.pop() ?? "";
    for (const line of lines) {
      const event = JSON.parse(line) as { type: string; duration_ms: number; phases: Record<string, number> };
      if (event.type !== "reload") continue;
      reloads++;
      told.push(event.duration_ms);
      for (const [name, ms] of Object.entries(event.phases)) {
        phases[name] ??= [];
        phases[name].push(ms);
      }
    }
  }
})().catch(() => {});

const failed = new Map<string, number>();
const seen: number[] = [];
let invokes = 0;
let expected = 0;
let savedAt = 0;
let onSeen: () => void = () => {};
const latencies: number[] = [];
async function invoke(): Promise<void> {
  const began = performance.now();
  invokes++;
  try {
    const response = await daemon.request("/v1/controllers/busy/invoke", { method: "POST", body: '{"input":{}}' });
    const answer = (await response.json()) as { output?: { n: number }; code?: string };
    latencies.push(performance.now() - began);
    if (answer.output === undefined) failed.set(answer.code ?? "?", (failed.get(answer.code ?? "?") ?? 0) + 1);
    else if (answer.output.n === expected && savedAt > 0) {
      seen.push(performance.now() - savedAt);
      savedAt = 0;
      onSeen();
    }
  } catch (error) {
    failed.set(String(error), (failed.get(String(error)) ?? 0) + 1);
  }
}
let next = performance.now();
const arrivals = setInterval(() => {
  for (; next <= performance.now(); next += 10) void invoke();
}, 2);
await new Promise((done) => setTimeout(done, 1500));
for (let n = 1; n <= edits; n++) {
  const live = new Promise<void>((done) => {
    onSeen = done;
  });
  expected = n;
  savedAt = performance.now();
  daemon.write("controllers/busy/handler.ts", handler(n));
  if (values.contract) daemon.write("controllers/busy/contract.yaml", contract(n));
  await live;
  // Never in step with anything periodic.
  await new Promise((done) => setTimeout(done, 150 + Math.random() * 200));
}
clearInterval(arrivals);
await new Promise((done) => setTimeout(done, 300));
const spread = (list: number[]): string => `p50 ${quantile(list, 0.5)} p95 ${quantile(list, 0.95)}`;
console.log(`${edits} edits${values.contract ? " of contract and handler" : ""}, load ${loadavg()[0]?.toFixed(1)}`);
console.log(`save to the first new answer over HTTP: ${spread(seen)} max ${quantile(seen, 1)} ms`);
console.log(`save to live as the reload event says:  ${spread(told)} ms, ${reloads} events`);
for (const [name, list] of Object.entries(phases)) console.log(`  ${name}: ${spread(list)}`);
console.log(`invokes: ${invokes}, ${spread(latencies)} ms, failed: ${JSON.stringify([...failed])}`);
await daemon.stop();
