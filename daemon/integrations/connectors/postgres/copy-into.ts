// A raw stream into a table by COPY.
import type { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import type { WritePlan } from "../../engine/destination.ts";
import type { RawStream } from "../../engine/source.ts";
import type { PostgresLink } from "./connect.ts";
import { copyFrom } from "./copy-from.ts";
import { takingFrames } from "./frames.ts";
import type { Loading } from "./prepare.ts";
import { identList } from "./sql.ts";

export async function copyInto(
  link: PostgresLink,
  loading: Loading,
  plan: WritePlan,
  raw: RawStream,
): Promise<{ written: number; bytes: number }> {
  const options = [raw.format === "pg-binary" ? "FORMAT binary" : raw.format === "csv" ? "FORMAT csv" : "FORMAT text"];
  // The rows are only visible with the table itself, which this transaction made: they may be frozen from the start.
  if (loading.how === "shadow" || loading.how === "direct") options.push("FREEZE");
  const sql = `COPY ${loading.table} (${identList(plan.columns.map(({ name }) => name))}) FROM STDIN (${options.join(", ")})`;
  const before = link.bytes();
  const query = await copyFrom(sql, { highWaterMark: 1 << 20 });
  const stream = link.client.query(raw.framed ? takingFrames(query) : query);
  // Whichever end fails first is the one that failed; the other is only closed.
  let first: "source" | "destination" | undefined;
  raw.stream.once("error", () => {
    first ??= "source";
  });
  stream.once("error", () => {
    first ??= "destination";
  });
  try {
    await pipeline(raw.stream as Readable, stream);
  } catch (error) {
    throw first === "source" && raw.explain ? raw.explain(error) : error;
  }
  return { written: stream.rowCount, bytes: link.bytes() - before };
}
