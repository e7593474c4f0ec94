// The path of one invocation, in the order in which it happens: find, check, admit, run, check, account.
import { isMagicError, MagicError } from "#contract/errors.ts";
import type { Logger } from "#daemon/telemetry/log.ts";
import type { Span, Tracer } from "#daemon/telemetry/trace.ts";
import { newId } from "#shared/ids.ts";
import { cleanWithin } from "#shared/redact.ts";
import type { Broker, OpenedSession } from "./broker/broker.ts";
import { striker } from "./broker/redaction.ts";
import { inSource, levelOf } from "./log-line.ts";
import type { RuntimeMetrics } from "./metrics.ts";
import type { Caller } from "./ports.ts";
import type { Invocation, InvocationResult } from "./runtime.ts";
import type { Instance, InstanceResult } from "./serving/instance.ts";
import type { Holder } from "./serving/nested.ts";

/** controller:invoke inside controller:invoke, at most. */
const MAX_DEPTH = 8;

export interface InvokeServices {
  readonly log: Logger;
  readonly tracer: Tracer;
  readonly metrics: RuntimeMetrics;
  find(name: string, version: string | undefined, requestId: string): Instance | Promise<Instance>;
  brokerOf(instance: Instance): Broker;
  /** The level in force, for every log line. */
  isolation(): string;
}

/** One invocation under way. */
interface Call {
  readonly services: InvokeServices;
  readonly instance: Instance;
  readonly invocation: Invocation;
  readonly span: Span;
}

export async function invokeController(
  services: InvokeServices,
  name: string,
  invocation: Invocation,
): Promise<InvocationResult> {
  const depth = invocation.depth ?? 0;
  if (depth > MAX_DEPTH)
    throw new MagicError("limit_exceeded", `controllers invoke each other more than ${MAX_DEPTH} deep`);
  const began = performance.now();
  const found = services.find(name, invocation.version, invocation.requestId);
  const instance = found instanceof Promise ? await found : found;
  const { version } = instance.artifact.contract;
  const holder: Holder = { place: instance.admission, within: invocation.within };
  const call: Call = { services, instance, invocation, span: startSpan(services.tracer, invocation, name, version) };
  let session: OpenedSession | null = null;
  let result: InstanceResult | null = null;
  let failure: unknown;
  // What a handler learned from secrets:read is struck out of everything that is written down; so is what the calls around it know.
  const cleaner = (): ((text: string) => string) => striker(session?.secrets ?? invocation.secrets ?? []);
  try {
    result = await instance.run({
      input: invocation.input,
      requestId: invocation.requestId,
      environment: invocation.principal.environment,
      signal: invocation.signal,
      deadline: invocation.deadline,
      within: invocation.within,
      broker: (ended, deadline) => {
        session = openBroker(call, holder, ended, deadline);
        return session;
      },
      onLog: (said) => {
        const line = inSource(said, instance.stacks);
        const clean = cleaner();
        services.log[levelOf(line.level)](clean(line.message), {
          request_id: invocation.requestId,
          controller: name,
          version,
          environment: invocation.principal.environment,
          ...(line.fields === undefined ? {} : { fields: cleanWithin(line.fields, clean) }),
        });
      },
      redact: (text) => cleaner()(text),
    });
    return {
      output: result.output,
      request_id: invocation.requestId,
      version,
      duration_ms: round(performance.now() - began),
      usage: usageOf(result, session),
    };
  } catch (error) {
    failure = error;
    throw error;
  } finally {
    account(call, performance.now() - began, result, failure);
  }
}

function openBroker(call: Call, holder: Holder, ended: AbortSignal, deadline: number): OpenedSession {
  const { services, instance, invocation, span } = call;
  const { name, version } = instance.artifact.contract;
  const caller: Caller = {
    controller: name,
    version,
    requestId: invocation.requestId,
    invocationId: newId("inv"),
    principal: invocation.principal,
    signal: ended,
    span,
    depth: invocation.depth ?? 0,
    secrets: invocation.secrets,
  };
  const opened: OpenedSession = services.brokerOf(instance).open(caller, async (other, input) => {
    const nested = await invokeController(services, other, {
      input,
      requestId: invocation.requestId,
      principal: invocation.principal,
      signal: caller.signal,
      deadline,
      depth: caller.depth + 1,
      within: holder,
      secrets: opened.secrets,
      span,
    });
    return nested.output;
  });
  return opened;
}

function startSpan(tracer: Tracer, { requestId, span }: Invocation, controller: string, version: string): Span {
  return tracer.start("controller", { requestId, parent: span, attributes: { controller, version } });
}

function usageOf(result: InstanceResult, session: OpenedSession | null): Record<string, unknown> {
  const usage: Record<string, unknown> = {};
  if (result.cpuMs !== null) usage["cpu_ms"] = round(result.cpuMs);
  if (session) for (const [key, value] of Object.entries(session.usage)) if (value !== 0) usage[key] = value;
  return usage;
}

function account(call: Call, totalMs: number, result: InstanceResult | null, failure: unknown): void {
  const { services, instance, invocation, span } = call;
  const { name, version } = instance.artifact.contract;
  const code = failure === undefined ? "ok" : isMagicError(failure) ? failure.code : "internal";
  span.end(failure === undefined ? "ok" : "error", failure === undefined ? {} : { code });
  services.metrics.invocation(name, code, totalMs, result);
  const line = {
    request_id: invocation.requestId,
    controller: name,
    version,
    identity: invocation.principal.id ?? invocation.principal.type,
    environment: invocation.principal.environment,
    isolation: services.isolation(),
    outcome: code,
    duration_ms: round(totalMs),
    // What is undefined is left out of the line.
    queue_ms: result ? round(result.queueMs) : undefined,
    cold_ms: result ? round(result.coldMs) : undefined,
    run_ms: result ? round(result.runMs) : undefined,
    cpu_ms: result && result.cpuMs !== null ? round(result.cpuMs) : undefined,
    error: failure === undefined ? undefined : describe(failure),
  };
  services.log[failure === undefined ? "info" : "warn"]("controller.invoked", line);
}

/** The message, and the handler's own stack in the user's lines. */
function describe(failure: unknown): Record<string, unknown> {
  const error = failure as Error;
  const cause = error.cause as Error | undefined;
  return { message: error.message, ...(cause?.stack && { stack: cause.stack }) };
}

function round(ms: number): number {
  return Math.round(ms * 1000) / 1000;
}
