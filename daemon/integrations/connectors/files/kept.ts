// The records of a file that stay when a new one takes its place: all whose key no new record has.
import { MagicError } from "#contract/errors.ts";
import type { Reject } from "#contract/sync.ts";
import type { WritePlan } from "../../engine/destination.ts";
import { keyPlaces } from "../../engine/keys.ts";
import type { Column, Row, Value } from "../../engine/types.ts";
import type { FileReader, FileWriter } from "./format.ts";
import { keyForm } from "./key-form.ts";
import type { KeyTable } from "./key-table.ts";

export interface Keeping {
  readonly old: FileReader;
  readonly writer: FileWriter;
  readonly plan: WritePlan;
  /** Of the new file. */
  readonly columns: readonly Column[];
  /** The keys of the new records; null: there are no keys. */
  readonly fresh: KeyTable | null;
  readonly path: string;
}

/** Answers how many were written. A record that cannot be written as it is fails the run. */
export async function keepRecords({ old, writer, plan, columns, fresh, path }: Keeping): Promise<number> {
  const key = keyPlaces(plan).map((at) => plan.columns[at] as Column);
  const form = keyForm(key);
  const stays = (values: readonly Value[]) => fresh?.get(form(values)) === undefined;
  let count = 0;
  // As they are written: of which types their values were, such a file does not say.
  if (old.lines && writer.keep) {
    for await (const lines of old.lines(key)) {
      const staying = lines.filter(({ key }) => key === null || stays(key));
      await writer.keep(staying.map(({ line }) => line));
      count += staying.length;
    }
    return count;
  }
  const places = columns.map(({ name }) => old.columns.findIndex((column) => column.name === name));
  const keyAt = key.map(({ name }) => old.columns.findIndex((column) => column.name === name));
  const pick = (row: Row, from: readonly number[]) => from.map((at) => (at < 0 ? null : (row[at] ?? null)));
  for await (const { rows, rejects } of old.read()) {
    refuse(rejects?.[0], path);
    const staying = rows.filter((row) => stays(pick(row, keyAt)));
    const [bad] = await writer.write(staying.map((row) => pick(row, places)));
    refuse(bad && { key: "an older record", column: bad.column, reason: bad.reason }, path);
    count += staying.length;
  }
  return count;
}

function refuse(reject: Reject | undefined, path: string): void {
  if (!reject) return;
  throw new MagicError(
    "destination_refused",
    `${path} holds a record that the new file cannot keep (${reject.key}${reject.column ? `, column ${reject.column}` : ""}: ${reject.reason}): mend it, or run a full refresh. Nothing was changed.`,
  );
}
