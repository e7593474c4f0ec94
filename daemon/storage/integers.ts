// 64-bit integers are read as a number where it is exact and as a bigint where it is not: the same on both dialects.

export function exactInteger(value: bigint): number | bigint {
  return value >= Number.MIN_SAFE_INTEGER && value <= Number.MAX_SAFE_INTEGER ? Number(value) : value;
}

/** Postgres sends bigint, and numeric (which sums are), as text; a numeric with a fraction stays text. */
export function parseInteger(text: string): number | bigint | string {
  return /^-?\d{1,40}$/.test(text) ? exactInteger(BigInt(text)) : text;
}
