// A small value that fits a JSON Schema: what the fake model answers when a schema is asked for.
import { list } from "#contract/json-object.ts";
import { pointerParts, valueAt } from "#contract/json-pointer.ts";

/** Beyond it, what may be left out is: definitions that refer to each other twice a level would double the value with each. */
const MOST_PARTS = 1_000;
const LONGEST = 4_000;

export function sampleOf(root: unknown): unknown {
  let left = MOST_PARTS;

  /** `open`: the references that led here. Undefined where nothing fits, or one of them would lead on without end. */
  function sample(schema: unknown, open: readonly string[]): unknown {
    if (--left < 0 || schema === false) return undefined;
    if (typeof schema !== "object" || schema === null) return null;
    const node = schema as Record<string, unknown>;
    const ref = node["$ref"];
    if (typeof ref === "string")
      return open.includes(ref) ? undefined : sample(valueAt(root, pointerParts(ref)), [...open, ref]);
    if ("const" in node) return node["const"];
    if (Array.isArray(node["enum"])) return node["enum"][0];
    if ("default" in node) return node["default"];
    for (const key of ["anyOf", "oneOf", "allOf"])
      for (const option of list(node[key])) {
        const value = sample(option, open);
        if (value !== undefined) return value;
      }
    const type = Array.isArray(node["type"]) ? node["type"][0] : node["type"];
    if (type === "object" || node["properties"]) return objectOf(node, open);
    if (type === "array") return arrayOf(node, open);
    if (type === "boolean") return true;
    if (type === "number" || type === "integer") return Number(node["minimum"] ?? 0);
    if (type === "string") {
      const most = Math.min(LONGEST, Number(node["maxLength"] ?? LONGEST));
      return "text".padEnd(Math.min(most, Number(node["minLength"] ?? 0)), "x").slice(0, most);
    }
    return null;
  }

  function objectOf(node: Record<string, unknown>, open: readonly string[]): unknown {
    const required = list(node["required"]);
    const members = Object.entries((node["properties"] ?? {}) as Record<string, unknown>);
    const made = members.map(([key, part]) => [key, sample(part, open)] as const);
    return Object.fromEntries(
      made
        .filter(([key, value]) => value !== undefined || required.includes(key))
        .map(([key, value]) => [key, value ?? null]),
    );
  }

  function arrayOf(node: Record<string, unknown>, open: readonly string[]): unknown {
    const length = Math.min(MOST_PARTS, Number(node["minItems"] ?? 1));
    return Array.from({ length }, () => sample(node["items"], open)).filter((value) => value !== undefined);
  }

  return sample(root, ["#"]) ?? null;
}
