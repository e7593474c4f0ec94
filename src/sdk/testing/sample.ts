// A small value that fits a JSON Schema: what the fake model answers when a schema is asked for.

export function sampleOf(schema: unknown, root: unknown = schema, depth = 0): unknown {
  if (typeof schema !== "object" || schema === null || depth > 20) return null;
  const node = schema as Record<string, unknown>;
  if (typeof node["$ref"] === "string") return sampleOf(lookUp(root, node["$ref"]), root, depth + 1);
  if ("const" in node) return node["const"];
  if (Array.isArray(node["enum"])) return node["enum"][0];
  if ("default" in node) return node["default"];
  for (const key of ["anyOf", "oneOf", "allOf"]) {
    const options = node[key];
    if (Array.isArray(options)) return sampleOf(options[0], root, depth + 1);
  }
  const type = Array.isArray(node["type"]) ? node["type"][0] : node["type"];
  if (type === "object" || node["properties"]) {
    const properties = (node["properties"] ?? {}) as Record<string, unknown>;
    return Object.fromEntries(Object.entries(properties).map(([key, sub]) => [key, sampleOf(sub, root, depth + 1)]));
  }
  if (type === "array")
    return Array.from({ length: Number(node["minItems"] ?? 1) }, () => sampleOf(node["items"], root, depth + 1));
  if (type === "boolean") return true;
  if (type === "number" || type === "integer") return Number(node["minimum"] ?? 0);
  if (type === "string")
    return "text".padEnd(Number(node["minLength"] ?? 0), "x").slice(0, Number(node["maxLength"] ?? 4000));
  return null;
}

function lookUp(root: unknown, ref: string): unknown {
  let node = root;
  for (const part of ref.split("/").slice(1)) {
    if (typeof node !== "object" || node === null) return undefined;
    node = (node as Record<string, unknown>)[part.replaceAll("~1", "/").replaceAll("~0", "~")];
  }
  return node;
}
