// The models that can be named here: policies, aliases, what magic.yaml spells out, the sandbox's, and the published ones of each
// configured vendor; each with its price and context, and whether this caller may use it or why not.
import { isMagicError } from "#contract/errors.ts";
import type { Principal } from "#contract/identity.ts";
import { sandboxModels } from "#contract/project-gateway.ts";
import type { ModelEntry } from "#daemon/gateway/call.ts";
import { modelNameProblem } from "#daemon/gateway/format/validate.ts";
import type { Catalogue } from "#daemon/gateway/pricing/catalogue.ts";
import { perMillion } from "#daemon/gateway/routing/explain.ts";
import { type Access, accessOf } from "./access.ts";
import { type ConfiguredProvider, type Engagement, type Policy, splitModel } from "./engagement.ts";
import { priceFor, publishedFor, speaks, unpricedAdvice, vendorIdOf } from "./prices.ts";
import { located, namedModels, resolveModel, unknownTo } from "./resolve.ts";

/** The catalogue must be loaded. */
export function listModels(engagement: Engagement, catalogue: Catalogue, principal: Principal): ModelEntry[] {
  const listing = listingFor(engagement, catalogue, principal);
  const entries = new Map<string, ModelEntry>();
  const add = (provider: ConfiguredProvider, model: string) => {
    const id = `${provider.name}/${model}`;
    if (!entries.has(id)) entries.set(id, modelEntry(listing, provider, model, id));
  };
  for (const name of namedModels(engagement)) {
    const split = splitModel(name);
    const provider = split && engagement.providers.get(split.provider);
    if (split && provider) add(provider, split.model);
  }
  for (const provider of engagement.providers.values()) {
    for (const model of provider.models) if (!model.includes("*")) add(provider, model);
    if (provider.kind === "sandbox") for (const model of sandboxModels) add(provider, model);
    else if (!provider.free && provider.models.length === 0)
      for (const model of catalogue.list(vendorIdOf(provider))) if (speaks(provider, model)) add(provider, model);
  }
  return [
    ...[...engagement.policies.values()].map((policy) => policyEntry(listing, policy, policy.name)),
    ...[...engagement.aliases.keys()].map((alias) => namedEntry(listing, alias)),
    ...[...entries.values()].sort((a, b) => (a.id < b.id ? -1 : 1)),
  ];
}

/** What a request with this `model` would be served by, listed or not; null for what can be no name. The catalogue must be loaded. */
export function modelNamed(
  engagement: Engagement,
  catalogue: Catalogue,
  principal: Principal,
  name: string,
): ModelEntry | null {
  return modelNameProblem(name) ? null : namedEntry(listingFor(engagement, catalogue, principal), name);
}

function listingFor(engagement: Engagement, catalogue: Catalogue, principal: Principal): Listing {
  return { engagement, catalogue, principal, access: accessOf(engagement, principal, null) };
}

interface Listing {
  readonly engagement: Engagement;
  readonly catalogue: Catalogue;
  readonly principal: Principal;
  readonly access: Access;
}

// `asked` is the name that a request has: a token may list an alias or a policy and not what stands behind it.
function modelEntry(listing: Listing, provider: ConfiguredProvider, model: string, asked: string): ModelEntry {
  const { engagement, catalogue, access } = listing;
  const id = `${provider.name}/${model}`;
  const price = priceFor(engagement, catalogue, provider, model);
  const unpriced = price || engagement.allowUnpriced ? null : unpricedAdvice(id);
  const reason =
    access.check(asked, provider, model)?.reason ?? provider.missing ?? unknownTo(provider, model) ?? unpriced;
  return {
    id,
    kind: "model",
    provider: provider.name,
    context_length: publishedFor(catalogue, provider, model)?.contextLength ?? null,
    price: price && perMillion(price),
    allowed: reason === null,
    reason,
  };
}

// A policy can be asked for when one of its candidates can serve.
function policyEntry(listing: Listing, policy: Policy, asked: string): ModelEntry {
  const { engagement, principal } = listing;
  const simulated = !(principal.environments ?? [principal.environment]).includes("live");
  const named = simulated
    ? [...policy.candidates, { provider: "sandbox", model: "echo", weight: 1 }]
    : policy.candidates;
  const candidates = named.flatMap((candidate) => {
    const { provider: name, model } = located(engagement, listing.catalogue, candidate);
    const provider = engagement.providers.get(name);
    return provider ? [modelEntry(listing, provider, model, asked)] : [];
  });
  const allowed = candidates.some((candidate) => candidate.allowed);
  const first = candidates[0]?.reason ?? "none of its candidates is configured";
  return { ...bare(asked, "policy"), allowed, reason: allowed ? null : first };
}

function namedEntry(listing: Listing, name: string): ModelEntry {
  const alias = listing.engagement.aliases.has(name) ? ({ kind: "alias" } as const) : {};
  try {
    const meant = resolveModel(listing.engagement, listing.catalogue, name);
    const entry =
      meant.kind === "policy"
        ? policyEntry(listing, meant.policy, name)
        : modelEntry(listing, meant.provider, meant.model, name);
    return { ...entry, id: name, ...alias };
  } catch (error) {
    if (!isMagicError(error)) throw error;
    return { ...bare(name, "model"), ...alias, allowed: false, reason: error.message };
  }
}

function bare(id: string, kind: ModelEntry["kind"]) {
  return { id, kind, provider: null, context_length: null, price: null };
}
