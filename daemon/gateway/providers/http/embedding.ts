// One attempt at embeddings, on a wire that is OpenAI's.
import type { IncomingHttpHeaders } from "node:http";
import type { Dispatcher } from "undici";
import { noUsage, type TokenUsage, usageFromWire } from "#daemon/gateway/format/usage.ts";
import { estimateEmbeddingTokens } from "#daemon/gateway/pricing/estimate.ts";
import { type ExchangeReader, exchange } from "#daemon/gateway/upstream/exchange.ts";
import type { Provider } from "../adapter.ts";
import { readAnswer, spliceCost } from "../cost.ts";
import type { Failure } from "../failure.ts";
import type { Wire } from "../wire.ts";
import { joined, MAX_ERROR } from "./body.ts";
import { withHeaders } from "./headers.ts";
import { Toll } from "./toll.ts";

/** Decoded bytes of an answer. */
const MAX_EMBEDDINGS = 256 * 1024 * 1024;

/** `prepare` is the wire's own. */
export function embedOver(
  wire: Wire,
  prepare: NonNullable<Wire["prepareEmbedding"]>,
  dispatcher: Dispatcher,
): NonNullable<Provider["embed"]> {
  return (call, target, options) =>
    new Promise((resolve) => {
      let status = 0;
      let headers: IncomingHttpHeaders = {};
      const parts: Buffer[] = [];
      const toll = new Toll();
      const give = (problem: Failure, usage: TokenUsage | null = null) =>
        resolve({ kind: "failure", failure: problem, usage });
      const reader: ExchangeReader = {
        sent() {
          toll.sent = true;
        },
        head(code, fields) {
          status = code;
          headers = fields;
          toll.answering = code < 300;
        },
        data: (chunk) => void parts.push(chunk),
        end() {
          toll.whole = true;
          const body = joined(parts);
          const refused = (code: number) =>
            give(wire.failure(code, headers, body.toString("utf8", 0, MAX_ERROR), target));
          if (status >= 300) return refused(status);
          const parsed = readAnswer(body);
          const { answer } = parsed;
          if (!Array.isArray(answer["data"])) return refused(502);
          const counted = usageFromWire({ completion_tokens: 0, ...(answer["usage"] as object | null | undefined) });
          const usage = counted ?? { ...noUsage, input: estimateEmbeddingTokens(call.request.input), estimated: true };
          const cost = options.cost(usage);
          const priced = counted ? (spliceCost(parsed, cost) ?? body) : withUsage(answer, usage.input, cost);
          resolve({ kind: "completion", body: priced, usage, notes: { dropped: [] } });
        },
        fail: (problem) =>
          give(
            problem,
            toll.of(problem, () => estimateEmbeddingTokens(call.request.input)),
          ),
      };
      const limits = { signal: options.signal, timeoutMs: options.timeoutMs, maxBytes: MAX_EMBEDDINGS };
      exchange(dispatcher, withHeaders(prepare(call, target), target), reader, limits);
    });
}

// Embeddings of a server that counts nothing: the specification wants a usage, and whoever pays wants to know.
function withUsage(answer: object, tokens: number, cost: number | null | undefined): Buffer {
  const usage = { prompt_tokens: tokens, total_tokens: tokens, ...(cost === undefined ? {} : { cost_usd: cost }) };
  return Buffer.from(JSON.stringify({ ...answer, usage }));
}
