// What a token costs. Inside, money is an integer number of pico-dollars (1e-12 US dollars): a price per million tokens with six
// decimals is a whole number of them per token, so that sums never drift; what a call costs is rounded where its price has more. It becomes
// dollars once, on the way out.
import type { ServiceTier, TokenParts, TokenUsage } from "#daemon/gateway/format/usage.ts";
import { PICO_PER_DOLLAR } from "#shared/money.ts";

/** Of a pico-dollar in dollars. */
const DECIMALS = 12;
const ZERO = 0x30;

/** Pico-dollars per token of each class, and per request. */
export interface Rates {
  readonly input: number;
  readonly cacheRead: number;
  readonly cacheWrite: number;
  readonly output: number;
  readonly reasoning: number;
  readonly request: number;
  /** What these parts of the classes cost; where the list does not say, what their class costs. */
  readonly cacheWrite1h: number;
  readonly inputAudio: number;
  readonly cachedAudio: number;
  readonly outputAudio: number;
  readonly outputImage: number;
}

interface PriceTier {
  readonly above: number;
  readonly rates: Rates;
  /** Of an override that does not name both directions: what it says. The rest is what it would be without it. */
  readonly named?: Partial<Rates>;
}

export interface Price {
  /** Ascending; the last one whose `above` the prompt's tokens exceed holds for the whole request. The first has `above: -1`. */
  readonly tiers: readonly PriceTier[];
  /** magic.yaml, the published price list, or nothing to pay (loopback server, sandbox). */
  readonly source: "override" | "published" | "free";
  /** Of an override that is no price by itself: it names a class without its direction, or nothing. */
  readonly partial?: boolean;
  /** What magic.yaml says of service tiers; the others cost the same as the usual one. */
  readonly services?: ReadonlyMap<ServiceTier, Price> | undefined;
}

/** US dollars per million tokens. */
interface ClassPrices {
  readonly input?: number | undefined;
  readonly output?: number | undefined;
  readonly cache_read?: number | undefined;
  readonly cache_write?: number | undefined;
  readonly reasoning?: number | undefined;
}

/** As written under `gateway.prices`. */
export interface PriceOverride extends ClassPrices {
  /** What is different for prompts of more tokens than `above`. */
  readonly long_prompts?: readonly (ClassPrices & { readonly above: number })[] | undefined;
}

/** Pico-dollars per token of a price in dollars per million tokens: whole ones, unless it has more than six decimals. */
function perToken(dollarsPerMillion: number): number {
  // None is infinite: of that no token at all would cost NaN.
  const pico = Math.min(dollarsPerMillion * 1e6, Number.MAX_SAFE_INTEGER);
  const whole = Math.round(pico);
  return Math.abs(pico - whole) < 1e-6 ? whole : pico;
}

/** What the published list has besides; US dollars per million tokens, `request` in pico-dollars. */
export interface PublishedPrice extends ClassPrices {
  readonly request?: number;
  readonly cache_write_1h?: number | undefined;
  readonly input_audio?: number | undefined;
  readonly cached_audio?: number | undefined;
  readonly output_audio?: number | undefined;
  readonly output_image?: number | undefined;
}

/** Rates from dollars per million; a class without a price of its own costs what its direction costs. */
export function ratesOf(price: PublishedPrice): Rates {
  const or = (own: number | undefined, otherwise: number) => (own === undefined ? otherwise : perToken(own));
  const input = perToken(price.input ?? 0);
  const output = perToken(price.output ?? 0);
  const cacheRead = or(price.cache_read, input);
  const cacheWrite = or(price.cache_write, input);
  return {
    input,
    cacheRead,
    cacheWrite,
    output,
    reasoning: or(price.reasoning, output),
    request: price.request ?? 0,
    cacheWrite1h: or(price.cache_write_1h, cacheWrite),
    inputAudio: or(price.input_audio, input),
    cachedAudio: or(price.cached_audio, cacheRead),
    outputAudio: or(price.output_audio, output),
    outputImage: or(price.output_image, output),
  };
}

/** The price that magic.yaml has for a model. Of a longer prompt what no entry names stays as it is for shorter ones. */
export function overridePrice({ long_prompts: longer = [], ...price }: PriceOverride): Price {
  let named: ClassPrices = price;
  const tiers = [tierOf(-1, named)];
  for (const { above, ...different } of longer.toSorted((a, b) => a.above - b.above)) {
    named = { ...named, ...different };
    tiers.push(tierOf(above, named));
  }
  return { tiers, source: "override", ...(isPartial(price) && { partial: true }) };
}

function tierOf(above: number, price: ClassPrices): PriceTier {
  const rates = ratesOf(price);
  const whole = price.input !== undefined && price.output !== undefined;
  return { above, rates, ...(!whole && { named: namedOf(price, rates) }) };
}

// Who names nothing does not say that it costs nothing.
function isPartial(price: ClassPrices): boolean {
  const { input, output, cache_read: read, cache_write: write, reasoning } = price;
  if (input === undefined && (read !== undefined || write !== undefined)) return true;
  return output === undefined && (reasoning !== undefined || input === undefined);
}

