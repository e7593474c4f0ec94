// A thread that reads JSON and checks it against a contract's schema; see daemon/controllers/serving/check-thread.ts.
import { isUtf8 } from "node:buffer";
import { parentPort } from "node:worker_threads";
import type { CheckJob, Verdict } from "#daemon/controllers/serving/check-thread.ts";

const CHECK_MS = 250;
const TOO_SLOW: Verdict["problems"] = [
  { pointer: "", code: "too_slow", detail: `cannot be checked against the schema within ${CHECK_MS} ms` },
];
const BROKEN = { broken: true, problems: [] };

parentPort?.on("message", async (job: CheckJob) => {
  parentPort?.postMessage(await verdictOf(job));
});

async function verdictOf({ json, schema }: CheckJob): Promise<Verdict> {
  let value: unknown;
  try {
    if (typeof json !== "string" && !isUtf8(json)) return BROKEN;
    value = JSON.parse(
      typeof json === "string" ? json : Buffer.from(json.buffer, json.byteOffset, json.length).toString(),
    );
  } catch {
    return BROKEN;
  }
  if (schema === "true") return { broken: false, problems: [] };
  const { compileSchema } = await import("#daemon/controllers/schemas.ts");
  return { broken: false, problems: compileSchema(schema, true)(value, CHECK_MS) ?? TOO_SLOW };
}
