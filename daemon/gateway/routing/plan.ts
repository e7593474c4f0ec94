// The route of one call, decided before anyone is called: which candidates may serve it, in which order, and why the others may not.
import { MagicError } from "#contract/errors.ts";
import type { GatewayCall } from "#daemon/gateway/call.ts";
import { type Access, accessOf, notInContract } from "#daemon/gateway/engagement/access.ts";
import {
  type Engagement,
  modelName,
  type PolicyCandidate,
  pinned,
  splitModel,
  targetOf,
} from "#daemon/gateway/engagement/engagement.ts";
import { priceFor, publishedFor, unpricedAdvice } from "#daemon/gateway/engagement/prices.ts";
import { located, ofNoProvider, type Resolution, resolveModel, unknownTo } from "#daemon/gateway/engagement/resolve.ts";
import type { ChatRequest } from "#daemon/gateway/format/request.ts";
import type { Catalogue } from "#daemon/gateway/pricing/catalogue.ts";
import { attachmentsAtMost } from "#daemon/gateway/pricing/estimate.ts";
import { freePrice, worstCost } from "#daemon/gateway/pricing/price.ts";
import type { Provider, ProviderKind, Target } from "#daemon/gateway/providers/adapter.ts";
import type { Breakers } from "./breaker.ts";
import type { Candidate, Considered, Objection } from "./candidate.ts";
import type { Measurements } from "./measurements.ts";
import { inOrder } from "./order.ts";
import { callerKey, longestAnswer, type RequestShape } from "./request-shape.ts";

export interface RouterParts {
  readonly catalogue: Catalogue;
  readonly breakers: Breakers;
  readonly measurements: Measurements;
  readonly provider: (kind: ProviderKind) => Provider;
  readonly random: () => number;
}

export interface Plan {
  readonly asked: string;
  /** Null for a pinned model. */
  readonly policy: string | null;
  readonly strategy: string;
  /** At least one, the first is tried first. */
  readonly candidates: readonly Candidate[];
  readonly considered: readonly Considered[];
  readonly retries: number;
  readonly timeoutMs: number;
  readonly totalTimeoutMs: number;
}

type Asking = Pick<GatewayCall, "operation" | "body" | "principal" | "controller">;

/** What is asked of every candidate. */
interface Question {
  readonly engagement: Engagement;
  readonly parts: RouterParts;
  readonly call: Asking;
  readonly shape: RequestShape;
  readonly access: Access;
  /** The name in the request. */
  readonly asked: string;
  /** Asked for by name, not by a policy. */
  readonly isPinned: boolean;
}

/** Decides the route, or throws the refusal that explains best why there is none. */
export function planRoute(engagement: Engagement, parts: RouterParts, call: Asking, shape: RequestShape): Plan {
  const plan = considerRoute(engagement, parts, call, shape);
  if (plan.candidates.length > 0) return plan;
  throw refusal(plan);
}

/** As planRoute, but a route without candidates is an answer too: for explanations. */
export function considerRoute(engagement: Engagement, parts: RouterParts, call: Asking, shape: RequestShape): Plan {
  const resolution = resolutionOf(engagement, parts, call);
  const { asked } = resolution;
  const access = accessOf(engagement, call.principal, call.controller);
  const isPinned = resolution.kind === "pinned";
  const question = { engagement, parts, call, shape, access, asked, isPinned };
  if (resolution.kind === "pinned") {
    const { provider, model } = resolution;
    const only = considerCandidate(question, { provider: provider.name, model, weight: 1 });
    return {
      asked,
      policy: null,
      strategy: "pinned",
      candidates: only.candidate && !only.objection ? [only.candidate] : [],
      considered: [only],
      ...pinned,
    };
  }
  const { policy } = resolution;
  const entries = policy.candidates.map((entry) => located(engagement, parts.catalogue, entry));
  const considered = entries.map((entry) => considerCandidate(question, entry));
  if (sandboxStandsIn(engagement, call, entries))
    considered.push(considerCandidate(question, { provider: "sandbox", model: "echo", weight: 1 }));
  const able = considered.flatMap(({ candidate, objection }) => (candidate && !objection ? [candidate] : []));
  const ordered = inOrder(policy.strategy, able, {
    user: shape.user ?? callerKey(call.principal),
    measurements: parts.measurements,
    stream: shape.stream,
    random: parts.random,
  });
  return {
    asked,
    policy: policy.name,
    strategy: policy.strategy,
    candidates: openOnesLast(ordered, parts.breakers),
    considered,
    retries: policy.retries,
    timeoutMs: policy.timeoutMs,
    totalTimeoutMs: policy.totalTimeoutMs,
  };
}

