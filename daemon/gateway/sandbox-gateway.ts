// A gateway over the sandbox provider alone: what answers where no provider is configured and no pipeline is needed (tests of single
// parts, the first start). No limits, no ledger.
import type { Principal } from "#contract/identity.ts";
import type { Gateway, GatewayAnswer, GatewayCall, ModelEntry } from "./call.ts";
import { chatRequest, embeddingRequest } from "./format/validate.ts";
import type { ChatOutcome, Target } from "./providers/adapter.ts";
import { failureBody } from "./providers/failure.ts";
import { sandboxModels, sandboxProvider } from "./providers/sandbox/provider.ts";

export function createSandboxGateway(seed = 1): Gateway {
  return {
    complete: (call) => complete(call, seed),
    models: async (_principal: Principal) => sandboxModels.map(entry),
  };
}

async function complete(call: GatewayCall, seed: number): Promise<GatewayAnswer> {
  const request = call.operation === "chat" ? chatRequest(call.body) : embeddingRequest(call.body);
  const name = request.model && request.model !== "auto" ? request.model : "sandbox/echo";
  const model = name.startsWith("sandbox/") ? name.slice("sandbox/".length) : name;
  const target: Target = { provider: "sandbox", kind: "sandbox", model, baseUrl: null, credentials: {}, seed };
  const options = { signal: call.signal, timeoutMs: 60_000, cost: () => 0 };
  const same = { raw: call.raw, requestId: call.requestId, user: null };
  const outcome =
    call.operation === "chat"
      ? await sandboxProvider.chat(
          { ...same, request: chatRequest(call.body), dropUnsupported: false },
          target,
          options,
        )
      : await sandboxProvider.embed?.({ ...same, request: embeddingRequest(call.body) }, target, options);
  return answer(outcome as ChatOutcome, target);
}

function answer(outcome: ChatOutcome, target: Target): GatewayAnswer {
  const json = {
    "content-type": "application/json",
    "x-magic-provider": target.provider,
    "x-magic-model": target.model,
  };
  if (outcome.kind === "failure") {
    return { status: outcome.failure.status, headers: json, body: Buffer.from(failureBody(outcome.failure)) };
  }
  if (outcome.kind === "completion") return { status: 200, headers: json, body: outcome.body };
  const headers = { ...json, "content-type": "text/event-stream; charset=utf-8", "cache-control": "no-cache" };
  return { status: 200, headers, stream: { pipe: async (sink) => void (await outcome.pipe(sink)) } };
}

function entry(model: string): ModelEntry {
  const price = { input: 0, output: 0, cache_read: 0 };
  const id = `sandbox/${model}`;
  return { id, kind: "model", provider: "sandbox", context_length: null, price, allowed: true, reason: null };
}
