// JSON that nobody has checked yet.

/** An object, as against null, arrays and everything else. */
export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** The object, or an empty one: for members that may be absent. */
export function fields(value: unknown): Record<string, unknown> {
  return isObject(value) ? value : {};
}

/** The list, or an empty one; of what, is the caller's word. */
export function list<Item = unknown>(value: unknown): readonly Item[] {
  return Array.isArray(value) ? value : [];
}

/** The string, or an empty one. */
export function string(value: unknown): string {
  return typeof value === "string" ? value : "";
}

/** Sets a member; a name such as `__proto__` is one like any other. */
export function setField(target: Record<string, unknown>, name: string, value: unknown): void {
  Object.defineProperty(target, name, { value, enumerable: true, configurable: true, writable: true });
}
