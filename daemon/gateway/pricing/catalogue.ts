// The published prices and context lengths, from @pydantic/genai-prices: offline, loaded at first use (59 ms), looked up once a
// minute per model (prices may depend on the date and the time of day).
import type { Clock } from "#shared/clock.ts";
import { systemClock } from "#shared/clock.ts";
import { lazy } from "#shared/lazy.ts";
import { type Price, type Rates, ratesOf } from "./price.ts";

export interface Published {
  readonly price: Price;
  readonly contextLength: number | null;
}

/** Where to look: the vendor's id in the catalogue, or the base URL of a server that speaks OpenAI's wire. */
export interface Vendor {
  readonly id?: string;
  readonly url?: string;
  /** The configured name, tried as a vendor's id where the URL is nobody's. */
  readonly name?: string;
}

export interface Catalogue {
  /** Loads the price list; resolves at once when it is there. */
  load(): Promise<void>;
  /** Null when the list does not have the model. Call `load` first. */
  find(vendor: Vendor, model: string): Published | null;
  /** The ids of a vendor's current models as the list spells them. Empty for vendors whose ids it only outlines. */
  list(vendor: string | null): readonly string[];
  readonly loaded: boolean;
}

type Library = typeof import("@pydantic/genai-prices");

const MAX_AGE_MS = 60_000;
const MAX_ENTRIES = 2_000;

export function createCatalogue(clock: Clock = systemClock): Catalogue {
  let library: Library | undefined;
  // By the very object: a configured provider has one as long as its configuration holds.
  const found = new WeakMap<Vendor, Map<string, { readonly at: number; readonly published: Published | null }>>();

  return {
    list: (vendor) => (library && vendor && listed.has(vendor) ? modelsOf(library, vendor) : []),
    get loaded() {
      return library !== undefined;
    },
    load: lazy(async () => {
      library = await import("@pydantic/genai-prices");
    }),
    find(vendor, model) {
      if (!library) throw new Error("the price list is not loaded");
      let ofVendor = found.get(vendor);
      if (!ofVendor) {
        ofVendor = new Map();
        found.set(vendor, ofVendor);
      }
      const known = ofVendor.get(model);
      const now = clock.now();
      if (known && now - known.at < MAX_AGE_MS && now >= known.at) return known.published;
      const published = lookUp(library, vendor, model, new Date(now));
      if (ofVendor.size >= MAX_ENTRIES) ofVendor.clear();
      ofVendor.set(model, { at: now, published });
      return published;
    },
  };
}

/** Vendors whose model ids stand in the list as one sends them. */
const listed: ReadonlySet<string> = new Set(["openai", "anthropic", "google"]);

function modelsOf(library: Library, vendor: string): string[] {
  const provider = library.findProvider({ providerId: vendor });
  return (provider?.models ?? [])
    .filter(({ id, deprecated }) => !deprecated && !id.startsWith("ft:"))
    .map(({ id }) => id);
}

function lookUp(library: Library, vendor: Vendor, model: string, timestamp: Date): Published | null {
  const ask = (options: { providerId?: string; providerApiUrl?: string }) =>
    library.calcPrice({ input_tokens: 0, output_tokens: 0 }, model, { ...options, timestamp });
  const result = vendor.id
    ? ask({ providerId: vendor.id })
    : ((vendor.url ? ask({ providerApiUrl: vendor.url }) : null) ?? exactly(vendor.name, ask));
  if (!result) return null;
  const price = priceOf(result.model_price as Record<string, Amount | undefined>, result.model.id.includes("claude"));
  return price && { price, contextLength: result.model.context_window ?? null };
}

// The library also finds vendors whose id is merely contained in the name: a server called "my-openai" is not OpenAI.
function exactly<R extends { provider: { id: string } } | null>(
  name: string | undefined,
  ask: (options: { providerId: string }) => R,
): R | null {
  if (!name) return null;
  const result = ask({ providerId: name });
  return result?.provider.id === name ? result : null;
}

type Amount = number | { readonly base: number; readonly tiers: readonly { start: number; price: number }[] };

// Tiers switch by the tokens of the whole prompt, for every class together.
function priceOf(list: Record<string, Amount | undefined>, ofClaude: boolean): Price | null {
  if (list["input_mtok"] === undefined && list["output_mtok"] === undefined) return null;
  const starts = new Set<number>([-1]);
  for (const amount of Object.values(list))
    if (typeof amount === "object") for (const t of amount.tiers) starts.add(t.start);
  const tiers = [...starts].sort((a, b) => a - b).map((above) => ({ above, rates: ratesAt(list, above, ofClaude) }));
  return { tiers, source: "published" };
}

function ratesAt(list: Record<string, Amount | undefined>, above: number, ofClaude: boolean): Rates {
  const at = (key: string): number | undefined => {
    const amount = list[key];
    if (typeof amount !== "object") return amount;
    let price = amount.base;
    for (const tier of amount.tiers) if (above >= tier.start) price = tier.price;
    return price;
  };
  const input = at("input_mtok");
  // What Claude's caches keep for an hour costs twice the input, whoever serves it; of Bedrock's models the list says so for the newest alone.
  const hourly = ofClaude && at("cache_write_mtok") !== undefined && input !== undefined ? 2 * input : undefined;
  return ratesOf({
    input,
    output: at("output_mtok"),
    cache_read: at("cache_read_mtok"),
    cache_write: at("cache_write_mtok"),
    cache_write_1h: at("cache_write_1h_mtok") ?? hourly,
    input_audio: at("input_audio_mtok"),
    cached_audio: at("cache_audio_read_mtok"),
    output_audio: at("output_audio_mtok"),
    output_image: at("output_image_mtok"),
    reasoning: at("output_reasoning_mtok"),
    // Dollars per thousand requests: 1e12 / 1e3 pico-dollars each.
    request: Math.round((at("requests_kcount") ?? 0) * 1e9),
  });
}
