// One attempt at a chat: its request translated and sent.
import type { Dispatcher } from "undici";
import { isMagicError } from "#contract/errors.ts";
import { failureOf } from "#daemon/gateway/upstream/exchange.ts";
import { imageFetcher, imageUnseen } from "#daemon/gateway/upstream/image.ts";
import type { FailureOutcome, Provider } from "../adapter.ts";
import { type Checked, checkCall } from "../check.ts";
import { UpstreamError } from "../failure.ts";
import { hintsLeftOut } from "../support.ts";
import type { Prepared, Wire } from "../wire.ts";
import { attempt, failed } from "./attempt.ts";
import { ChatReading } from "./reading.ts";

const none: readonly string[] = [];

/** No promise of its own where the wire needs none: every call comes through here. */
export function chatOver(wire: Wire, dispatcher: Dispatcher, images: Dispatcher): Provider["chat"] {
  return (call, target, options) => {
    const checked = wire.passesThrough ? { call, dropped: none } : checkCall(call, target, wire.unsupported);
    if ("kind" in checked) return Promise.resolve(checked);
    const send = (translated: Prepared) => {
      const prepared = withHints(wire, checked, translated);
      return attempt(dispatcher, prepared, new ChatReading(wire, checked.call, target, prepared, options), options);
    };
    let preparing: Prepared | Promise<Prepared>;
    try {
      preparing = wire.prepare(checked.call, target, { fetchImage: imageFetcher(images, options) });
    } catch (error) {
      return Promise.resolve(unprepared(error));
    }
    return preparing instanceof Promise ? preparing.then(send, unprepared) : send(preparing);
  };
}

/** What the checks and the translation refuse. */
export function refusalOver(wire: Wire): NonNullable<Provider["refusal"]> {
  return async (call, target) => {
    const checked = checkCall(call, target, wire.unsupported);
    if ("kind" in checked) return checked.failure;
    try {
      await wire.prepare(checked.call, target, { fetchImage: imageUnseen });
      return null;
    } catch (error) {
      return unprepared(error).failure;
    }
  };
}

// Refusals are outcomes; a fault of our own is thrown on.
function unprepared(error: unknown): FailureOutcome {
  if (error instanceof UpstreamError || isMagicError(error)) return failed(failureOf(error));
  throw error;
}

// What was left out of the request is noted.
function withHints(wire: Wire, { call, dropped }: Checked, prepared: Prepared): Prepared {
  const hints = hintsLeftOut(wire.kind, call.request);
  if (dropped.length === 0 && hints.length === 0) return prepared;
  return { ...prepared, notes: { ...prepared.notes, dropped: [...dropped, ...hints, ...prepared.notes.dropped] } };
}
