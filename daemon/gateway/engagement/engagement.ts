// One engagement: what magic.yaml says about the gateway, compiled once. A request works on the engagement that was current when
// it came, to its end, so that a reload drops nothing.
import { modelPattern, type Pattern } from "#contract/model-pattern.ts";
import { providerTypes } from "#contract/project-gateway.ts";
import { providerFaults } from "#contract/provider-faults.ts";
import { type ServiceTier, serviceTiers, tierNamed } from "#daemon/gateway/format/usage.ts";
import { maxOutputTokens } from "#daemon/gateway/pricing/output-limits.ts";
import { overridePrice, type Price } from "#daemon/gateway/pricing/price.ts";
import type { Credentials, ProviderKind, Target } from "#daemon/gateway/providers/adapter.ts";
import { isLoopback } from "#shared/loopback.ts";
import { cleanWithin } from "#shared/redact.ts";
import type {
  BudgetConfig,
  GatewayConfig,
  LimitsConfig,
  PolicyConfig,
  PriceConfig,
  ProviderConfig,
  Strategy,
} from "./config.ts";

export interface ConfiguredProvider {
  readonly name: string;
  readonly kind: ProviderKind;
  /** As configured; null: the vendor's own. */
  readonly baseUrl: string | null;
  readonly credentials: Credentials;
  readonly headers: Readonly<Record<string, string>> | undefined;
  readonly seed: number | undefined;
  /** A server of the user's own (`type: openai` on loopback): nothing to pay. */
  readonly free: boolean;
  /** Models that magic.yaml says it serves; patterns too. */
  readonly models: readonly string[];
  /** What is missing or wrong, so that it cannot be called, in words; null when nothing is. */
  readonly missing: string | null;
}

export interface PolicyCandidate {
  /** Empty for a bare id: whoever serves it. */
  readonly provider: string;
  readonly model: string;
  readonly weight: number;
}

export interface Policy {
  readonly name: string;
  readonly strategy: Strategy;
  readonly candidates: readonly PolicyCandidate[];
  readonly retries: number;
  readonly timeoutMs: number;
  readonly totalTimeoutMs: number;
}

export interface Engagement {
  readonly name: string | null;
  readonly providers: ReadonlyMap<string, ConfiguredProvider>;
  readonly aliases: ReadonlyMap<string, string>;
  readonly policies: ReadonlyMap<string, Policy>;
  readonly allow: readonly Pattern[];
  readonly deny: readonly Pattern[];
  readonly defaultModel: string;
  readonly prices: PriceOverrides;
  readonly allowUnpriced: boolean;
  readonly dropUnsupported: boolean;
  readonly limits: LimitsConfig;
  readonly budgets: readonly BudgetConfig[];
  /** How long single calls are kept in the ledger. */
  readonly retentionDays: number;
}

export interface PriceOverrides {
  /** The price under the very name first, then under the bare id, then the first pattern that fits. */
  find(provider: string, model: string): Price | undefined;
  /** What stands under the name of a model and a service tier (`openai/gpt-5@priority`). */
  services(provider: string, model: string): ReadonlyMap<ServiceTier, Price> | undefined;
  /** Names without `*`, as `provider/model`. */
  readonly named: readonly string[];
}

/** How a model that is asked for by name is called: nobody retries behind a client that retries itself. */
export const pinned = { retries: 0, timeoutMs: 300_000, totalTimeoutMs: 1_800_000 } as const;
const policyTimes = { retries: 0, timeoutMs: 60_000, totalTimeoutMs: 1_800_000 } as const;

/** One inexpensive model of each vendor, for an `auto` that magic.yaml does not define. */
const usual: Readonly<Partial<Record<ProviderKind, string>>> = {
  openai: "gpt-4o-mini",
  anthropic: "claude-haiku-4-5",
  google: "gemini-2.5-flash",
};

