// A Wire as a provider that is reached over HTTP.
import type { Dispatcher } from "undici";
import { strictProblem } from "#daemon/gateway/format/strict.ts";
import type { Provider } from "../adapter.ts";
import type { EmbeddingWire, Wire } from "../wire.ts";
import { attempt } from "./attempt.ts";
import { chatOver, refusalOver } from "./chat.ts";
import { EmbeddingReading } from "./reading.ts";

/** `images`: the way to what callers name, beside the one to the provider. */
export function httpProvider(wire: Wire, dispatcher: Dispatcher, images = dispatcher): Provider {
  // A request that is not even valid is refused as such, when its turn comes.
  const unsupported: Provider["unsupported"] = (request, model) =>
    wire.passesThrough || strictProblem(request) ? [] : wire.unsupported(request, model);
  const { kind, longestAnswer, embeddings } = wire;
  const base = {
    kind,
    unsupported,
    chat: chatOver(wire, dispatcher, images),
    ...(longestAnswer && { longestAnswer }),
    ...(!wire.passesThrough && { refusal: refusalOver(wire) }),
  };
  return embeddings ? { ...base, embed: embedOver(wire, embeddings, dispatcher) } : base;
}

function embedOver(wire: Wire, embeddings: EmbeddingWire, dispatcher: Dispatcher): NonNullable<Provider["embed"]> {
  return (call, target, options) =>
    attempt(
      dispatcher,
      embeddings.prepare(call, target),
      new EmbeddingReading(wire, embeddings, call, target, options),
      options,
    );
}
