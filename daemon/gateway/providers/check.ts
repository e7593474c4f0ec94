// A request before it is translated: refused by the name of what is wrong or lacking, or with what the provider lacks left out.
import type { ChatRequest } from "#daemon/gateway/format/request.ts";
import { strictProblem } from "#daemon/gateway/format/strict.ts";
import type { ChatCall, FailureOutcome, Target, Unsupported } from "./adapter.ts";
import { failure } from "./failure.ts";

export interface Checked {
  readonly call: ChatCall;
  /** Parameters that were left out. */
  readonly dropped: readonly string[];
}

/** The call as the provider can be given it, or the refusal. `unsupported` is asked only for requests that are valid. */
export function checkCall(
  call: ChatCall,
  target: Target,
  unsupported: (request: ChatRequest, model: string) => readonly Unsupported[],
): Checked | FailureOutcome {
  const problem = strictProblem(call.request);
  if (problem) return refused(problem.detail, problem.param);
  const lacking = unsupported(call.request, target.model);
  const drops = call.dropUnsupported || call.request.drop_unsupported === true;
  const blocked = lacking.find((one) => !(drops && one.droppable) && !one.leftToVendor);
  if (blocked) {
    const message = `${target.provider} (${target.model}) does not support '${blocked.param}': ${blocked.reason}.${
      blocked.droppable ? " Leave it out, or set drop_unsupported." : ""
    }`;
    return refused(message, blocked.param, "unsupported_parameter");
  }
  if (!drops || lacking.length === 0) return { call, dropped: [] };
  const left = new Map(lacking.map(({ param, instead }) => [param, instead]));
  if (left.has("logprobs")) left.set("top_logprobs", undefined);
  const members = Object.entries(call.request).map(([param, value]) => [
    param,
    left.has(param) ? left.get(param) : value,
  ]);
  const request = Object.fromEntries(members.filter(([, value]) => value !== undefined)) as ChatRequest;
  const dropped = Object.keys(call.request).filter((param) => left.has(param));
  return { call: { ...call, request, raw: null }, dropped };
}

function refused(message: string, param: string, code: string | null = null): FailureOutcome {
  return { kind: "failure", failure: failure("invalid", message, { param, code }), usage: null };
}
