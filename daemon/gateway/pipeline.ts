// The gateway as one object: the engagement that is current, and everything that lives longer than a call.
import { isMagicError } from "#contract/errors.ts";
import type { Principal } from "#contract/identity.ts";
import { headers as names } from "#contract/protocol.ts";
import type { RouteExplanation } from "#contract/wire/route.ts";
import type { Sealer } from "#daemon/secrets/sealer.ts";
import { errorFields, type Logger } from "#daemon/telemetry/log.ts";
import type { Metrics } from "#daemon/telemetry/metrics.ts";
import type { Tracer } from "#daemon/telemetry/trace.ts";
import { type Clock, systemClock } from "#shared/clock.ts";
import { accountsOf, spenderOf } from "./budgets/applicable.ts";
import { createBudgets } from "./budgets/budgets.ts";
import type { Gateway, GatewayCall } from "./call.ts";
import { carryOut } from "./carry-out.ts";
import type { GatewayConfig } from "./engagement/config.ts";
import { compileEngagement, type Engagement } from "./engagement/engagement.ts";
import { listModels, modelNamed } from "./engagement/models.ts";
import type { ChatRequest } from "./format/request.ts";
import { chatRequest, embeddingRequest } from "./format/validate.ts";
import { createKeyed } from "./idempotency/keyed.ts";
import type { KeyStore } from "./idempotency/store.ts";
import { createLedger } from "./ledger/ledger.ts";
import { retain } from "./ledger/retention.ts";
import type { UsageQuery, UsageSum } from "./ledger/row.ts";
import { createLimits } from "./limits/limits.ts";
import { createSharedLimits } from "./limits/shared.ts";
import { createGatewayMetrics } from "./observe/metrics.ts";
import { createObserver } from "./observe/observe.ts";
import { createCatalogue } from "./pricing/catalogue.ts";
import { dollars } from "./pricing/price.ts";
import type { EmbeddingRequest, Provider, ProviderKind } from "./providers/adapter.ts";
import { type BreakerOptions, createBreakers } from "./routing/breaker.ts";
import { explanationOf, untilRefused } from "./routing/explain.ts";
import { createMeasurements } from "./routing/measurements.ts";
import { considerRoute, dropsUnsupported, type RouterParts } from "./routing/plan.ts";
import { callerKey, shapeOf } from "./routing/request-shape.ts";
import { withinBudgets } from "./routing/within-budgets.ts";
import type { GatewayStores } from "./stores.ts";
import type { Work } from "./work.ts";

export interface PipelineParts {
  /** The `gateway` section of magic.yaml at the start. */
  readonly config: GatewayConfig | undefined;
  readonly provider: (kind: ProviderKind) => Provider;
  readonly stores: GatewayStores;
  readonly sealer: Sealer;
  readonly logger: Logger;
  readonly metrics: Metrics;
  readonly tracer: Tracer;
  readonly clock?: Clock;
  readonly random?: () => number;
  readonly breakers?: BreakerOptions;
}

export interface GatewayPipeline extends Gateway {
  /** Takes a new `gateway` section; calls under way keep the one they began with. */
  reconfigure(config: GatewayConfig | undefined): void;
  /** The decision without the call. */
  explain(call: Pick<GatewayCall, "body" | "principal" | "controller">): Promise<RouteExplanation>;
  /** Sums of the ledger, the newest call included. */
  usage(query: UsageQuery): Promise<readonly UsageSum[]>;
  /** Writes what is not written yet. */
  flush(): Promise<void>;
  /** Ends what is under way, streams by an error event. */
  cut(): void;
  /** Waits for keyed calls, writes everything, stops. */
  close(): Promise<void>;
}

const PURGE_MS = 3_600_000;
/** How often leases of daemons that died beside this one are looked for. */
const RECOVER_MS = 30_000;
/** How often the newest calls are gathered, so that whoever asks what was used does not wait for a week of them. */
const GATHER_MS = 60_000;
/** When retention is looked at first: not while everything starts. */
const FIRST_RETENTION_MS = 60_000;
/** When the price list is loaded on its own, so that the first call does not wait for it. */
const WARM_MS = 500;

