// The gateway's pipeline under test: real storage, real HTTP to an upstream that the test plays.
import { randomBytes } from "node:crypto";
import { onTestFinished } from "vitest";
import type { GatewayIdentity, Principal } from "#contract/identity.ts";
import type { GatewayConfig } from "#contract/project-gateway.ts";
import type { GatewayAnswer, GatewayCall } from "#daemon/gateway/call.ts";
import { createPipeline, type GatewayPipeline, type PipelineParts } from "#daemon/gateway/pipeline.ts";
import { createProviders } from "#daemon/gateway/providers/registry.ts";
import { gatewayStores } from "#daemon/gateway/stores.ts";
import { createSealer } from "#daemon/secrets/sealer.ts";
import type { Storage } from "#daemon/storage/storage.ts";
import { createLogger } from "#daemon/telemetry/log.ts";
import { createMetrics, type Metrics } from "#daemon/telemetry/metrics.ts";
import { createTracer } from "#daemon/telemetry/trace.ts";
import { systemClock } from "#shared/clock.ts";
import { temporaryStorage } from "#test/temporary.ts";
import { agent } from "./upstream.ts";

export interface TestGateway {
  readonly gateway: GatewayPipeline;
  readonly storage: Storage;
  readonly metrics: Metrics;
  /** Every log line so far. */
  readonly lines: readonly string[];
  chat(body: object, more?: Partial<GatewayCall>): Promise<Answered>;
}

export interface Answered {
  readonly status: number;
  readonly headers: Record<string, string>;
  /** All bytes, streams to their end. */
  readonly text: string;
  readonly json: Record<string, unknown>;
}

export const masterKey = randomBytes(32);

export async function testGateway(
  config: GatewayConfig,
  more: Partial<PipelineParts> & { readonly storage?: Storage } = {},
): Promise<TestGateway> {
  const storage = more.storage ?? (await temporaryStorage());
  const clock = more.clock ?? systemClock;
  const lines: string[] = [];
  const logger = createLogger({ sinks: [({ text }) => void lines.push(text)] });
  const metrics = createMetrics();
  const providers = createProviders(agent);
  const gateway = await createPipeline({
    config,
    provider: (kind) => {
      const found = providers[kind];
      if (!found) throw new Error(`no provider ${kind}`);
      return found;
    },
    stores: gatewayStores(storage, clock),
    sealer: createSealer(masterKey, "idempotency"),
    logger,
    metrics,
    tracer: createTracer(),
    clock,
    ...more,
  });
  onTestFinished(() => gateway.close());
  const chat = async (body: object, call: Partial<GatewayCall> = {}) =>
    collected(await gateway.complete(callOf({ messages: [{ role: "user", content: "hi" }], ...body }, call)));
  return { gateway, storage, metrics, lines, chat };
}

export function callOf(body: object, more: Partial<GatewayCall> = {}): GatewayCall {
  return {
    operation: "chat",
    principal: principal(),
    requestId: `req_${randomBytes(8).toString("hex")}`,
    body: body as Record<string, unknown>,
    raw: Buffer.from(JSON.stringify(body)),
    headers: {},
    idempotencyKey: null,
    controller: null,
    signal: new AbortController().signal,
    startedAt: performance.now(),
    ...more,
  };
}

export function principal(more: Partial<Principal> = {}, gateway: Partial<GatewayIdentity> = {}): Principal {
  const identity = { user: null, team: null, project: null, models: null, budget_usd: null, ...gateway };
  return {
    type: "token",
    id: "gt_test",
    environment: "live",
    scopes: new Set(["gateway:use"]),
    tier: "enterprise",
    gateway: identity,
    ...more,
  };
}

export async function collected(answer: GatewayAnswer): Promise<Answered> {
  const { status, headers } = answer;
  let text = "";
  if (answer.stream) {
    const parts: Buffer[] = [];
    await answer.stream.pipe({
      write: (frame) => parts.push(typeof frame === "string" ? Buffer.from(frame) : Buffer.from(frame)) > 0,
      drained: async () => {},
    });
    text = Buffer.concat(parts).toString("utf8");
    return { status, headers, text, json: {} };
  }
  text = Buffer.from(answer.body).toString("utf8");
  return { status, headers, text, json: JSON.parse(text) as Record<string, unknown> };
}

/** A completion as OpenAI gives it. */
export function completion(prompt = 10, answered = 5, details: object = {}): string {
  return JSON.stringify({
    id: "chatcmpl-1",
    object: "chat.completion",
    created: 1,
    model: "m",
    choices: [
      {
        index: 0,
        message: { role: "assistant", content: "hello", refusal: null },
        logprobs: null,
        finish_reason: "stop",
      },
    ],
    usage: { prompt_tokens: prompt, completion_tokens: answered, total_tokens: prompt + answered, ...details },
  });
}

/** The same as a stream. */
export function stream(prompt = 10, answered = 5, details: object = {}): string {
  const chunk = (more: object) =>
    `data: ${JSON.stringify({ id: "chatcmpl-1", object: "chat.completion.chunk", created: 1, model: "m", ...more })}\n\n`;
  return (
    chunk({ choices: [{ index: 0, delta: { role: "assistant", content: "hel" }, finish_reason: null }] }) +
    chunk({ choices: [{ index: 0, delta: { content: "lo" }, finish_reason: null }] }) +
    chunk({ choices: [{ index: 0, delta: {}, finish_reason: "stop" }] }) +
    chunk({
      choices: [],
      usage: { prompt_tokens: prompt, completion_tokens: answered, total_tokens: prompt + answered, ...details },
    }) +
    "data: [DONE]\n\n"
  );
}
