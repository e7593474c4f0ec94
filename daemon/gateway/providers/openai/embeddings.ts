// OpenAI's embeddings: the client's bytes go on with the model's name exchanged, the vendor's come back with `cost_usd` put into the usage;
// written anew only where an imitation left out what the specification requires.
import { fields } from "#contract/json-object.ts";
import { forwardBody } from "#daemon/gateway/format/forward.ts";
import { isCount, noUsage, promptTokens, type TokenUsage, usageFromWire } from "#daemon/gateway/format/usage.ts";
import { estimateEmbeddingTokens } from "#daemon/gateway/pricing/estimate.ts";
import type { AttemptOptions, EmbeddingCall, Target } from "../adapter.ts";
import { readAnswer, spliceCost } from "../cost.ts";
import { failure, UpstreamError } from "../failure.ts";
import { secretsOf } from "../secrets.ts";
import type { Additions } from "./additions.ts";
import { streamFailure } from "./errors.ts";
import { serviceOf } from "./services.ts";

export function embeddingBody(call: EmbeddingCall, target: Target, given: Additions): Buffer | string {
  const { request, user, raw } = call;
  const changes: Record<string, unknown> = {};
  if (request.model !== target.model) changes["model"] = target.model;
  if (serviceOf(target).mistral) changes["user"] = undefined;
  else if (user !== null && request.user !== user) changes["user"] = given.user ? user : undefined;
  return forwardBody(raw, request, changes);
}

/** Throws UpstreamError for what are no embeddings. */
export function readEmbeddings(
  body: Buffer,
  { request }: EmbeddingCall,
  target: Target,
  costOf: AttemptOptions["cost"],
): { readonly body: Buffer; readonly usage: TokenUsage } {
  const parsed = readAnswer(body);
  const { error, data, usage: shown } = parsed.answer;
  if (error) throw new UpstreamError(streamFailure(error, secretsOf(target)));
  if (!Array.isArray(data))
    throw new UpstreamError(failure("protocol", "The provider's answer has no embeddings.", { upstreamStatus: 200 }));
  const counted = usageFromWire({ completion_tokens: 0, ...fields(shown) });
  const usage = counted ?? { ...noUsage, input: estimateEmbeddingTokens(request.input), estimated: true };
  const cost = costOf(usage);
  const { prompt_tokens, total_tokens } = fields(shown);
  // Servers that count nothing, or the total alone (Voyage): the specification wants both, and whoever pays wants to know.
  if (counted && isCount(prompt_tokens) && isCount(total_tokens))
    return { body: spliceCost(parsed, cost) ?? body, usage };
  const tokens = promptTokens(usage);
  const filled = { prompt_tokens: tokens, total_tokens: tokens, ...(cost === undefined ? {} : { cost_usd: cost }) };
  return { body: Buffer.from(JSON.stringify({ ...parsed.answer, usage: filled })), usage };
}