// A direction with all of its classes, or the classes alone that are named.
function namedOf(price: ClassPrices, rates: Rates): Partial<Rates> {
  const { input, cacheRead, cacheWrite, cacheWrite1h, inputAudio, cachedAudio } = rates;
  const { output, reasoning, outputAudio, outputImage } = rates;
  return {
    ...(price.cache_read !== undefined && { cacheRead, cachedAudio }),
    ...(price.cache_write !== undefined && { cacheWrite, cacheWrite1h }),
    ...(price.input !== undefined && { input, cacheRead, cacheWrite, cacheWrite1h, inputAudio, cachedAudio }),
    ...(price.reasoning !== undefined && { reasoning }),
    ...(price.output !== undefined && { output, reasoning, outputAudio, outputImage }),
  };
}

/** The price with the rest from what would hold without it; null where it is none by itself and nothing would. */
export function completed(price: Price, otherwise: () => Price | null): Price | null {
  if (price.tiers.every(({ named }) => !named)) return price;
  const rest = otherwise();
  if (!rest) return price.partial ? null : price;
  const starts = new Set([...rest.tiers, ...price.tiers].map(({ above }) => above));
  const tiers = [...starts]
    .sort((a, b) => a - b)
    .map((above) => {
      const { rates, named = rates } = tierFor(price, above + 1);
      return { above, rates: { ...tierFor(rest, above + 1).rates, ...named } };
    });
  return { tiers, source: price.source };
}

export const freePrice: Price = { tiers: [{ above: -1, rates: ratesOf({}) }], source: "free" };

/** What holds for a request whose prompt has this many tokens. */
function tierFor({ tiers }: Price, promptTokens: number): PriceTier {
  let found = tiers[0] as PriceTier;
  for (const tier of tiers) if (promptTokens > tier.above) found = tier;
  return found;
}

/** Pico-dollars that this usage costs: every class once, at its own rate. */
export function costOf(price: Price, usage: TokenUsage): number {
  const charged = (usage.tier && price.services?.get(usage.tier)) ?? price;
  const { rates } = tierFor(charged, usage.input + usage.cached + usage.cache_write);
  const pico =
    rates.request +
    usage.input * rates.input +
    usage.cached * rates.cacheRead +
    usage.cache_write * rates.cacheWrite +
    usage.output * rates.output +
    usage.reasoning * rates.reasoning +
    (usage.parts ? surcharge(rates, usage.parts) : 0);
  // Anthropic's list: a tenth on every class. What magic.yaml says of a model is its whole price.
  const resident = usage.residency && charged.source === "published" ? Math.round(pico / 10) : 0;
  return Math.min(Math.round(pico + resident), Number.MAX_SAFE_INTEGER);
}

function surcharge(rates: Rates, parts: TokenParts): number {
  return (
    (parts.cache_write_1h ?? 0) * (rates.cacheWrite1h - rates.cacheWrite) +
    (parts.input_audio ?? 0) * (rates.inputAudio - rates.input) +
    (parts.cached_audio ?? 0) * (rates.cachedAudio - rates.cacheRead) +
    (parts.output_audio ?? 0) * (rates.outputAudio - rates.output) +
    (parts.output_image ?? 0) * (rates.outputImage - rates.output)
  );
}

/** The dearest that a call can become: the prompt unread from any cache, the whole answer at the dearest answer rate, on the dearest tier. */
export function worstCost(
  price: Price,
  promptTokens: number,
  answerTokens: number,
  parts: { readonly audio?: boolean; readonly hour?: boolean },
): number {
  let worst = worstAt(price, promptTokens, answerTokens, parts);
  for (const service of price.services?.values() ?? [])
    worst = Math.max(worst, worstAt(service, promptTokens, answerTokens, parts));
  return worst;
}

function worstAt(
  { tiers }: Price,
  promptTokens: number,
  answerTokens: number,
  { audio = false, hour = false }: { readonly audio?: boolean; readonly hour?: boolean },
): number {
  let worst = 0;
  for (const { above, rates } of tiers) {
    // The prompt may turn out shorter, and magic.yaml may say that a short one is the dearer.
    if (promptTokens <= above) break;
    const input = Math.max(rates.input, rates.cacheWrite, audio ? rates.inputAudio : 0, hour ? rates.cacheWrite1h : 0);
    const output = Math.max(rates.output, rates.reasoning, rates.outputImage, audio ? rates.outputAudio : 0);
    worst = Math.max(worst, rates.request + promptTokens * input + answerTokens * output);
  }
  return Math.min(Math.ceil(worst), Number.MAX_SAFE_INTEGER);
}

/** US dollars, the nearest double. */
export function dollars(pico: number): number {
  return pico / PICO_PER_DOLLAR;
}

/** The same in full, whatever JSON would make of it: 0.0000105, not 1.05e-5. */
export function dollarsText(pico: number): string {
  const digits = String(pico).padStart(DECIMALS + 1, "0");
  let end = digits.length;
  const point = end - DECIMALS;
  while (end > point && digits.charCodeAt(end - 1) === ZERO) end--;
  return end === point ? digits.slice(0, point) : `${digits.slice(0, point)}.${digits.slice(point, end)}`;
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
