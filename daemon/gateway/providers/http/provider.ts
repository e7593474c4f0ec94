// A Wire as a provider that is reached over HTTP.
import type { Dispatcher } from "undici";
import { strictProblem } from "#daemon/gateway/format/strict.ts";
import type { Provider } from "../adapter.ts";
import type { Wire } from "../wire.ts";
import { chatOver } from "./chat.ts";
import { embedOver } from "./embedding.ts";

/** `images`: the way to what callers name, beside the one to the provider. */
export function httpProvider(wire: Wire, dispatcher: Dispatcher, images = dispatcher): Provider {
  // A request that is not even valid is refused as such, when its turn comes.
  const unsupported: Provider["unsupported"] = (request, model) =>
    wire.passesThrough || strictProblem(request) ? [] : wire.unsupported(request, model);
  const { kind, longestAnswer, prepareEmbedding } = wire;
  const base = { kind, unsupported, chat: chatOver(wire, dispatcher, images), ...(longestAnswer && { longestAnswer }) };
  return prepareEmbedding ? { ...base, embed: embedOver(wire, prepareEmbedding, dispatcher) } : base;
}