function resolutionOf(engagement: Engagement, { catalogue }: RouterParts, { body, controller }: Asking): Resolution {
  const asked = modelOf(body);
  try {
    return resolveModel(engagement, catalogue, asked);
  } catch (error) {
    const { provider, model } = splitModel(asked ?? "") ?? { provider: "", model: asked ?? "" };
    const denial = asked ? notInContract(controller, asked, provider, model) : null;
    if (denial === null) throw error;
    throw new MagicError(refusals[denial.rule], sentence(denial.reason), {
      extra: { param: "model", rule: denial.rule },
    });
  }
}

function modelOf(body: Readonly<Record<string, unknown>>): string | null {
  return typeof body["model"] === "string" ? body["model"] : null;
}

// What is written against the sandbox runs unchanged against live: a policy of live candidates alone is simulated there.
function sandboxStandsIn(engagement: Engagement, call: Asking, candidates: readonly PolicyCandidate[]): boolean {
  const { environment, environments = [environment] } = call.principal;
  if (environments.includes("live")) return false;
  return !candidates.some(({ provider }) => engagement.providers.get(provider)?.kind === "sandbox");
}

function considerCandidate(question: Question, entry: PolicyCandidate): Considered {
  const { engagement, parts, call, shape, access, asked, isPinned } = question;
  const name = modelName(entry);
  const out = (
    objection: Objection,
    reason: string,
    param: string | null = null,
    candidate: Candidate | null = null,
  ) => ({
    model: name,
    objection,
    reason,
    param,
    candidate,
  });
  const configured = engagement.providers.get(entry.provider);
  if (!configured) return out("not_configured", ofNoProvider(engagement, parts.catalogue, entry), "model");
  const denial = access.check(asked, configured, entry.model);
  if (denial) return out(denial.rule, denial.reason, "model");
  if (configured.missing) return out("not_configured", configured.missing, "model");
  const unknown = unknownTo(configured, entry.model);
  if (unknown) return out("unknown_model", unknown, "model");
  const provider = parts.provider(configured.kind);
  const unsupported = unsupportedBy(question, provider, entry.model, name);
  if (unsupported) return out("unsupported", unsupported.reason, unsupported.param);
  const target = targetOf(configured, entry.model);
  const price = priceFor(engagement, parts.catalogue, configured, entry.model);
  const contextLength = publishedFor(parts.catalogue, configured, entry.model)?.contextLength ?? null;
  const most = price === freePrice ? 0 : longest(provider, call, shape, target);
  const worst = price && worstCost(price, longestPrompt(call, shape, entry.model, contextLength), most, shape);
  const candidate = { name, configured, provider, target, weight: entry.weight, price, contextLength, worst };
  if (!price && !engagement.allowUnpriced) return out("unpriced", unpricedAdvice(name), "model", candidate);
  // The count is an estimate: only the vendor refuses a request that was pinned to its model.
  if (!isPinned && contextLength !== null && shape.contextTokens + (shape.maxTokens ?? 0) > contextLength)
    return out(
      "context_length",
      `about ${shape.contextTokens} prompt tokens${shape.maxTokens ? ` and ${shape.maxTokens} for the answer` : ""} do not fit into ${contextLength}`,
      call.operation === "chat" ? "messages" : "input",
      candidate,
    );
  return { model: name, objection: null, reason: null, param: null, candidate };
}

