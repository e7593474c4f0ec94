// What MySQL and MariaDB write, as controllers are given it, and what they take.

interface Field {
  readonly type: string;
  string(): string | null;
}

/** BIGINT as text, like DECIMAL, which already is. */
export function typeCast(field: Field, next: () => unknown): unknown {
  const value = next();
  if (field.type === "LONGLONG") return textOf(value);
  return field.type === "FLOAT" && typeof value === "number" ? shortest(value) : value;
}

/** A number of four bytes as everybody writes it: 0.1, not 0.10000000149011612. */
function shortest(value: number): number {
  const same = [6, 7, 8, 9]
    .map((digits) => Number(value.toPrecision(digits)))
    .find((one) => Math.fround(one) === value);
  return same ?? value;
}

/** Where a column is written, the servers refuse the letters of RFC 3339; the session is at UTC. */
export function timeOf(time: string): string {
  return time.replace("T", " ").replace("Z", "");
}

function textOf(value: unknown): unknown {
  return value === null ? null : String(value);
}
