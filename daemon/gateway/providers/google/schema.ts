// JSON schemas for Gemini, which passes over what it does not know: `const` is among that, and is said as an `enum` of one.

/** Keywords whose value is a map of names to schemas: the names are not keywords. */
const maps = new Set(["properties", "$defs", "definitions"]);
/** Keywords whose value is a value. */
const values = new Set(["enum", "default", "examples"]);

export function geminiSchema(node: unknown): unknown {
  if (Array.isArray(node)) return node.map(geminiSchema);
  if (typeof node !== "object" || node === null) return node;
  const made: Record<string, unknown> = {};
  for (const [key, value] of Object.entries(node)) {
    if (key === "const" && (typeof value === "string" || typeof value === "number")) {
      made["enum"] = [value];
      made["type"] ??= typeof value;
    } else if (maps.has(key) && typeof value === "object" && value !== null) {
      made[key] = Object.fromEntries(Object.entries(value).map(([name, child]) => [name, geminiSchema(child)]));
    } else made[key] = values.has(key) || key === "const" ? value : geminiSchema(value);
  }
  return made;
}
