// Binary floating point as text.

const LEAST_NORMAL = 2 ** -126;

/** The shortest text that reads back as the same number. */
export function floatText(value: number, bits: 32 | 64): string {
  if (Object.is(value, -0)) return "-0";
  if (bits === 64 || !Number.isFinite(value)) return String(value);
  // Any six digits come back, but near zero, where a float has fewer.
  for (let digits = Math.abs(value) < LEAST_NORMAL ? 1 : 6; digits <= 9; digits++) {
    const text = value.toPrecision(digits);
    if (Math.fround(Number(text)) === value) return String(Number(text));
  }
  return String(value);
}
