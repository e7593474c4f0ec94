import { isObject } from "./json-object.ts";

/** JSON with the members of every object in code unit order (the ordering of RFC 8785, section 3.2.3). */
export function canonicalJson(value: unknown): string {
  return JSON.stringify(value, (_key, part: unknown) =>
    isObject(part) ? Object.fromEntries(Object.entries(part).sort(([a], [b]) => (a < b ? -1 : 1))) : part,
  );
}
