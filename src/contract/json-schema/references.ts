// References of a contract's schema: they stay inside of it, lead somewhere, and come to an end.
import { brief } from "../check.ts";
import { pointerParts, valueAt } from "../json-pointer.ts";
import { nearest } from "../suggest.ts";
import { type Add, children, type Schema, walk } from "./walk.ts";

/** Keywords that apply a subschema to the same value: a $ref cycle through these alone never ends. */
export const inPlace = new Set(["allOf", "anyOf", "oneOf", "not", "if", "then", "else", "dependentSchemas"]);

export function checkReference(ref: string, key: string, at: string, root: Schema, add: Add): void {
  if (!ref.startsWith("#"))
    add(
      at,
      key,
      "remote_ref",
      `The reference ${JSON.stringify(brief(ref))} leads out of the contract; nothing is fetched.`,
      "Copy the schema under $defs and refer to it with `#/$defs/...`.",
      ref,
    );
  else if (resolve(ref, root) === undefined) {
    const names = Object.keys((root["$defs"] ?? root["definitions"] ?? {}) as Schema);
    const near = nearest(ref.split("/").at(-1) ?? "", names);
    add(
      at,
      key,
      "unknown_ref",
      `There is nothing at ${JSON.stringify(brief(ref))}.`,
      near ? `Did you mean \`#/$defs/${near}\`?` : "Define it under $defs.",
      ref,
    );
  }
}

/** What a local reference leads to. */
export function resolve(ref: string, root: Schema): unknown {
  let fragment: string;
  try {
    fragment = decodeURIComponent(ref.slice(1));
  } catch {
    return undefined;
  }
  const pointer = fragment === "" || fragment.startsWith("/") ? fragment : anchorsOf(root).get(fragment);
  const found = pointer === undefined ? undefined : valueAt(root, pointerParts(pointer));
  return typeof found === "boolean" || (typeof found === "object" && found !== null) ? found : undefined;
}

const known = new WeakMap<Schema, ReadonlyMap<string, string>>();

/** The schemas that have a name of their own, by name, as JSON pointers. */
export function anchorsOf(root: Schema): ReadonlyMap<string, string> {
  const before = known.get(root);
  if (before) return before;
  const anchors = new Map<string, string>();
  walk(root, "", (node, at) => {
    for (const name of [node["$anchor"], node["$dynamicAnchor"]])
      if (typeof name === "string" && !anchors.has(name)) anchors.set(name, at);
  });
  known.set(root, anchors);
  return anchors;
}

/** A JSON pointer as a reference that Ajv reads. */
export function toFragment(pointer: string): string {
  return `#${pointer.split("/").map(encodeURIComponent).join("/")}`;
}

/** A recursive schema is fine as long as every turn goes into a property or an item; one that refers to itself in place has no end. */
export function checkCycles(root: Schema, base: string, add: Add): void {
  const done = new Set<unknown>();
  const open = new Set<unknown>();
  const visit = (node: unknown, at: string): void => {
    if (typeof node !== "object" || node === null || done.has(node)) return;
    open.add(node);
    for (const key of ["$ref", "$dynamicRef"]) {
      const ref = (node as Schema)[key];
      if (typeof ref !== "string" || !ref.startsWith("#")) continue;
      const target = resolve(ref, root);
      if (open.has(target))
        add(
          at,
          key,
          "cyclic_ref",
          `The reference ${JSON.stringify(ref)} leads back to itself without end.`,
          "Let one turn go through a property or an item.",
          ref,
        );
      else visit(target, `${base}${ref.startsWith("#/") ? ref.slice(1) : ""}`);
    }
    for (const [path, sub] of children(node as Schema, inPlace)) if (!open.has(sub)) visit(sub, at + path);
    open.delete(node);
    done.add(node);
  };
  walk(root, base, visit);
}
