// One call from its route to its ledger row, in the order in which it happens: route, limits, budget, attempts, answer, settlement.
import { isMagicError, MagicError } from "#contract/errors.ts";
import type { Logger } from "#daemon/telemetry/log.ts";
import type { Span, Tracer } from "#daemon/telemetry/trace.ts";
import type { Clock } from "#shared/clock.ts";
import { headersOf, noteIn, priceIn } from "./answer-headers.ts";
import { type Account, accountsOf, type Spender, spenderOf } from "./budgets/applicable.ts";
import type { Budgets, Reservation } from "./budgets/budgets.ts";
import type { GatewayAnswer, GatewayCall } from "./call.ts";
import type { Engagement } from "./engagement/engagement.ts";
import type { ChatRequest } from "./format/request.ts";
import { errorEvent } from "./format/sse.ts";
import { completionTokens, noUsage, promptTokens, type TokenUsage } from "./format/usage.ts";
import type { Ledger } from "./ledger/ledger.ts";
import type { Hold, Limits } from "./limits/limits.ts";
import { attribute, providerNames } from "./observe/attributes.ts";
import { costAt, type Observer } from "./observe/observe.ts";
import { dollars } from "./pricing/price.ts";
import type {
  AttemptOptions,
  ChatOutcome,
  EmbeddingRequest,
  FrameSink,
  StreamEnd,
  StreamOutcome,
} from "./providers/adapter.ts";
import { type Failure, failure, failureBody, isUndone } from "./providers/failure.ts";
import { type Attempted, type AttemptRecord, attemptRoute, settleBreaker } from "./routing/attempts.ts";
import type { Candidate } from "./routing/candidate.ts";
import { dropsUnsupported, type Plan, planRoute, type RouterParts } from "./routing/plan.ts";
import { callerKey, type RequestShape, shapeOf } from "./routing/request-shape.ts";
import { Work } from "./work.ts";

/** A day: an upstream that names more has nothing to say about when to come again. */
const LONGEST_WAIT_S = 86_400;

export interface CarryParts {
  readonly clock: Clock;
  readonly logger: Logger;
  readonly router: RouterParts;
  readonly limits: Limits;
  readonly budgets: Budgets;
  readonly ledger: Ledger;
  readonly observer: Observer;
  readonly tracer: Tracer;
  /** What is dispatched and not settled. */
  readonly underWay: Set<Work>;
}

/** A call on its way, with everything that has to be given back at its end. */
interface Journey {
  readonly parts: CarryParts;
  readonly engagement: Engagement;
  readonly call: GatewayCall;
  readonly request: ChatRequest | EmbeddingRequest;
  readonly shape: RequestShape;
  readonly plan: Plan;
  readonly spender: Spender;
  readonly hold: Hold;
  readonly reservation: Reservation | null;
  readonly work: Work;
  readonly span: Span;
  /** Wall clock, when its budgets' periods were chosen. */
  readonly at: number;
  readonly dispatchedAt: number;
}

/**
 * Carries one validated call out. Refusals before the first dispatch are thrown as MagicError; everything after it is an answer.
 * @param detached the call runs to its end even if the client leaves (it has an Idempotency-Key).
 */
export async function carryOut(
  parts: CarryParts,
  engagement: Engagement,
  call: GatewayCall,
  request: ChatRequest | EmbeddingRequest,
  detached: boolean,
): Promise<GatewayAnswer> {
  const shape = shapeOf(call);
  const plan = planRoute(engagement, parts.router, call, shape);
  const spender = spenderOf(call.principal, shape.user, call.controller);
  const taken = parts.limits.take(
    callerKey(call.principal),
    engagement.limits,
    shape.promptTokens + (shape.maxTokens ?? 0) * shape.n,
  );
  const hold = taken instanceof Promise ? await taken : taken;
  const at = parts.clock.now();
  let reservation: Reservation | null;
  try {
    const accounts = accountsOf(engagement, call.principal, call.controller, spender, at);
    const reserved = reserve(parts.budgets, accounts, plan.candidates);
    reservation = reserved instanceof Promise ? await reserved : reserved;
  } catch (error) {
    hold.release(0);
    // Of several budgets one may have raised its lease before another refused.
    parts.ledger.touch();
    throw error;
  }
  const dispatchedAt = parts.clock.monotonic();
  const work = new Work(call.signal, dispatchedAt + plan.totalTimeoutMs, detached);
  parts.underWay.add(work);
  const span = spanOf(parts.tracer, call, plan);
  const journey = {
    parts,
    engagement,
    call,
    request,
    shape,
    plan,
    spender,
    hold,
    reservation,
    work,
    span,
    at,
    dispatchedAt,
  };
  const attempted = await attemptRoute(plan, {
    clock: parts.clock,
    random: parts.router.random,
    breakers: parts.router.breakers,
    measurements: parts.router.measurements,
    stream: shape.stream,
    signal: work.signal,
    afford: (candidate, earlier) =>
      reservation === null || afforded(reservation.raise((candidate.worst ?? 0) + chargedFor(earlier))),
    attempt: (candidate) => attempt(journey, candidate),
  });
  return answer(journey, attempted);
}

