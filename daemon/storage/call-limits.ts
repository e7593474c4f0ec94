// When one more call passes the limits of its caller: decided alike where the counts lie in memory and where they lie in the database.

export interface CallLimits {
  readonly requests_per_minute?: number | undefined;
  readonly tokens_per_minute?: number | undefined;
  readonly concurrent?: number | undefined;
}

/** What the last minute holds. */
export interface LastMinute {
  sum(): number;
  /** Milliseconds until at most `room` is left in it, if nothing is added. */
  untilBelow(room: number): number;
}

export interface CallRefusal {
  readonly limit: keyof CallLimits;
  readonly waitMs: number;
}

/** Null: a call of about `size` tokens may be made beside `underWay` others. */
export function refusalOf(
  { requests_per_minute: perMinute, tokens_per_minute: tokenLimit, concurrent: atOnce }: CallLimits,
  underWay: number,
  requests: LastMinute,
  tokens: LastMinute,
  size: number,
): CallRefusal | null {
  if (atOnce !== undefined && underWay >= atOnce) return { limit: "concurrent", waitMs: 1_000 };
  if (perMinute !== undefined && requests.sum() + 1 > perMinute)
    return { limit: "requests_per_minute", waitMs: requests.untilBelow(perMinute - 1) };
  // A single call larger than the whole limit passes when nothing else is in the window: refusing it for ever helps nobody.
  const used = tokenLimit === undefined ? 0 : tokens.sum();
  if (tokenLimit !== undefined && used > 0 && used + size > tokenLimit)
    return { limit: "tokens_per_minute", waitMs: tokens.untilBelow(Math.max(0, tokenLimit - size)) };
  return null;
}
