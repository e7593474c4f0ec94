// JSON pointers (RFC 6901).

/** `/a~1b/0` as its parts. */
export function pointerParts(pointer: string): string[] {
  return pointer.split("/").slice(1).map(unescapedPart);
}

export function unescapedPart(part: string): string {
  return part.replaceAll("~1", "/").replaceAll("~0", "~");
}

/** `/a~1b/0` of parts. */
export function toPointer(parts: readonly (string | number)[]): string {
  return parts.map((part) => `/${String(part).replaceAll("~", "~0").replaceAll("/", "~1")}`).join("");
}

/** What stands there; undefined where nothing does. */
export function valueAt(root: unknown, parts: readonly string[]): unknown {
  let at = root;
  for (const part of parts) {
    if (typeof at !== "object" || at === null || !Object.hasOwn(at, part)) return undefined;
    at = (at as Record<string, unknown>)[part];
  }
  return at;
}
