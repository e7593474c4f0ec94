// The gateway's Prometheus series. Labels are bounded: provider and model of the route, never a user or a request.
import { Gauge } from "prom-client";
import type { BreakerState, Breakers } from "#daemon/gateway/routing/breaker.ts";
import type { Metrics } from "#daemon/telemetry/metrics.ts";
import { seriesOf, type Tally, tallyOf } from "#daemon/telemetry/series.ts";

/** What was charged, for an answer or for an attempt that failed. */
export interface Charge {
  readonly promptTokens: number;
  readonly completionTokens: number;
  readonly costUsd: number | null;
}

export interface CallFigures extends Charge {
  readonly provider: string;
  readonly model: string;
  readonly outcome: string;
  readonly stream: boolean;
  readonly seconds: number;
  /** Seconds to the first content; null for answers that are not streamed. */
  readonly firstTokenSeconds: number | null;
  /** Seconds that the gateway itself took before the first dispatch. */
  readonly overheadSeconds: number;
}

export interface GatewayMetrics {
  called(figures: CallFigures): void;
  /** One upstream request; `charge` for one that failed and was charged, beside that of the call. */
  attempted(provider: string, model: string, charge: Charge | null): void;
  attemptFailed(provider: string, model: string, kind: string): void;
  refused(code: string): void;
  replayed(): void;
}

const OVERHEAD_BUCKETS = [0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.1, 1];
const stateValues: Readonly<Record<BreakerState, number>> = { closed: 0, half_open: 1, open: 2 };
const MAX_SERIES = 2_000;
const OTHER = "(other)";

export function createGatewayMetrics(metrics: Metrics, breakers: Breakers): GatewayMetrics {
  const which = ["provider", "model"] as const;
  const calls = metrics.counter("magic_gateway_requests_total", "Calls by outcome", [...which, "outcome"]);
  const latency = metrics.histogram("magic_gateway_request_duration_seconds", "Time to the end of the answer", [
    ...which,
    "stream",
  ]);
  const first = metrics.histogram("magic_gateway_time_to_first_token_seconds", "Time to the first content", which);
  const overhead = metrics.histogram(
    "magic_gateway_overhead_seconds",
    "Time from the request's arrival to its first dispatch",
    [],
    OVERHEAD_BUCKETS,
  );
  const tokens = metrics.counter("magic_gateway_tokens_total", "Tokens by direction", [...which, "direction"]);
  const cost = metrics.counter("magic_gateway_cost_usd_total", "US dollars", which);
  const attempts = metrics.counter("magic_gateway_attempts_total", "Upstream requests", which);
  const failures = metrics.counter("magic_gateway_attempt_failures_total", "Failed upstream requests", [
    ...which,
    "kind",
  ]);
  const refusals = metrics.counter("magic_gateway_refusals_total", "Calls refused before dispatch", ["code"]);
  const replays = metrics.counter("magic_gateway_replays_total", "Calls answered by their Idempotency-Key");
  new Gauge({
    name: "magic_gateway_breaker_state",
    help: "0 closed, 1 half-open, 2 open",
    labelNames: ["candidate"],
    registers: [metrics.registry],
    collect() {
      this.reset();
      for (const [candidate, state] of breakers.states()) this.set({ candidate }, stateValues[state]);
    },
  });

  // Model names come from requests: a client that invents them must not fill the memory.
  const seen = new Map<string, Map<string, ReturnType<typeof ofModel>>>();
  let models = 0;
  const overheads = seriesOf(overhead, {});
  const ofModel = (provider: string, model: string) => ({
    provider,
    model,
    calls: new Map<string, Tally>(),
    plain: whenUsed(() => seriesOf(latency, { provider, model, stream: "false" })),
    streamed: whenUsed(() => seriesOf(latency, { provider, model, stream: "true" })),
    first: whenUsed(() => seriesOf(first, { provider, model })),
    attempts: whenUsed(() => tallyOf(attempts, { provider, model })),
    input: whenUsed(() => tallyOf(tokens, { provider, model, direction: "input" })),
    output: whenUsed(() => tallyOf(tokens, { provider, model, direction: "output" })),
    cost: whenUsed(() => tallyOf(cost, { provider, model })),
  });
  const series = (provider: string, model: string): ReturnType<typeof ofModel> => {
    let ofProvider = seen.get(provider);
    if (!ofProvider) {
      ofProvider = new Map();
      seen.set(provider, ofProvider);
    }
    let found = ofProvider.get(model);
    if (found) return found;
    if (models >= MAX_SERIES && model !== OTHER) return series(provider, OTHER);
    models++;
    found = ofModel(provider, model);
    ofProvider.set(model, found);
    return found;
  };
  const pay = (found: ReturnType<typeof ofModel>, { promptTokens, completionTokens, costUsd }: Charge): void => {
    if (promptTokens > 0) found.input().add(promptTokens);
    if (completionTokens > 0) found.output().add(completionTokens);
    if (costUsd) found.cost().add(costUsd);
  };

  return {
    called(figures) {
      const found = series(figures.provider, figures.model);
      let ended = found.calls.get(figures.outcome);
      if (!ended) {
        ended = tallyOf(calls, { provider: found.provider, model: found.model, outcome: figures.outcome });
        found.calls.set(figures.outcome, ended);
      }
      ended.add(1);
      (figures.stream ? found.streamed() : found.plain()).observe(figures.seconds);
      if (figures.firstTokenSeconds !== null) found.first().observe(figures.firstTokenSeconds);
      overheads.observe(figures.overheadSeconds);
      pay(found, figures);
    },
    attempted(provider, model, charge) {
      const found = series(provider, model);
      found.attempts().add(1);
      if (charge) pay(found, charge);
    },
    attemptFailed(given, name, kind) {
      const { provider, model } = series(given, name);
      failures.inc({ provider, model, kind });
    },
    refused: (code) => refusals.inc({ code }),
    replayed: () => replays.inc(),
  };
}

// Of most models nothing is ever streamed, or costs anything: no series of theirs should say so.
function whenUsed<T>(make: () => T): () => T {
  let made: T | undefined;
  return () => {
    made ??= make();
    return made;
  };
}