// What images and files come to is known within an order of magnitude only, but no prompt is longer than the context.
function longestPrompt(
  { body }: Asking,
  { promptTokens }: RequestShape,
  model: string,
  context: number | null,
): number {
  const attached = attachmentsAtMost(body["messages"], model);
  return Math.max(promptTokens, Math.min(promptTokens + attached, context ?? Number.POSITIVE_INFINITY));
}

// Thinking comes on top of `max_tokens` at some wires, and one that demands a `max_tokens` gets one.
function longest(
  { longestAnswer: of }: Provider,
  { operation, body }: Asking,
  shape: RequestShape,
  target: Target,
): number {
  const own = of && operation === "chat" ? of(body as unknown as ChatRequest, target) : 0;
  // An explanation is asked for with bodies that nobody has checked.
  return Math.max(longestAnswer(shape, target), Number.isFinite(own) ? own : 0);
}

function unsupportedBy(
  { engagement, call, isPinned }: Question,
  provider: Provider,
  model: string,
  name: string,
): { readonly reason: string; readonly param: string } | null {
  if (call.operation === "embeddings")
    return provider.embed ? null : { reason: `${name}: its provider has no embeddings here`, param: "model" };
  const found = provider
    .unsupported(call.body as unknown as ChatRequest, model)
    .filter(
      ({ droppable, leftToVendor }) =>
        !(droppable && dropsUnsupported(engagement, call)) && !(leftToVendor && isPinned),
    );
  const [first] = found;
  if (!first) return null;
  const way = first.droppable ? " (drop_unsupported leaves it out)" : "";
  return { reason: `${name} does not support ${first.param}: ${first.reason}${way}`, param: first.param };
}

/** The body's own `drop_unsupported` wins over magic.yaml's. */
export function dropsUnsupported(
  engagement: Engagement,
  call: { readonly body: Readonly<Record<string, unknown>> },
): boolean {
  const own = call.body["drop_unsupported"];
  return typeof own === "boolean" ? own : engagement.dropUnsupported;
}

function openOnesLast(ordered: readonly Candidate[], breakers: Breakers): Candidate[] {
  const open = new Set(ordered.filter(({ name }) => breakers.state(name) === "open"));
  return open.size === 0 ? [...ordered] : [...ordered.filter((one) => !open.has(one)), ...open];
}

const refusals: Readonly<Record<Objection, ConstructorParameters<typeof MagicError>[0]>> = {
  environment: "model_not_allowed",
  "engagement.deny": "model_not_allowed",
  "engagement.allow": "model_not_allowed",
  "token.models": "model_not_allowed",
  "controller.models": "capability_denied",
  not_configured: "provider_not_configured",
  unknown_model: "model_not_found",
  unsupported: "unsupported_parameter",
  invalid: "invalid_request",
  context_length: "invalid_request",
  unpriced: "model_unpriced",
  budget: "insufficient_quota",
};

// The candidate that came furthest tells best what to change; the message lists them all.
const depth: readonly Objection[] = [
  "context_length",
  "unpriced",
  "unsupported",
  "controller.models",
  "token.models",
  "engagement.allow",
  "engagement.deny",
  "environment",
  "unknown_model",
  "not_configured",
];

function refusal(plan: Plan): MagicError {
  const furthest =
    depth.find((objection) => plan.considered.some((one) => one.objection === objection)) ?? "not_configured";
  const reasons = plan.considered.map(({ reason }) => reason ?? "").filter((reason) => reason !== "");
  const head = plan.policy ? `No candidate of the policy "${plan.policy}" can serve this request: ` : "";
  const param = plan.considered.find(({ objection }) => objection === furthest)?.param ?? "model";
  return new MagicError(refusals[furthest], sentence(head + reasons.join("; ")), {
    extra: {
      param,
      rule: furthest,
      ...(furthest === "context_length" && { type: "invalid_request_error", code: "context_length_exceeded" }),
    },
  });
}

function sentence(text: string): string {
  return text.endsWith(".") ? text : `${text}.`;
}
