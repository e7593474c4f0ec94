// How deep a value of JSON goes. JSON of any depth can be parsed and written; what walks the value may be recursive.

/** Whether it has more than so many levels of objects and arrays. */
export function nestsDeeper(value: unknown, levels: number): boolean {
  if (!isContainer(value)) return false;
  if (levels === 0) return true;
  if (Array.isArray(value)) {
    for (let i = 0; i < value.length; i++) if (isContainer(value[i]) && nestsDeeper(value[i], levels - 1)) return true;
    return false;
  }
  for (const key in value) {
    const member = (value as Record<string, unknown>)[key];
    if (isContainer(member) && nestsDeeper(member, levels - 1)) return true;
  }
  return false;
}

function isContainer(value: unknown): value is object {
  return typeof value === "object" && value !== null;
}
