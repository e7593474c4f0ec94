// llm:chat: a completion through the gateway, in the controller's name.
import { MagicError } from "#contract/errors.ts";
import { fields } from "#contract/json-object.ts";
import { PICO_PER_DOLLAR } from "#shared/money.ts";
import type { Operation, Session } from "./session.ts";

export const chat: Operation = async (session, args, _body, signal, span) => {
  session.grants.need({ capability: "llm:chat" });
  const { ports, grants, caller } = session;
  if (!ports.llm) throw new MagicError("provider_not_configured", "this daemon has no gateway");
  session.usage.llm_calls++;
  // A pattern names no model.
  const model = args["model"] ?? grants.models?.find((one) => !one.includes("*"));
  const options = fields(args["stream_options"]);
  const shown = args["stream"] !== true || options["include_usage"] === true;
  const body = {
    ...args,
    ...(model === undefined ? {} : { model }),
    // What a stream used is wanted here whether the handler wants it or not.
    ...(shown ? {} : { stream_options: { ...options, include_usage: true } }),
  };
  const answer = await ports.llm.chat({
    ...caller,
    span,
    signal: AbortSignal.any([signal, caller.signal]),
    body,
    models: grants.models,
    usdPerDay: grants.usdPerDay,
  });
  if ("chunks" in answer) return { stream: counted(session, answer.chunks, shown) };
  if (answer.status >= 400) throw failure(answer.status, answer.body);
  count(session, answer.body);
  return { value: answer.body };
};

/** Each chunk as one JSON document; that of the usage only where it is to be shown. */
async function* counted(
  session: Session,
  chunks: AsyncIterable<Record<string, unknown>>,
  shown: boolean,
): AsyncGenerator<Uint8Array> {
  for await (const chunk of chunks) {
    if (chunk["error"]) throw failure(502, chunk);
    count(session, chunk);
    if (!shown && chunk["usage"]) continue;
    yield Buffer.from(JSON.stringify(chunk));
  }
}

function count(session: Session, document: unknown): void {
  const usage = fields(fields(document)["usage"]);
  const number = (key: string): number => (typeof usage[key] === "number" ? usage[key] : 0);
  session.usage.prompt_tokens += number("prompt_tokens");
  session.usage.completion_tokens += number("completion_tokens");
  // Every amount is a whole number of pico-dollars: sums of doubles would drift from that.
  session.usage.cost_usd =
    Math.round((session.usage.cost_usd + number("cost_usd")) * PICO_PER_DOLLAR) / PICO_PER_DOLLAR;
}

/** OpenAI's error document as an error of the catalogue. */
function failure(status: number, document: unknown): MagicError {
  const error = fields(fields(document)["error"]);
  const detail = typeof error["message"] === "string" ? error["message"] : `the gateway answered ${status}`;
  const code = error["code"];
  const known = [
    "capability_denied",
    "insufficient_quota",
    "model_not_allowed",
    "model_not_found",
    "provider_not_configured",
  ] as const;
  const match = known.find((one) => one === code);
  const byStatus = status === 429 ? "rate_limited" : status < 500 ? "invalid_request" : "upstream_error";
  return new MagicError(match ?? byStatus, detail, { extra: { status } });
}