/** Compiles the `gateway` section; an absent one gives the sandbox alone. */
export function compileEngagement(config: GatewayConfig = {}): Engagement {
  const providers = new Map<string, ConfiguredProvider>();
  for (const [name, provider] of Object.entries(config.providers ?? {}))
    providers.set(name, configured(name, provider));
  if (!providers.has("sandbox")) providers.set("sandbox", configured("sandbox", {}));
  const aliases = new Map(Object.entries(config.models?.aliases ?? {}));
  const policies = new Map<string, Policy>();
  for (const [name, policy] of Object.entries(config.policies ?? {}))
    policies.set(name, compilePolicy(name, policy, aliases));
  if (!policies.has("auto")) policies.set("auto", usualPolicy(providers));
  return {
    name: config.engagement ?? null,
    providers,
    aliases,
    policies,
    allow: (config.models?.allow ?? ["*"]).map((text) => modelPattern(text)),
    deny: (config.models?.deny ?? []).map((text) => modelPattern(text, { anyCase: true })),
    defaultModel: config.default ?? "auto",
    prices: compilePrices(config.prices ?? {}),
    allowUnpriced: config.allow_unpriced ?? false,
    dropUnsupported: config.drop_unsupported ?? false,
    retentionDays: config.retention_days ?? 400,
    limits: config.limits ?? {},
    budgets: config.budgets ?? [],
  };
}

const targets = new WeakMap<ConfiguredProvider, Map<string, Target>>();
const MAX_TARGETS = 1_000;

/** What an adapter needs to call a model. The same object each time, while the configuration holds. */
export function targetOf(provider: ConfiguredProvider, model: string): Target {
  let known = targets.get(provider);
  if (!known) {
    known = new Map();
    targets.set(provider, known);
  }
  let target = known.get(model);
  if (!target) {
    target = newTarget(provider, model);
    if (known.size < MAX_TARGETS) known.set(model, target);
  }
  return target;
}

function newTarget(provider: ConfiguredProvider, model: string): Target {
  return {
    provider: provider.name,
    kind: provider.kind,
    model,
    baseUrl: provider.baseUrl,
    credentials: provider.credentials,
    headers: provider.headers,
    maxOutputTokens: maxOutputTokens(model),
    seed: provider.seed,
  };
}

/** `provider/model`; the model alone where it has no provider. */
export function modelName({ provider, model }: Pick<PolicyCandidate, "provider" | "model">): string {
  return provider === "" ? model : `${provider}/${model}`;
}

/** Splits `provider/model` at the first slash. */
export function splitModel(name: string): { readonly provider: string; readonly model: string } | null {
  const slash = name.indexOf("/");
  if (slash <= 0 || slash === name.length - 1) return null;
  return { provider: name.slice(0, slash), model: name.slice(slash + 1) };
}

function configured(name: string, written: ProviderConfig): ConfiguredProvider {
  // Keys come from files, whose last line ends: none begins or ends with a blank.
  const config = cleanWithin(written, (text) => text.trim()) as ProviderConfig;
  const kind = config.type ?? providerTypes.find((known) => known === name) ?? "openai";
  const baseUrl = config.base_url?.replace(/\/+$/, "") || null;
  const credentials: Credentials = {
    apiKey: config.api_key || undefined,
    region: config.region || undefined,
    accessKeyId: config.access_key_id || undefined,
    secretAccessKey: config.secret_access_key || undefined,
    sessionToken: config.session_token || undefined,
  };
  const own = config.type === "openai";
  const provider = {
    name,
    kind,
    baseUrl,
    credentials,
    headers: headersOf(config),
    seed: config.seed,
    free: kind === "sandbox" || (own && isLoopback(URL.parse(baseUrl ?? "")?.hostname)),
    models: config.models ?? [],
  };
  return { ...provider, missing: missingFor(provider, config) };
}

function headersOf({ headers = {}, organization, project }: ProviderConfig): Record<string, string> | undefined {
  const all = {
    ...Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value])),
    ...(organization && { "openai-organization": organization }),
    ...(project && { "openai-project": project }),
  };
  return Object.keys(all).length > 0 ? all : undefined;
}

// A key that is not set comes as an empty string or not at all; the policy then goes on to the next candidate.
function missingFor(
  { name, kind, baseUrl, credentials: has }: Omit<ConfiguredProvider, "missing">,
  config: ProviderConfig,
): string | null {
  const at = `gateway.providers.${name}`;
  if (kind === "sandbox") return null;
  const [fault] = providerFaults(config);
  if (fault) return `${[at, ...fault.path].join(".")} ${fault.problem}`;
  const unset = (key: "api_key" | "base_url" | "region") =>
    `${at}.${key} is ${config[key] === "" ? "empty: the daemon was started without the variable that it names" : "not set"}`;
  if (config.type === "openai") return baseUrl ? null : unset("base_url");
  if (kind === "bedrock") {
    if (!has.apiKey && !(has.accessKeyId && has.secretAccessKey))
      return `${at} has neither api_key nor access_key_id and secret_access_key`;
    return has.region || baseUrl ? null : unset("region");
  }
  if (kind === "azure" && !baseUrl) return unset("base_url");
  // A server of one's own under a vendor's name may want no key: it says so itself.
  return has.apiKey || (baseUrl && kind !== "azure") ? null : unset("api_key");
}

