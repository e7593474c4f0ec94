// The models that can be named here: policies, aliases, what magic.yaml spells out, the sandbox's, and the published ones of each
// configured vendor; each with its price and context, and whether this caller may use it or why not.
import type { Principal } from "#contract/identity.ts";
import type { ModelEntry } from "#daemon/gateway/call.ts";
import type { Catalogue } from "#daemon/gateway/pricing/catalogue.ts";
import { sandboxModels } from "#daemon/gateway/providers/sandbox/provider.ts";
import { perMillion } from "#daemon/gateway/routing/explain.ts";
import { type Access, accessOf } from "./access.ts";
import { type ConfiguredProvider, type Engagement, splitModel } from "./engagement.ts";
import { priceFor, publishedFor, unpricedAdvice, vendorIdOf } from "./prices.ts";
import { namedModels } from "./resolve.ts";

/** The catalogue must be loaded. */
export function listModels(engagement: Engagement, catalogue: Catalogue, principal: Principal): ModelEntry[] {
  const access = accessOf(engagement, principal, null);
  const entries = new Map<string, ModelEntry>();
  const add = (provider: ConfiguredProvider, model: string) => {
    const id = `${provider.name}/${model}`;
    if (!entries.has(id)) entries.set(id, modelEntry(engagement, catalogue, access, provider, model));
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
      for (const model of catalogue.list(vendorIdOf(provider))) add(provider, model);
  }
  const models = [...entries.values()].sort((a, b) => (a.id < b.id ? -1 : 1));
  return [...policyEntries(engagement, models, principal), ...aliasEntries(engagement, models), ...models];
}

function modelEntry(
  engagement: Engagement,
  catalogue: Catalogue,
  access: Access,
  provider: ConfiguredProvider,
  model: string,
): ModelEntry {
  const id = `${provider.name}/${model}`;
  const price = priceFor(engagement, catalogue, provider, model);
  const unpriced = price || engagement.allowUnpriced ? null : unpricedAdvice(id);
  const reason = access.check(id, provider, model)?.reason ?? provider.missing ?? unpriced;
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
function policyEntries(engagement: Engagement, models: readonly ModelEntry[], principal: Principal): ModelEntry[] {
  const byId = new Map(models.map((model) => [model.id, model]));
  const simulated = !(principal.environments ?? [principal.environment]).includes("live");
  return [...engagement.policies.values()].map((policy) => {
    const candidates = policy.candidates.map(({ provider, model }) => byId.get(`${provider}/${model}`));
    const serving = candidates.find((candidate) => candidate?.allowed);
    const allowed = serving !== undefined || (simulated && byId.get("sandbox/echo")?.allowed === true);
    const first = candidates.find((candidate) => candidate?.reason)?.reason ?? "none of its candidates is configured";
    return { ...bare(policy.name, "policy"), allowed, reason: allowed ? null : first };
  });
}

function aliasEntries(engagement: Engagement, models: readonly ModelEntry[]): ModelEntry[] {
  const byId = new Map(models.map((model) => [model.id, model]));
  return [...engagement.aliases].map(([alias, target]) => {
    const model = byId.get(target);
    if (model) return { ...model, id: alias, kind: "alias" };
    const known = engagement.policies.has(target) || engagement.aliases.has(target);
    return { ...bare(alias, "alias"), allowed: known, reason: known ? null : `${target} is not known` };
  });
}

function bare(id: string, kind: ModelEntry["kind"]) {
  return { id, kind, provider: null, context_length: null, price: null };
}