// For the first candidate that the budgets cover: the attempts pass over those before it.
function reserve(budgets: Budgets, accounts: readonly Account[], candidates: readonly Candidate[]) {
  if (accounts.length === 0) return null;
  const next = (refusal: unknown) => reserveNext(budgets, accounts, candidates.slice(1), refusal);
  try {
    const reserved = budgets.reserve(accounts, candidates[0]?.worst ?? 0);
    return reserved instanceof Promise ? reserved.catch(next) : reserved;
  } catch (refusal) {
    return next(refusal);
  }
}

async function reserveNext(
  budgets: Budgets,
  accounts: readonly Account[],
  candidates: readonly Candidate[],
  refusal: unknown,
): Promise<Reservation> {
  if (!isExhausted(refusal)) throw refusal;
  for (const { worst } of candidates) {
    try {
      return await budgets.reserve(accounts, worst ?? 0);
    } catch (error) {
      if (!isExhausted(error)) throw error;
    }
  }
  // What the first one was refused for tells best what to change.
  throw refusal;
}

function isExhausted(error: unknown): boolean {
  return isMagicError(error) && error.code === "insufficient_quota";
}

function afforded(raised: boolean | Promise<boolean>): boolean | Promise<boolean> {
  return typeof raised === "boolean" ? raised : raised.catch(() => false);
}

function spanOf(tracer: Tracer, call: GatewayCall, plan: Plan): Span {
  const name = `${call.operation} ${plan.asked}`;
  if (call.span) return call.span.child(name);
  const { traceparent } = call.headers;
  return tracer.start(name, {
    requestId: call.requestId,
    traceparent: typeof traceparent === "string" ? traceparent : undefined,
    attributes: { environment: call.principal.environment },
  });
}

async function attempt(journey: Journey, candidate: Candidate): Promise<ChatOutcome> {
  const { call, request, engagement, plan, work, parts } = journey;
  const span = journey.span.child(`attempt ${candidate.name}`);
  const options: AttemptOptions = {
    signal: work.signal,
    timeoutMs: plan.timeoutMs,
    cost: (usage) => {
      const cost = costAt(candidate, usage);
      return cost === null ? null : dollars(cost);
    },
  };
  const same = { raw: call.raw, requestId: call.requestId, user: call.principal.gateway?.user ?? null };
  let outcome: ChatOutcome;
  try {
    // Who has left takes up no stream: one that nobody reads would keep its place for ever.
    if (work.signal.aborted)
      outcome = { kind: "failure", failure: failure("aborted", "The client left."), usage: null };
    else if (call.operation === "embeddings") {
      const embed = candidate.provider.embed;
      if (!embed) throw new Error(`${candidate.name} has no embeddings`);
      outcome = await embed({ ...same, request: request as EmbeddingRequest }, candidate.target, options);
    } else {
      const dropUnsupported = dropsUnsupported(engagement, call);
      const caller = callerKey(call.principal);
      const chat = { ...same, request: request as ChatRequest, dropUnsupported, caller, traceparent: span.traceparent };
      outcome = await candidate.provider.chat(chat, candidate.target, options);
    }
  } catch (error) {
    outcome = { kind: "failure", failure: ourFault(parts.logger, call, error), usage: null };
  }
  if (outcome.kind === "failure" && outcome.failure.kind === "aborted")
    outcome = { ...outcome, failure: work.reason(plan) ?? outcome.failure };
  const failed = outcome.kind === "failure" ? outcome.failure : null;
  span.end(failed ? "error" : "ok", () => ({
    [attribute.provider]: providerNames[candidate.target.kind],
    [attribute.requestModel]: candidate.target.model,
    ...(failed && { [attribute.errorType]: failed.kind }),
    ...(failed?.upstreamStatus != null && { [attribute.status]: failed.upstreamStatus }),
  }));
  return outcome;
}

