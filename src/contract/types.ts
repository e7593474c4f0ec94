// TypeScript types of a contract's schemas: `Input` and `Output`, for the handler's author. They err on the wide side: whatever
// a type cannot say is left to the check at run time.
import type { ControllerContract } from "./controller.ts";
import { list } from "./json-object.ts";

export const TYPES_FILE = "contract.types.ts";
const HEADER =
  "// Made from contract.yaml by magic: do not edit. `magic validate` and `magic dev` keep it up to date.\n";

/** The text of contract.types.ts. */
export function typesOf(contract: Pick<ControllerContract, "input_schema" | "output_schema">): string {
  const input = typeText(contract.input_schema, scope(contract.input_schema, "Input"), 0);
  const output = typeText(contract.output_schema, scope(contract.output_schema, "Output"), 0);
  const named = [...definitions(contract.input_schema, "Input"), ...definitions(contract.output_schema, "Output")];
  return `${HEADER}\nexport type Input = ${input};\n\nexport type Output = ${output};\n${named.map((text) => `\n${text}\n`).join("")}`;
}

interface Scope {
  readonly root: string;
  readonly defs: Readonly<Record<string, string>>;
}

type Schema = Record<string, unknown>;

function defsOf(schema: unknown): [path: string, name: string, schema: unknown][] {
  if (typeof schema !== "object" || schema === null) return [];
  return ["$defs", "definitions"].flatMap((key) =>
    Object.entries(((schema as Schema)[key] ?? {}) as Schema).map(([name, sub]): [string, string, unknown] => [
      `#/${key}/${name}`,
      name,
      sub,
    ]),
  );
}

// Two definitions whose names differ only in what an identifier cannot hold still get types of their own.
function scope(schema: unknown, root: string): Scope {
  const taken = new Set([root]);
  const defs: Record<string, string> = {};
  for (const [path, name] of defsOf(schema)) {
    let candidate = typeName(root, name);
    while (taken.has(candidate)) candidate += "_";
    taken.add(candidate);
    defs[path] = candidate;
  }
  return { root, defs };
}

function typeName(root: string, name: string): string {
  const words = name.split(/[^A-Za-z0-9]+/).filter(Boolean);
  return root + words.map((word) => word.charAt(0).toUpperCase() + word.slice(1)).join("");
}

function definitions(schema: unknown, root: string): string[] {
  const inside = scope(schema, root);
  return defsOf(schema).map(([path, , sub]) => `export type ${inside.defs[path]} = ${typeText(sub, inside, 0)};`);
}

function typeText(schema: unknown, inside: Scope, depth: number): string {
  if (schema === false) return "never";
  if (typeof schema !== "object" || schema === null || depth > 30) return "unknown";
  const node = schema as Schema;
  if (typeof node["$ref"] === "string")
    return node["$ref"] === "#" ? inside.root : (inside.defs[node["$ref"]] ?? "unknown");
  if ("const" in node) return literal(node["const"]);
  if (Array.isArray(node["enum"])) return union(node["enum"].map(literal));
  for (const key of ["anyOf", "oneOf"]) {
    const options = node[key];
    if (Array.isArray(options) && node["properties"] === undefined)
      return union(options.map((option) => typeText(option, inside, depth + 1)));
  }
  if (Array.isArray(node["allOf"]) && node["properties"] === undefined && node["type"] !== "string")
    return node["allOf"].map((part) => `(${typeText(part, inside, depth + 1)})`).join(" & ");
  const types = node["type"] === undefined ? inferred(node) : [node["type"]].flat();
  if (types.length === 0) return "unknown";
  // OpenAPI's word, which the check knows too.
  if (node["type"] !== undefined && node["nullable"] === true) types.push("null");
  return union(types.map((type) => one(String(type), node, inside, depth)));
}

function inferred(node: Schema): string[] {
  if (node["properties"] || node["required"] || node["additionalProperties"]) return ["object"];
  return node["items"] || node["prefixItems"] ? ["array"] : [];
}

function one(type: string, node: Schema, inside: Scope, depth: number): string {
  switch (type) {
    case "string":
    case "boolean":
    case "null":
    case "number":
      return type;
    case "integer":
      return "number";
    case "array":
      return arrayText(node, inside, depth);
    case "object":
      return objectText(node, inside, depth);
    default:
      return "unknown";
  }
}

function arrayText(node: Schema, inside: Scope, depth: number): string {
  const rest = node["items"] === undefined ? "unknown" : typeText(node["items"], inside, depth);
  if (!Array.isArray(node["prefixItems"])) return `Array<${rest}>`;
  const first = node["prefixItems"].map((item) => typeText(item, inside, depth + 1));
  return `[${[...first.map((text) => `(${text})?`), ...(rest === "never" ? [] : [`...(${rest})[]`])].join(", ")}]`;
}

function objectText(node: Schema, inside: Scope, depth: number): string {
  const properties = Object.entries((node["properties"] ?? {}) as Schema);
  const required = new Set(list(node["required"]));
  // What a pattern describes is none of the additional ones.
  const more = node["patternProperties"] === undefined ? node["additionalProperties"] : true;
  if (properties.length === 0) {
    if (typeof more !== "object") return `Record<string, ${more === false ? "never" : "unknown"}>`;
    // Not a Record: a map of maps like itself may not be one.
    return `{ [name: string]: ${typeText(more, inside, depth + 1)} }`;
  }
  const indent = "  ".repeat(depth + 1);
  const lines = properties.map(([name, sub]) => {
    const text = typeof sub === "object" && sub !== null ? (sub as Schema)["description"] : undefined;
    const comment =
      typeof text === "string" ? `${indent}/** ${text.replace(/\*\//g, "* /").replace(/\s+/g, " ")} */\n` : "";
    const key = /^[A-Za-z_$][\w$]*$/.test(name) ? name : JSON.stringify(name);
    return `${comment}${indent}${key}${required.has(name) ? "" : "?"}: ${typeText(sub, inside, depth + 1)};`;
  });
  return `{\n${lines.join("\n")}\n${"  ".repeat(depth)}}`;
}

function union(texts: readonly string[]): string {
  const distinct = [...new Set(texts)];
  return distinct.includes("unknown") ? "unknown" : distinct.join(" | ") || "never";
}

function literal(value: unknown): string {
  if (value === null || typeof value === "number" || typeof value === "boolean" || typeof value === "string")
    return JSON.stringify(value);
  if (Array.isArray(value)) return `[${value.map(literal).join(", ")}]`;
  if (typeof value === "object")
    return `{ ${Object.entries(value)
      .map(([key, item]) => `${JSON.stringify(key)}: ${literal(item)}`)
      .join("; ")} }`;
  return "unknown";
}
