// One request of an attempt on its way, and once more for each refusal that the wire knows a way around.
import type { Dispatcher } from "undici";
import { exchange, failureOf, type UpstreamRequest } from "#daemon/gateway/upstream/exchange.ts";
import { systemClock } from "#shared/clock.ts";
import type { AttemptOptions, ChatOutcome, FailureOutcome, Target } from "../adapter.ts";
import type { Failure } from "../failure.ts";
import type { Asked, Relented } from "../wire.ts";
import { AnswerReader } from "./answer-reader.ts";
import type { Reading } from "./reading.ts";

export function attempt(
  dispatcher: Dispatcher,
  asked: Asked,
  reading: Reading,
  { signal, timeoutMs }: AttemptOptions,
): Promise<ChatOutcome> {
  return new Promise((resolve) => {
    const { target, maxBytes } = reading;
    const startedAt = systemClock.monotonic();
    const send = ({ request, relent }: Asked, give: (outcome: ChatOutcome) => void, spentMs: number): void => {
      const reader = new AnswerReader(reading, give, (status, body) => {
        const again = relent?.(status, body);
        if (again) sendAgain(again);
        return Boolean(again);
      });
      const limits = { signal, timeoutMs, spentMs, maxBytes };
      reader.running = exchange(dispatcher, withHeaders(request, target), reader, limits);
    };
    const sendAgain = (again: Relented): void => {
      const give = (outcome: ChatOutcome): void => {
        if (outcome.kind !== "failure") again.worked();
        resolve(outcome);
      };
      const go = (request: UpstreamRequest): void =>
        send({ request, relent: again.relent }, give, systemClock.monotonic() - startedAt);
      if (again.request instanceof Promise) again.request.then(go, (error) => give(failed(failureOf(error))));
      else go(again.request);
    };
    send(asked, resolve, 0);
  });
}

export function failed(problem: Failure): FailureOutcome {
  return { kind: "failure", failure: problem, usage: null };
}

// Headers of magic.yaml; the wire's own win.
function withHeaders(request: UpstreamRequest, { headers }: Target): UpstreamRequest {
  return headers ? { ...request, headers: { ...headers, ...request.headers } } : request;
}
