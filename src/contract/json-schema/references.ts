// References of a contract's schema: they stay inside of it, lead somewhere, and come to an end.
import { brief } from "../check.ts";
import { pointerParts } from "../json-pointer.ts";
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
  if (fragment === "" || fragment.startsWith("/")) {
    let node: unknown = root;
    for (const part of pointerParts(fragment)) {
      if (typeof node !== "object" || node === null || !Object.hasOwn(node, part)) return undefined;
      node = (node as Schema)[part];
    }
    return typeof node === "boolean" || (typeof node === "object" && node !== null) ? node : undefined;
  }
  let found: unknown;
  walk(root, "", (node) => {
    if (node["$anchor"] === fragment || node["$dynamicAnchor"] === fragment) found ??= node;
  });
  return found;
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
