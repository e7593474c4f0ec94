// Answers in CSV, whole or some rows at a time.
import { Readable } from "node:stream";
import { type Options, parse } from "csv-parse";
import { parse as parseWhole } from "csv-parse/sync";
import { unescapePython } from "../jinja/lexer.ts";
import { type Component, optionalText } from "../manifest/component.ts";
import { type Answer, strictDecoder, unreadable } from "./answer.ts";
import { gunzip, inflated } from "./unpack.ts";

const MAX_ROW = 16 * 1024 * 1024;
const SLICE = 1024 * 1024;
const ROWS = 5000;

/** The name that cells beyond the last column have together: Python's None, as JSON writes it. */
const BEYOND = "null";

/** How a CsvDecoder reads: as Python's DictReader. */
function csvOptions(component: Component): Options {
  return {
    delimiter: unescapePython(optionalText(component, "delimiter") ?? ","),
    bom: true,
    skip_empty_lines: true,
    max_record_size: MAX_ROW,
    relax_column_count: true,
    relax_quotes: true,
  };
}

/** Makes records of rows, the first of which names the columns. */
function recordsFrom(component: Component): (cells: readonly string[]) => Record<string, unknown>[] {
  const nulls = Array.isArray(component["set_values_to_none"]) ? component["set_values_to_none"] : [];
  // A row that is too short has nothing in its last columns.
  const shown = (cell: string | undefined): string | null => (cell === undefined || nulls.includes(cell) ? null : cell);
  let names: readonly string[] | undefined;
  return (cells) => {
    if (names === undefined) {
      names = cells;
      return [];
    }
    const record: Record<string, unknown> = Object.fromEntries(names.map((name, at) => [name, shown(cells[at])]));
    if (cells.length > names.length) record[BEYOND] = cells.slice(names.length);
    return [record];
  };
}

export function csv(answer: Answer, component: Component): unknown[] {
  try {
    const text = strictDecoder(answer, optionalText(component, "encoding")).decode(answer.body);
    return parseWhole(text, csvOptions(component)).flatMap(recordsFrom(component));
  } catch (error) {
    throw unreadable(answer.url, "is not CSV", error);
  }
}

export async function* csvInParts(answer: Answer, component: Component): AsyncGenerator<unknown[]> {
  try {
    const decoder = strictDecoder(answer, optionalText(component, "encoding"));
    const records = recordsFrom(component);
    let rows: unknown[] = [];
    for await (const cells of Readable.from(slices(answer.body, decoder)).compose(parse(csvOptions(component)))) {
      rows.push(...records(cells));
      if (rows.length < ROWS) continue;
      yield rows;
      rows = [];
    }
    if (rows.length > 0) yield rows;
  } catch (error) {
    throw unreadable(answer.url, "is not CSV", error);
  }
}

function* slices(body: Buffer, decoder: TextDecoder): Generator<string> {
  for (let at = 0; at < body.length; at += SLICE) {
    const last = at + SLICE >= body.length;
    yield decoder.decode(body.subarray(at, at + SLICE), { stream: !last });
  }
}

/** What pandas, which the reference reads files with, takes for nothing. */
const NOTHING = [
  ...["", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN", "<NA>"],
  ...["N/A", "NA", "NULL", "NaN", "None", "n/a", "nan", "null"],
];

/** A ResponseToFileExtractor's file: CSV, compressed or not, whatever its headers say. */
export function fileInParts(answer: Answer, component: Component): AsyncGenerator<unknown[]> {
  const opened = inflated(gunzip(answer.body, answer.url));
  const body = opened.includes(0) ? Buffer.from(opened.filter((byte) => byte !== 0)) : opened;
  const set_values_to_none = component["preserve_na_values"] === true ? [""] : NOTHING;
  return csvInParts({ ...answer, body }, { type: "CsvDecoder", set_values_to_none });
}