function answer(journey: Journey, attempted: Attempted): GatewayAnswer {
  const { outcome, candidate } = attempted;
  const headers = headersOf(journey.plan, journey.hold, attempted);
  if (outcome.kind === "stream") return streamed(journey, attempted, outcome, headers);
  if (outcome.kind === "failure") {
    const { failure: failed, usage } = outcome;
    const result = failed.kind === "aborted" ? "aborted" : "failed";
    settle(journey, attempted, { result, status: failed.status, failure: failed, usage: usage ?? noUsage });
    const hint = failed.kind === "quota" || failed.retryAfterMs === null ? null : soonest(attempted.attempts);
    const wait = hint === null ? null : Math.min(LONGEST_WAIT_S, Math.ceil(hint / 1000));
    if (outcome.notes) noteIn(headers, outcome.notes);
    headers["content-type"] = "application/json";
    if (wait !== null) headers["retry-after"] = String(Math.max(1, wait));
    // OpenAI's clients would try again by themselves, to no use.
    if (failed.kind === "quota") headers["x-should-retry"] = "false";
    const undone = attempted.attempts.every(({ failure: one, charged }) => one && isUndone(one) && !charged);
    const cut = () => journey.work.stopped;
    return { status: failed.status, headers, undone, cut, body: Buffer.from(failureBody(failed)) };
  }
  settle(journey, attempted, { result: "completed", status: 200, failure: null, usage: outcome.usage });
  noteIn(headers, outcome.notes);
  priceIn(headers, costAt(candidate, outcome.usage));
  headers["content-type"] = "application/json";
  return { status: 200, headers, body: outcome.body };
}

// Milliseconds until the first of the candidates wants to be asked again, as each said last; who has no credit left is not waited for.
function soonest(attempts: readonly AttemptRecord[]): number | null {
  const last = new Map(attempts.map(({ candidate, failure: failed }) => [candidate.name, failed]));
  const hints = [...last.values()].flatMap((failed) => (failed?.kind === "quota" ? [] : (failed?.retryAfterMs ?? [])));
  return hints.length > 0 ? Math.min(...hints) : null;
}

function streamed(
  journey: Journey,
  attempted: Attempted,
  outcome: StreamOutcome,
  headers: Record<string, string>,
): GatewayAnswer {
  const firstTokenAt = journey.parts.clock.monotonic();
  noteIn(headers, outcome.notes);
  headers["content-type"] = "text/event-stream; charset=utf-8";
  headers["cache-control"] = "no-cache";
  const { work, plan } = journey;
  let cut = false;
  const pipe = async (sink: FrameSink): Promise<void> => {
    let end = await outcome.pipe(sink);
    const reason = end.result === "aborted" ? work.reason(plan) : null;
    if (reason) {
      cut = work.stopped;
      end = { ...end, result: "failed", failure: reason };
      sink.write(errorEvent(failureBody(reason)));
    }
    const { breakers, measurements } = journey.parts.router;
    settleBreaker(breakers, attempted.candidate.name, breakerFailure(end));
    if (end.result === "failed")
      measurements.of(attempted.candidate.name, true).failed(journey.parts.clock.monotonic());
    settle(journey, attempted, {
      result: end.result,
      status: end.result === "aborted" ? 499 : (end.failure?.status ?? 200),
      failure: end.failure,
      usage: end.usage,
      firstTokenAt,
    });
  };
  return { status: 200, headers, cut: () => cut, stream: { pipe } };
}

function breakerFailure(end: StreamEnd): Failure | null {
  return end.result === "completed" ? null : (end.failure ?? failure("aborted", ""));
}

interface Settlement {
  readonly result: "completed" | "failed" | "aborted";
  readonly status: number;
  readonly failure: Failure | null;
  readonly usage: TokenUsage;
  readonly firstTokenAt?: number;
}

function settle(journey: Journey, { candidate, attempts, outcome }: Attempted, end: Settlement): void {
  const { parts, call, plan, spender, hold, reservation, work, span, at, dispatchedAt } = journey;
  work.end();
  parts.underWay.delete(work);
  const { usage } = end;
  hold.release(promptTokens(usage) + completionTokens(usage));
  const earlier = outcome.kind === "failure" ? attempts.slice(0, -1) : attempts;
  reservation?.settle((costAt(candidate, usage) ?? 0) + chargedFor(earlier));
  parts.observer.finished({
    call,
    plan,
    spender,
    candidate,
    attempts,
    outcome: end.result,
    status: end.status,
    failure: end.failure,
    usage,
    stream: outcome.kind === "stream",
    at,
    dispatchedAt,
    firstTokenAt: end.firstTokenAt ?? null,
    span,
  });
}

// What providers charged for attempts that failed.
function chargedFor(attempts: readonly AttemptRecord[]): number {
  let cost = 0;
  for (const { candidate, charged } of attempts) if (charged) cost += costAt(candidate, charged) ?? 0;
  return cost;
}

// A fault of our own: its message may quote what was parsed, so only its name and place are logged.
function ourFault(logger: Logger, call: GatewayCall, error: unknown): Failure {
  if (error instanceof MagicError) return failure("protocol", error.message);
  const stack = error instanceof Error ? (error.stack?.split("\n").filter((line) => /^ {4}at /.test(line)) ?? []) : [];
  const name = error instanceof Error ? error.name : typeof error;
  logger.error("gateway.fault", { request_id: call.requestId, error: { name, stack: stack.slice(0, 10).join("\n") } });
  return failure("protocol", "Something unexpected happened in the gateway; the daemon's log has it.");
}
