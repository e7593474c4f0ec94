// JSON objects that nobody has checked yet.

/** An object, as against null, arrays and everything else. */
export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** The object, or an empty one: for members that may be absent. */
export function fields(value: unknown): Record<string, unknown> {
  return isObject(value) ? value : {};
}

/** Sets a member; a name such as `__proto__` is one like any other. */
export function setField(target: Record<string, unknown>, name: string, value: unknown): void {
  Object.defineProperty(target, name, { value, enumerable: true, configurable: true, writable: true });
}
