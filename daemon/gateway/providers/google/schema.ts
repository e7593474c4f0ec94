// JSON schemas for Gemini, which passes over what it does not know: `const` is among that, and is said as an `enum` of one.

/** Keywords whose value is a map of names to schemas: the names are not keywords. */
const maps = new Set(["properties", "$defs", "definitions"]);
/** Keywords whose value is a value. */
const values = new Set(["enum", "default", "examples"]);

/** The same schema where no `const` stands in it: making a large one anew takes long. */
export function geminiSchema(schema: unknown): unknown {
  return JSON.stringify(schema)?.includes('"const":') ? rewritten(schema) : schema;
}

function rewritten(node: unknown): unknown {
  if (Array.isArray(node)) return node.map(rewritten);
  if (typeof node !== "object" || node === null) return node;
  const made: Record<string, unknown> = {};
  for (const [key, value] of Object.entries(node)) {
    if (key === "const" && (typeof value === "string" || typeof value === "number")) {
      made["enum"] = [value];
      made["type"] ??= typeof value;
    } else if (maps.has(key) && typeof value === "object" && value !== null) {
      made[key] = Object.fromEntries(Object.entries(value).map(([name, child]) => [name, rewritten(child)]));
    } else made[key] = values.has(key) || key === "const" ? value : rewritten(value);
  }
  return made;
}
