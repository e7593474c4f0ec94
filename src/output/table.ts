// Columns for people: lists as tables, one resource as a block of names and values.
import { type Paint, printable } from "./paint.ts";
import { width } from "./width.ts";

export interface Column<Row> {
  readonly title: string;
  readonly value: (row: Row) => string | number | null | undefined;
  readonly align?: "left" | "right";
  /** Colours the padded cell. */
  readonly paint?: (text: string, row: Row) => string;
}

/** A table without borders: dim titles, two spaces between columns; `empty` stands for no rows. */
export function table<Row>(
  rows: readonly Row[],
  columns: readonly Column<Row>[],
  paint: Paint,
  empty = "Nothing there yet.",
): string {
  if (rows.length === 0) return paint.dim(empty);
  // Of others' words only this reaches a terminal: it is what takes room.
  const cells = rows.map((row) => columns.map((column) => printable(cell(column.value(row)), false)));
  // One by one: what is spread are arguments, of which there cannot be a hundred thousand.
  const widths = columns.map((column, at) =>
    cells.reduce((most, line) => Math.max(most, width(line[at] ?? "")), width(column.title)),
  );
  const pad = (text: string, at: number) => {
    const gap = " ".repeat(Math.max(0, (widths[at] ?? 0) - width(text)));
    return columns[at]?.align === "right" ? gap + text : text + gap;
  };
  const head = columns.map((column, at) => pad(column.title, at)).join("  ");
  const body = cells.map((line, index) =>
    line
      .map((text, at) => {
        const row = rows[index];
        const padded = pad(text, at);
        const style = columns[at]?.paint;
        return style && row !== undefined ? style(padded, row) : padded;
      })
      .join("  ")
      .trimEnd(),
  );
  return [paint.dim(head.trimEnd()), ...body].join("\n");
}

/** `name   value` lines, aligned; undefined values are left out. */
export function record(
  values: Readonly<Record<string, string | number | boolean | null | undefined>>,
  paint: Paint,
): string {
  const shown = Object.entries(values).filter(([, value]) => value !== undefined);
  const longest = Math.max(0, ...shown.map(([name]) => width(name)));
  return shown
    .map(([name, value]) => `${paint.dim(name)}${" ".repeat(longest - width(name))}  ${cell(value)}`)
    .join("\n");
}

function cell(value: string | number | boolean | null | undefined): string {
  return value === null || value === undefined ? "-" : String(value).replace(/(?<!\s)\s*\n\s*/g, " ");
}
