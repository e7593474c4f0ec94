// What one candidate costs: magic.yaml first, then nothing for servers of one's own, then the published list.
import type { Catalogue, Published, Vendor } from "#daemon/gateway/pricing/catalogue.ts";
import { completed, freePrice, type Price } from "#daemon/gateway/pricing/price.ts";
import type { ProviderKind } from "#daemon/gateway/providers/adapter.ts";
import type { ConfiguredProvider, Engagement } from "./engagement.ts";

const vendors: Readonly<Partial<Record<ProviderKind, string>>> = {
  anthropic: "anthropic",
  google: "google",
  bedrock: "aws",
  azure: "azure",
};

/** The price, or null for a model that has none. The catalogue must be loaded. */
export function priceFor(
  engagement: Engagement,
  catalogue: Catalogue,
  provider: ConfiguredProvider,
  model: string,
): Price | null {
  const price = usualPrice(engagement, catalogue, provider, model);
  const services = price && engagement.prices.services(provider.name, model);
  if (!services) return price;
  const whole = [...services].map(([tier, one]) => [tier, completed(one, () => price) ?? price] as const);
  return { ...price, services: new Map(whole) };
}

function usualPrice(
  engagement: Engagement,
  catalogue: Catalogue,
  provider: ConfiguredProvider,
  model: string,
): Price | null {
  const override = engagement.prices.find(provider.name, model);
  if (override) return completed(override, () => listedPrice(catalogue, provider, model));
  return listedPrice(catalogue, provider, model);
}

function listedPrice(catalogue: Catalogue, provider: ConfiguredProvider, model: string): Price | null {
  if (provider.free) return freePrice;
  return publishedFor(catalogue, provider, model)?.price ?? null;
}

/** What the published list has about a model of this provider. */
export function publishedFor(catalogue: Catalogue, provider: ConfiguredProvider, model: string): Published | null {
  if (provider.kind === "sandbox" || provider.free) return null;
  return catalogue.find(vendorOf(provider), model);
}

/** Google's and Azure's lists have Claude as well, but not on the wire spoken here: Vertex and Foundry speak Anthropic's. */
export function speaks({ kind }: ConfiguredProvider, model: string): boolean {
  return !((kind === "google" || kind === "azure") && model.startsWith("claude"));
}

/** The vendor's id in the published list, or null for servers that are nobody's. */
export function vendorIdOf(provider: ConfiguredProvider): string | null {
  return vendorOf(provider).id ?? null;
}

const known = new WeakMap<ConfiguredProvider, Vendor>();

function vendorOf(provider: ConfiguredProvider): Vendor {
  let vendor = known.get(provider);
  if (!vendor) {
    vendor = newVendor(provider);
    known.set(provider, vendor);
  }
  return vendor;
}

function newVendor(provider: ConfiguredProvider): Vendor {
  const id = vendors[provider.kind];
  if (id) return { id };
  if (provider.name === "openai" || !provider.baseUrl) return { id: "openai" };
  return { url: provider.baseUrl, name: provider.name };
}

/** The refusal of an unpriced model: which lines to add, and where. */
export function unpricedAdvice(model: string): string {
  return (
    `The model ${model} has no published price, so its cost would be unknown. Add to magic.yaml under gateway: ` +
    `prices: { "${model}": { input: 0.00, output: 0.00 } } (US dollars per million tokens), or gateway.allow_unpriced: true.`
  );
}