function compilePolicy(name: string, config: PolicyConfig, aliases: ReadonlyMap<string, string>): Policy {
  const candidates: PolicyCandidate[] = [];
  for (const entry of config.candidates) {
    const text = typeof entry === "string" ? entry : entry.model;
    const meant = followAliases(aliases, text) ?? text;
    const split = splitModel(meant) ?? { provider: "", model: meant };
    const weight = (typeof entry === "string" ? undefined : entry.weight) ?? 1;
    candidates.push({ ...split, weight });
  }
  return {
    name,
    strategy: config.strategy ?? "priority",
    candidates,
    retries: config.retries ?? policyTimes.retries,
    timeoutMs: config.timeout_ms ?? policyTimes.timeoutMs,
    totalTimeoutMs: config.total_timeout_ms ?? policyTimes.totalTimeoutMs,
  };
}

const MAX_ALIASES = 8;

/** What a name stands for in the end; undefined where its aliases lead in a circle. */
export function followAliases(aliases: ReadonlyMap<string, string>, name: string): string | undefined {
  let current = name;
  for (let step = 0; step < MAX_ALIASES; step++) {
    const next = aliases.get(current);
    if (next === undefined || next === current) return current;
    current = next;
  }
  return undefined;
}

function usualPolicy(providers: ReadonlyMap<string, ConfiguredProvider>): Policy {
  const candidates = [...providers.values()].flatMap((provider) => {
    const model = usualModel(provider);
    return model ? [{ provider: provider.name, model, weight: 1 }] : [];
  });
  candidates.push({ provider: "sandbox", model: "echo", weight: 1 });
  return { name: "auto", strategy: "priority", candidates, ...policyTimes };
}

// Behind an address of its own, a server that speaks OpenAI's wire has OpenAI's models as little as anybody else's.
function usualModel({ name, kind, baseUrl, models }: ConfiguredProvider): string | undefined {
  if (kind === "openai" && name !== "openai" && baseUrl) return models.find((model) => !model.includes("*"));
  return usual[kind];
}

function compilePrices(config: NonNullable<GatewayConfig["prices"]>): PriceOverrides {
  const byTier = Map.groupBy(Object.entries(config), ([name]) => tierNamed(/@(\w+)$/.exec(name)?.[1]));
  const usual = byTier.get(undefined) ?? [];
  const tiered = serviceTiers.flatMap((tier) => {
    const prices = byTier.get(tier)?.map(([name, price]) => [name.slice(0, name.lastIndexOf("@")), price] as const);
    return prices ? [{ tier, find: finderOf(prices) }] : [];
  });
  return {
    named: usual.map(([name]) => name).filter((name) => !name.includes("*")),
    find: finderOf(usual),
    services(provider, model) {
      if (tiered.length === 0) return undefined;
      const found = tiered.flatMap(({ tier, find }) => {
        const price = find(provider, model);
        return price ? [[tier, price] as const] : [];
      });
      return found.length > 0 ? new Map(found) : undefined;
    },
  };
}

function finderOf(prices: readonly (readonly [name: string, price: PriceConfig])[]): PriceOverrides["find"] {
  const exact = new Map<string, Price>();
  const patterns: { readonly pattern: Pattern; readonly price: Price }[] = [];
  for (const [name, override] of prices) {
    const price = overridePrice(override);
    if (name.includes("*")) patterns.push({ pattern: modelPattern(name), price });
    else exact.set(name, price);
  }
  // As a pattern without a slash, a bare id stands for the model wherever it is served.
  const bare = (model: string) => (model.includes("/") ? undefined : exact.get(model));
  return (provider, model) =>
    exact.get(`${provider}/${model}`) ??
    bare(model) ??
    patterns.find(({ pattern }) => pattern.fits(provider, model))?.price;
}
