// From the name in a request to what it stands for: a policy, or one provider's model. Decides nothing about who may use it.
import { MagicError } from "#contract/errors.ts";
import { modelPattern } from "#contract/model-pattern.ts";
import { providerTypes, sandboxModels } from "#contract/project-gateway.ts";
import type { Catalogue } from "#daemon/gateway/pricing/catalogue.ts";
import {
  type ConfiguredProvider,
  type Engagement,
  followAliases,
  modelName,
  type Policy,
  type PolicyCandidate,
  splitModel,
} from "./engagement.ts";
import { publishedFor, speaks } from "./prices.ts";

export type Resolution =
  | { readonly kind: "pinned"; readonly asked: string; readonly provider: ConfiguredProvider; readonly model: string }
  | { readonly kind: "policy"; readonly asked: string; readonly policy: Policy };

/**
 * What `model` of a request means: nothing -> `gateway.default`; an alias; a policy (`auto`, `policy:<name>`); `provider/model`;
 * or a bare id that exactly one configured provider serves. Throws `model_not_found` or `provider_not_configured`.
 */
export function resolveModel(
  engagement: Engagement,
  catalogue: Catalogue,
  asked: string | null | undefined,
): Resolution {
  const name = asked || engagement.defaultModel;
  const final = followAliases(engagement.aliases, name);
  if (final === undefined)
    throw new MagicError("model_not_found", `The alias ${quoted(name)} leads in a circle (gateway.models.aliases).`, {
      extra: { param: "model" },
    });
  const policy = policyNamed(engagement, final);
  if (policy) return { kind: "policy", asked: name, policy };
  const split = splitModel(final);
  const provider = split && engagement.providers.get(split.provider);
  if (split && provider) return { kind: "pinned", asked: name, provider, model: ownName(provider, split.model) };
  const servers = knownServers(engagement, catalogue, final);
  const [only, another] = servers;
  if (only && !another) return { kind: "pinned", asked: name, provider: only, model: ownName(only, final) };
  throw unknownModel(engagement, final, split?.provider, servers);
}

// Gemini's ids have a longer form, which no list and no price has.
function ownName({ kind }: ConfiguredProvider, model: string): string {
  return (kind === "google" && model.replace(/^(?:\/|models\/)+/, "")) || model;
}

function policyNamed(engagement: Engagement, name: string): Policy | undefined {
  const found = engagement.policies.get(name);
  if (found || !name.startsWith("policy:")) return found;
  const named = engagement.policies.get(name.slice("policy:".length));
  if (named) return named;
  const known = [...engagement.policies.keys()].join(", ");
  throw new MagicError("model_not_found", `There is no policy ${quoted(name.slice(7))}; there are: ${known}.`, {
    extra: { param: "model" },
  });
}

/** A candidate with the provider that serves it, where it names none and exactly one does. */
export function located(engagement: Engagement, catalogue: Catalogue, candidate: PolicyCandidate): PolicyCandidate {
  if (candidate.provider !== "") return candidate;
  const [only, another] = knownServers(engagement, catalogue, candidate.model);
  return only && !another ? { ...candidate, provider: only.name } : candidate;
}

/** Why a policy's candidate has no provider. */
export function ofNoProvider(engagement: Engagement, catalogue: Catalogue, candidate: PolicyCandidate): string {
  const { provider, model } = candidate;
  const servers = provider === "" ? knownServers(engagement, catalogue, model) : [];
  if (servers.length > 1) return `several ${serve(servers, model)}`;
  if (provider === "" && engagement.policies.has(model))
    return `${model} is a policy, and a policy's candidates are models`;
  return `${modelName(candidate)} is of no provider under gateway.providers`;
}

function serve(servers: readonly ConfiguredProvider[], model: string): string {
  const choices = servers.map(({ name }) => `${name}/${model}`).join(", ");
  return `providers serve ${quoted(model)}: say which with ${choices}`;
}

const served = new WeakMap<Engagement, Map<string, ConfiguredProvider>>();
const MAX_SERVED = 1_000;

// Asking every provider and the price list is too much for each call of a bare id.
function knownServers(engagement: Engagement, catalogue: Catalogue, model: string): readonly ConfiguredProvider[] {
  let known = served.get(engagement);
  if (!known) {
    known = new Map();
    served.set(engagement, known);
  }
  const only = known.get(model);
  if (only) return [only];
  const servers = serversOf(engagement, catalogue, model);
  if (servers.length === 1 && servers[0] && known.size < MAX_SERVED) known.set(model, servers[0]);
  return servers;
}

// Who serves a bare id: whoever names it in magic.yaml or is known for it; failing that, the only provider there is.
function serversOf(engagement: Engagement, catalogue: Catalogue, model: string): ConfiguredProvider[] {
  const providers = [...engagement.providers.values()];
  const named = namedModels(engagement);
  const serving = providers.filter(
    (provider) =>
      named.has(`${provider.name}/${model}`) ||
      provider.models.some((text) => modelPattern(text).fits(provider.name, model)) ||
      (provider.kind === "sandbox" && sandboxModels.includes(model)) ||
      (speaks(provider, model) && publishedFor(catalogue, provider, model) !== null),
  );
  if (serving.length > 0 || model.includes("/")) return serving;
  const real = providers.filter(({ kind }) => kind !== "sandbox");
  return real.length === 1 ? real : [];
}

/** Why a provider has no such model; null for all but the sandbox, which alone has no others than it lists. */
export function unknownTo({ name, kind }: ConfiguredProvider, model: string): string | null {
  if (kind !== "sandbox" || sandboxModels.includes(model)) return null;
  const known = sandboxModels.map((one) => `${name}/${one}`).join(", ");
  return `${name}/${model} is no model; there are ${known}`;
}

/** Every `provider/model` that magic.yaml spells out. */
export function namedModels(engagement: Engagement): ReadonlySet<string> {
  const names = new Set(engagement.prices.named);
  for (const target of engagement.aliases.values()) names.add(target);
  for (const pattern of engagement.allow) if (!pattern.text.includes("*")) names.add(pattern.text);
  for (const policy of engagement.policies.values())
    for (const { provider, model } of policy.candidates) names.add(`${provider}/${model}`);
  return names;
}

function unknownModel(
  engagement: Engagement,
  name: string,
  prefix: string | undefined,
  servers: readonly ConfiguredProvider[],
): MagicError {
  const extra = { param: "model" };
  if (servers.length > 1) return new MagicError("model_not_found", `Several ${serve(servers, name)}.`, { extra });
  if (prefix && providerTypes.some((known) => known === prefix))
    return new MagicError(
      "provider_not_configured",
      `The provider ${quoted(prefix)} is not configured: add it under gateway.providers in magic.yaml.`,
      { extra },
    );
  const providers = [...engagement.providers.keys()].map((provider) => `${provider}/...`).join(", ");
  const policies = [...engagement.policies.keys()].join(", ");
  return new MagicError(
    "model_not_found",
    `There is no model ${quoted(name)}. Models are written provider/model (here ${providers}), or name a policy (${policies}) or an alias.`,
    { extra },
  );
}

function quoted(name: string): string {
  return JSON.stringify(name.slice(0, 200));
}
