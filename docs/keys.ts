// The tables of every key in contract.md, from the schemas that the program checks files by.

interface Schema {
  readonly type?: string | readonly string[];
  readonly enum?: readonly unknown[];
  readonly const?: unknown;
  readonly anyOf?: readonly Schema[];
  readonly items?: Schema;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly patternProperties?: Readonly<Record<string, Schema>>;
  readonly description?: string;
  readonly minimum?: number;
  readonly exclusiveMinimum?: number;
  readonly maximum?: number;
  readonly "x-form"?: string;
}

/** One row a key that holds a value: its path, what it takes, what it is for. */
export function keyTable(schema: unknown): string {
  const rows: Row[] = [];
  for (const row of rowsOf("", schema as Schema)) {
    const last = rows.at(-1);
    const alike = last && last.parent === row.parent && last.takes === row.takes && last.what === row.what;
    if (alike) rows[rows.length - 1] = { ...last, names: [...last.names, ...row.names] };
    else rows.push(row);
  }
  const lines = rows.map(({ parent, names: [first, ...others], takes, what }) => {
    const key = [`${parent}${first}`, ...others].map((name) => `\`${name}\``).join(", ");
    return `| ${[key, takes, what].map((cell) => cell.replaceAll("|", "\\|")).join(" | ")} |`;
  });
  return ["| Key | Takes | What |", "| --- | ----- | ---- |", ...lines].join("\n");
}

interface Row {
  /** With the dot behind it. */
  readonly parent: string;
  /** More than one where keys beside each other say the same. */
  readonly names: readonly string[];
  readonly takes: string;
  readonly what: string;
}

function rowsOf(path: string, schema: Schema): Row[] {
  const { properties, patternProperties, items, anyOf = [], description = "" } = schema;
  if (properties)
    return Object.entries(properties)
      .filter(([name]) => name !== "$schema")
      .flatMap(([name, one]) => rowsOf(path === "" ? name : `${path}.${name}`, one));
  const [named] = Object.values(patternProperties ?? {});
  if (named?.properties) return rowsOf(`${path}.NAME`, named);
  if (items?.properties) return rowsOf(`${path}[]`, items);
  const cut = path.lastIndexOf(".") + 1;
  const row = { parent: path.slice(0, cut), names: [path.slice(cut)], takes: takes(schema), what: description };
  const maps = [...anyOf, ...(items?.anyOf ?? [])].filter((one) => one.properties);
  return [row, ...maps.flatMap((one) => rowsOf(`${path}[]`, one))];
}

function takes(schema: Schema): string {
  const { type, items, patternProperties, anyOf, minimum, exclusiveMinimum, maximum } = schema;
  if (schema.enum) return schema.enum.map((one) => `\`${one}\``).join(", ");
  if (schema.const !== undefined) return `\`${schema.const}\``;
  if (anyOf) return anyOf.map((one) => (one.properties ? "a map" : takes(one))).join(", or ");
  if (items) return `list: ${takes(items)}`;
  const [named] = Object.values(patternProperties ?? {});
  if (named) return `map of names: ${takes(named)}`;
  if (type === "boolean") return "`true`, `false`";
  if (type !== "integer" && type !== "number") return schema["x-form"] ?? (type === "string" ? "text" : "JSON Schema");
  const least =
    exclusiveMinimum === undefined ? minimum !== undefined && `from ${minimum}` : `more than ${exclusiveMinimum}`;
  const bounds = [least, maximum !== undefined && `up to ${maximum}`].filter(Boolean).join(", ");
  return `${type === "integer" ? "whole number" : "number"}${bounds && ` ${bounds}`}`;
}
