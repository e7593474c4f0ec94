// Puts `cost_usd` into a whole answer's usage without serialising the answer again: the vendor's bytes stay as they are.
import { scanBody } from "#daemon/gateway/format/scan.ts";
import type { TokenUsage } from "#daemon/gateway/format/usage.ts";
import { noUsage } from "#daemon/gateway/format/usage.ts";
import { failure, UpstreamError } from "./failure.ts";

type Answer = Record<string, unknown>;

/** Throws UpstreamError (`protocol`) for invalid JSON and for an error behind a 2xx status. */
export function withCost(
  body: Buffer,
  usageOf: (answer: Answer) => TokenUsage | null,
  cost: (usage: TokenUsage) => number | null | undefined,
): { body: Buffer; usage: TokenUsage } {
  const answer = parseAnswer(body);
  const usage = usageOf(answer) ?? noUsage;
  const price = cost(usage);
  if (price === undefined) return { body, usage };
  const member = scanBody(body, 1000).members.get("usage");
  if (!member || body[member.start] !== 0x7b) return { body, usage };
  const empty = /^\{\s*\}$/.test(body.toString("latin1", member.start, Math.min(member.end, member.start + 64)));
  const added = Buffer.from(`${empty ? "" : ","}"cost_usd":${JSON.stringify(price)}`);
  return { body: Buffer.concat([body.subarray(0, member.end - 1), added, body.subarray(member.end - 1)]), usage };
}

/** A JSON object that is no error. */
export function parseAnswer(body: Buffer): Answer {
  let answer: unknown;
  try {
    answer = JSON.parse(body.toString("utf8"));
  } catch {
    throw new UpstreamError(failure("protocol", "The provider's answer is not valid JSON.", { upstreamStatus: 200 }));
  }
  if (typeof answer !== "object" || answer === null || Array.isArray(answer)) {
    throw new UpstreamError(failure("protocol", "The provider's answer is no JSON object.", { upstreamStatus: 200 }));
  }
  return answer as Answer;
}
