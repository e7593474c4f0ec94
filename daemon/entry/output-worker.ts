// The thread that reads and checks large outputs; see daemon/controllers/serving/large-output.ts.
import { isUtf8 } from "node:buffer";
import { parentPort } from "node:worker_threads";
import type { OutputJob, OutputVerdict } from "#daemon/controllers/serving/large-output.ts";

parentPort?.on("message", async ({ id, schema, json }: OutputJob) => {
  const verdict: OutputVerdict = { id, ...(await look(json, schema)) };
  parentPort?.postMessage(verdict);
});

async function look(
  json: Uint8Array,
  schema: OutputJob["schema"],
): Promise<Pick<OutputVerdict, "broken" | "problems">> {
  let value: unknown;
  try {
    if (!isUtf8(json)) return { broken: true, problems: [] };
    value = JSON.parse(Buffer.from(json.buffer, json.byteOffset, json.length).toString());
  } catch {
    return { broken: true, problems: [] };
  }
  if (schema === true) return { broken: false, problems: [] };
  const { compileSchema } = await import("#daemon/controllers/schemas.ts");
  return { broken: false, problems: compileSchema(schema)(value) };
}
