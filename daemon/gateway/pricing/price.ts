// What a token costs. Inside, money is an integer number of pico-dollars (1e-12 US dollars): a price per million tokens with six
// decimals is a whole number of them per token, so that sums never drift. It becomes dollars once, on the way out.
import type { TokenUsage } from "#daemon/gateway/format/usage.ts";

export const PICO_PER_DOLLAR = 1_000_000_000_000;

/** Pico-dollars per token of each class, and per request. */
export interface Rates {
  readonly input: number;
  readonly cacheRead: number;
  readonly cacheWrite: number;
  readonly output: number;
  readonly reasoning: number;
  readonly request: number;
}

export interface Price {
  /** Ascending; the last one whose `above` the prompt's tokens exceed holds for the whole request. The first has `above: -1`. */
  readonly tiers: readonly { readonly above: number; readonly rates: Rates }[];
  /** magic.yaml, the published price list, or nothing to pay (loopback server, sandbox). */
  readonly source: "override" | "published" | "free";
}

/** US dollars per million tokens, as written under `gateway.prices`. */
export interface PriceOverride {
  readonly input?: number | undefined;
  readonly output?: number | undefined;
  readonly cache_read?: number | undefined;
  readonly cache_write?: number | undefined;
  readonly reasoning?: number | undefined;
}

/** Whole pico-dollars per token of a price in dollars per million tokens. */
export function perToken(dollarsPerMillion: number): number {
  return Math.round(dollarsPerMillion * 1e6);
}

/** Rates from dollars per million; a class without a price of its own costs what its direction costs. */
export function ratesOf(price: PriceOverride & { readonly request?: number }): Rates {
  const input = perToken(price.input ?? 0);
  const output = perToken(price.output ?? 0);
  return {
    input,
    cacheRead: price.cache_read === undefined ? input : perToken(price.cache_read),
    cacheWrite: price.cache_write === undefined ? input : perToken(price.cache_write),
    output,
    reasoning: price.reasoning === undefined ? output : perToken(price.reasoning),
    request: price.request ?? 0,
  };
}

/** One flat price. */
export function flatPrice(price: PriceOverride, source: Price["source"]): Price {
  return { tiers: [{ above: -1, rates: ratesOf(price) }], source };
}

export const freePrice: Price = flatPrice({}, "free");

/** The rates that hold for a request whose prompt has this many tokens. */
export function ratesFor(price: Price, promptTokens: number): Rates {
  let rates = price.tiers[0]?.rates ?? ratesOf({});
  for (const tier of price.tiers) if (promptTokens > tier.above) rates = tier.rates;
  return rates;
}

/** Pico-dollars that this usage costs: every class once, at its own rate. */
export function costOf(price: Price, usage: TokenUsage): number {
  const rates = ratesFor(price, usage.input + usage.cached + usage.cache_write);
  const pico =
    rates.request +
    usage.input * rates.input +
    usage.cached * rates.cacheRead +
    usage.cache_write * rates.cacheWrite +
    usage.output * rates.output +
    usage.reasoning * rates.reasoning;
  return Math.min(pico, Number.MAX_SAFE_INTEGER);
}

/** The dearest that a call can become: the prompt unread from any cache, the whole answer at the dearer answer rate. */
export function worstCost(price: Price, promptTokens: number, answerTokens: number): number {
  const rates = ratesFor(price, promptTokens);
  const input = Math.max(rates.input, rates.cacheWrite);
  const output = Math.max(rates.output, rates.reasoning);
  return Math.min(rates.request + promptTokens * input + answerTokens * output, Number.MAX_SAFE_INTEGER);
}

/** US dollars, the nearest double. */
export function dollars(pico: number): number {
  return pico / PICO_PER_DOLLAR;
}

/** Pico-dollars of an amount in dollars as people write it. */
export function picoOf(usd: number): number {
  return Math.round(usd * PICO_PER_DOLLAR);
}

/** US dollars of a sum that may pass 2^53, the nearest double. */
export function dollarsOf(pico: bigint): number {
  if (pico <= BigInt(Number.MAX_SAFE_INTEGER)) return dollars(Number(pico));
  const whole = pico / BigInt(PICO_PER_DOLLAR);
  const rest = pico % BigInt(PICO_PER_DOLLAR);
  return Number(`${whole}.${String(rest).padStart(12, "0")}`);
}
