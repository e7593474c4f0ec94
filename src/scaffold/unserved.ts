// Which models of magic.yaml's gateway no provider of it serves, as the daemon finds providers. Where the daemon would ask its price
// list, which is not read here, nothing is said.
import { toPointer } from "#contract/json-pointer.ts";
import { modelPattern } from "#contract/model-pattern.ts";
import { type GatewayConfig, type ProviderConfig, sandboxModels } from "#contract/project-gateway.ts";

export interface Unserved {
  /** Within `gateway`. */
  readonly pointer: string;
  readonly model: string;
}

/** A policy passes over such a candidate without a word; a default and an alias are a 404; a price is nobody's. */
export function unservedModels(gateway: GatewayConfig): Unserved[] {
  const { providers = {}, policies = {}, models: { aliases = {} } = {} } = gateway;
  const candidates = Object.entries(policies).flatMap(([name, policy]) =>
    policy.candidates.map((one, index) => ({
      pointer: toPointer(["policies", name, "candidates", index]),
      model: typeof one === "string" ? one : one.model,
    })),
  );
  const asked = [
    ...(gateway.default === undefined ? [] : [{ pointer: "/default", model: gateway.default }]),
    ...Object.entries(aliases).map(([name, model]) => ({ pointer: toPointer(["models", "aliases", name]), model })),
  ];
  const priced = Object.keys(gateway.prices ?? {}).map((model) => ({ pointer: toPointer(["prices", model]), model }));
  const pinned = (model: string) => {
    const [provider = "", ...rest] = model.split("/");
    return rest.length === 0 || provider === "sandbox" || Object.hasOwn(providers, provider);
  };
  const spelled = new Set([
    ...Object.keys(gateway.prices ?? {}),
    ...(gateway.models?.allow ?? []),
    ...[...candidates, ...asked].map(({ model }) => model),
  ]);
  // The part before a name's first slash need not be a provider: OpenRouter's own names have a slash.
  const found = (model: string) =>
    Object.hasOwn(policies, model) ||
    Object.entries(providers).some(
      ([name, provider]) =>
        mayBeListed(name, provider) ||
        spelled.has(`${name}/${model}`) ||
        provider.models?.some((text) => modelPattern(text).fits(name, model)),
    );
  const kindOf = (name: string) => (Object.hasOwn(providers, name) && providers[name]?.type) || name;
  const simulated = Object.keys(providers).every((name) => kindOf(name) === "sandbox");
  // What no price list knows either: the sandbox's models are two, and a policy is one of magic.yaml's.
  const nowhere = (model: string) => {
    const [provider = "", ...rest] = model.split("/");
    if (rest.length > 0)
      return pinned(model) && kindOf(provider) === "sandbox" && !sandboxModels.includes(rest.join("/"));
    const policy = model.replace(/^policy:/, "");
    if (policy === "auto" || Object.hasOwn(policies, policy)) return false;
    return policy !== model || (simulated && !sandboxModels.includes(model));
  };
  const leadsNowhere = ({ model }: Unserved) =>
    !Object.hasOwn(aliases, model) && (nowhere(model) || (!pinned(model) && !found(model)));
  return [
    ...asked.filter(leadsNowhere),
    ...candidates.filter(({ model }) => !Object.hasOwn(aliases, model) && (nowhere(model) || !pinned(model))),
    ...priced.filter(({ model }) => !pinned(model) && !model.split("/", 1)[0]?.includes("*")),
  ];
}

// Whose models may have a slash in the price list: servers of many vendors' models, and Bedrock's ARNs.
function mayBeListed(name: string, { type, base_url: url }: ProviderConfig): boolean {
  const vendor = type ?? name;
  if (vendor === "bedrock") return true;
  if (["anthropic", "google", "azure", "sandbox"].includes(vendor) || name === "openai" || !url) return false;
  return !/^https?:\/\/(?:localhost|127(?:\.\d+){3}|\[::1\])(?=[:/]|$)/i.test(url);
}
