// One attempt at a chat: its request translated, sent, and sent once more where the wire knows a way around a refusal.
import type { Dispatcher } from "undici";
import { isMagicError } from "#contract/errors.ts";
import { type ExchangeOptions, exchange, failureOf, type UpstreamRequest } from "#daemon/gateway/upstream/exchange.ts";
import { imageFetcher } from "#daemon/gateway/upstream/image.ts";
import { systemClock } from "#shared/clock.ts";
import type { AttemptOptions, ChatCall, ChatOutcome, FailureOutcome, Provider, Target } from "../adapter.ts";
import { type Checked, checkCall } from "../check.ts";
import { type Failure, UpstreamError } from "../failure.ts";
import { hintsLeftOut } from "../support.ts";
import type { Prepared, ReadContext, Wire } from "../wire.ts";
import { AnswerReader } from "./answer-reader.ts";
import { MAX_ANSWER } from "./body.ts";
import { withHeaders } from "./headers.ts";

/** Decoded bytes of a stream. */
const MAX_STREAM = 1024 * 1024 * 1024;
const none: readonly string[] = [];

/** No promise of its own where the wire needs none: every call comes through here. */
export function chatOver(wire: Wire, dispatcher: Dispatcher, images: Dispatcher): Provider["chat"] {
  return (call, target, options) => {
    const checked = wire.passesThrough ? { call, dropped: none } : checkCall(call, target, wire.unsupported);
    if ("kind" in checked) return Promise.resolve(checked);
    const send = (prepared: Prepared) =>
      attempt(wire, dispatcher, checked.call, target, withHints(wire, checked, prepared), options);
    let preparing: Prepared | Promise<Prepared>;
    try {
      preparing = wire.prepare(checked.call, target, { fetchImage: imageFetcher(images, options) });
    } catch (error) {
      return Promise.resolve(unprepared(error));
    }
    return preparing instanceof Promise ? preparing.then(send, unprepared) : send(preparing);
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

function failed(problem: Failure): FailureOutcome {
  return { kind: "failure", failure: problem, usage: null };
}

function attempt(
  wire: Wire,
  dispatcher: Dispatcher,
  call: ChatCall,
  target: Target,
  prepared: Prepared,
  options: AttemptOptions,
): Promise<ChatOutcome> {
  return new Promise((resolve) => {
    const context: ReadContext = {
      request: call.request,
      requestId: call.requestId,
      caller: call.caller,
      target,
      prepared,
      created: Math.floor(systemClock.now() / 1000),
      cost: options.cost,
    };
    const { signal, timeoutMs } = options;
    const limits = { signal, timeoutMs, maxBytes: call.request.stream === true ? MAX_STREAM : MAX_ANSWER };
    const startedAt = systemClock.monotonic();
    const send = (request: UpstreamRequest, reader: AnswerReader, within: ExchangeOptions): void => {
      reader.running = exchange(dispatcher, withHeaders(request, target), reader, within);
    };
    const sendAgain = (status: number, body: string): boolean => {
      const again = wire.relent?.(status, body, call, target, prepared.request);
      if (!again) return false;
      const give = (outcome: ChatOutcome): void => {
        if (outcome.kind !== "failure") again.worked();
        resolve(outcome);
      };
      const go = (request: UpstreamRequest): void => {
        const left = { ...limits, spentMs: systemClock.monotonic() - startedAt };
        send(request, new AnswerReader(wire, context, options, give, () => false), left);
      };
      if (again.request instanceof Promise) again.request.then(go, (error) => give(failed(failureOf(error))));
      else go(again.request);
      return true;
    };
    send(prepared.request, new AnswerReader(wire, context, options, resolve, sendAgain), limits);
  });
}