/** Opens the gateway: charges what a daemon that died may have spent, then serves. */
export async function createPipeline(parts: PipelineParts): Promise<GatewayPipeline> {
  const { clock = systemClock, random = Math.random, logger, stores } = parts;
  const catalogue = createCatalogue(clock);
  const breakers = createBreakers(clock, parts.breakers);
  const measurements = createMeasurements(clock);
  const budgets = createBudgets(stores.budgets, logger, spentBefore);
  const ledger = createLedger(stores.ledger, budgets, logger);
  const metrics = createGatewayMetrics(parts.metrics, breakers);
  const observer = createObserver({ clock, logger, metrics, ledger });
  // An answer that outlives a crash has been charged for as well. A ledger that cannot write says so itself.
  const keys: KeyStore = {
    ...stores.keys,
    async finish(row) {
      await ledger.stored().catch(() => undefined);
      await stores.keys.finish(row);
    },
  };
  const keyed = createKeyed(keys, parts.sealer, clock, logger);
  const router: RouterParts = { catalogue, breakers, measurements, provider: parts.provider, random };
  const underWay = new Set<Work>();
  const limits = createLimits(clock, stores.limits && createSharedLimits(stores.limits));
  const carry = { clock, logger, router, limits, budgets, ledger, observer, tracer: parts.tracer, underWay };
  let engagement = compileEngagement(parts.config);
  let configuredAt = clock.now();

  const recover = async () => {
    for (const { key, charged } of await stores.budgets.recover())
      logger.warn("gateway.lease_charged", { budget: key, charged_usd: dollars(charged) });
  };
  await recover();
  let closed = false;
  const timers = [setInterval(purge, PURGE_MS), setInterval(gather, GATHER_MS), setTimeout(warm, WARM_MS)];
  timers.push(setTimeout(keep, FIRST_RETENTION_MS), setInterval(keep, PURGE_MS));
  if (stores.budgets.shared) timers.push(setInterval(() => void recover().catch(() => undefined), RECOVER_MS));
  for (const timer of timers) timer.unref();
  purge();

  // Of a period that began under the budgets of now all is counted as it is spent: at midnight nobody waits for a sum.
  async function spentBefore(query: UsageQuery & { readonly since: string }): Promise<readonly UsageSum[]> {
    return Date.parse(query.since) < configuredAt ? await ledger.usage(query) : [];
  }
  function purge(): void {
    keyed.purge().catch((error: unknown) => logger.warn("gateway.purge_failed", errorFields(error)));
  }
  function gather(): void {
    stores.ledger.gather().catch((error: unknown) => logger.warn("gateway.gather_failed", errorFields(error)));
  }
  function keep(): void {
    retain({ ...stores, clock }, engagement.retentionDays, () => closed).catch((error: unknown) => {
      if (!closed) logger.warn("gateway.retention_failed", errorFields(error));
    });
  }
  function warm(): void {
    // Whoever needs it asks again, and is told why there is none.
    if (hasPriced(engagement)) catalogue.load().catch(() => undefined);
  }

  const carryKeyed = async (current: Engagement, call: GatewayCall, request: ChatRequest | EmbeddingRequest) => {
    const answer = await keyed.run(call, () => carryOut(carry, current, call, request, true));
    if (answer.headers[names.idempotentReplayed]) observer.replayed(call, answer.status);
    return answer;
  };

  return {
    async complete(call) {
      try {
        const current = engagement;
        const request = call.operation === "chat" ? chatRequest(call.body) : embeddingRequest(call.body);
        if (!catalogue.loaded && hasPriced(current)) await catalogue.load();
        if (call.idempotencyKey === null) return await carryOut(carry, current, call, request, false);
        return await carryKeyed(current, call, request);
      } catch (error) {
        observer.refused(call, isMagicError(error) ? error.code : "internal");
        throw error;
      }
    },
    async models(principal: Principal) {
      if (hasPriced(engagement)) await catalogue.load();
      return listModels(engagement, catalogue, principal);
    },
    async model(principal, name) {
      if (hasPriced(engagement)) await catalogue.load();
      return modelNamed(engagement, catalogue, principal, name);
    },
    reconfigure(config) {
      engagement = compileEngagement(config);
      configuredAt = clock.now();
      warm();
    },
    async explain({ body, principal, controller }) {
      const current = engagement;
      if (hasPriced(current)) await catalogue.load();
      const asked = withMessages(body);
      // What is no request is refused before it has a route.
      const request = chatRequest(asked);
      const call = { operation: "chat", body, principal, controller } as const;
      const shape = shapeOf(call);
      const spender = spenderOf(principal, shape.user, controller);
      const accounts = accountsOf(current, principal, controller, spender, clock.now());
      const plan = await withinBudgets(
        considerRoute(current, router, { ...call, body: asked }, shape),
        budgets,
        accounts,
      );
      const asking = {
        request,
        raw: null,
        requestId: "",
        dropUnsupported: dropsUnsupported(current, call),
        user: principal.gateway?.user ?? null,
        caller: callerKey(principal),
      };
      return explanationOf(await untilRefused(plan, asking), shape, principal, router);
    },
    usage: (query) => ledger.usage(query),
    flush: () => ledger.flush(),
    cut() {
      for (const work of carry.underWay) work.stop();
    },
    async close() {
      closed = true;
      for (const timer of timers) clearTimeout(timer);
      await keyed.idle();
      await limits.idle();
      await ledger.close();
    },
  };
}

// Who asks where a request leads need not write messages, and all else that it asks for counts as if there were some.
function withMessages(body: GatewayCall["body"]): GatewayCall["body"] {
  const { messages = [] } = body;
  const none = Array.isArray(messages) && messages.length === 0;
  return none ? { ...body, messages: [{ role: "user", content: "Hello" }] } : body;
}

function hasPriced(engagement: Engagement): boolean {
  for (const provider of engagement.providers.values()) if (!provider.free) return true;
  return false;
}
