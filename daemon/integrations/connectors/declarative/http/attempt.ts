// One logical request: sent within the budget, retried, and judged by the error handler.
import { MagicError } from "#contract/errors.ts";
import { backoff } from "#shared/backoff.ts";
import { redactText } from "#shared/redact.ts";
import { retryAfterSeconds } from "../../../retry-after.ts";
import type { Context } from "../context.ts";
import type { Answers } from "./answers.ts";
import type { Authenticator } from "./authenticator.ts";
import type { HttpResponse } from "./client.ts";
import { type ErrorHandler, failure, type Verdict, WindowRefused } from "./errors.ts";
import { type Built, MAX_WAIT_MS, type SentRequest } from "./request.ts";

/** `ignored`: the error handler says to go on as if there were nothing, whatever the answer holds. `tooMuch`: to ask for less. */
export type Outcome =
  | { readonly response: HttpResponse; readonly request: () => SentRequest }
  | { readonly ignored: string; readonly answer: HttpResponse }
  | { readonly reset: true }
  | { readonly tooMuch: string };

/** Without a back-off of the manifest's: 1, 2, 4, 8... s, at most a minute. */
const DEFAULT_BACKOFF_MS = 1000;
const MAX_BACKOFF_MS = 60_000;
/** Who says "at once" and then refuses again is asked less and less often: 50, 100, 200 ms... */
const LEAST_BACKOFF_MS = 50;
/** Rate limits are waited out longer than failures are retried. */
const RATE_LIMIT_TRIES = 20;

export async function attempt(
  context: Context,
  build: () => Promise<Built>,
  authenticator: Authenticator,
  errors: ErrorHandler,
  answers: Answers | undefined,
): Promise<Outcome> {
  let refreshed = false;
  for (let tries = 1, limited = 0; ; tries++) {
    context.signal.throwIfAborted();
    const { request, token, to, secrets, question, shown } = await build();
    const asked = answers ? question() : "";
    const known = answers?.of(asked);
    // Another stream's error handler may see in it what its own did not.
    if (known && errors.interpret(known).action === "success") return { response: known, request: shown };
    await context.budget.take({ ...request, url: new URL(request.url) }, (ms) => context.sleep(ms));
    let response: HttpResponse | undefined;
    let message: string;
    let limits = false;
    let another = false;
    try {
      response = await context.http.send(request, context.signal);
      context.budget.learn(response, context.clock.now());
      another = authenticator.learn?.(token, to, response) ?? false;
      const judged = errors.interpret(response);
      const verdict = { ...judged, message: redactText(judged.message, secrets) };
      message = verdict.message;
      limits = response.status === 429 || verdict.action === "rate_limited";
      const outcome = outcomeOf(verdict, response, shown);
      if (outcome && "response" in outcome) answers?.keep(asked, response);
      if (outcome) return outcome;
      if (
        (verdict.action === "refresh_token" || response.status === 401) &&
        !refreshed &&
        (await authenticator.refresh(token))
      ) {
        refreshed = true;
        tries--;
        continue;
      }
      // Who has no token to refresh asks again all the same.
      const refused = verdict.action === "refresh_token" && (refreshed || response.status === 401);
      // The token was taken: while a limit or a failure is waited out, it may end in its turn.
      if (response.status !== 401 && verdict.action !== "refresh_token") refreshed = false;
      if (verdict.action === "fail" || refused) throw failure(response, verdict);
      if (verdict.action === "rate_limited" && ++limited < RATE_LIMIT_TRIES) tries--;
    } catch (error) {
      if (response || context.signal.aborted || !(error instanceof MagicError) || !mayPass(error)) throw error;
      message = error.message;
    }
    if (tries > errors.maxRetries) throw new MagicError("upstream_error", `${message} (after ${tries} tries)`);
    // A token that has calls left need not wait for one that has none.
    if (limits && another) continue;
    await wait(context, errors, response, tries + limited, message, limits);
  }
}

// What the request has come to; undefined where it failed, or is to be sent again.
function outcomeOf(
  { action, message }: Verdict,
  response: HttpResponse,
  request: () => SentRequest,
): Outcome | undefined {
  // To ignore an error, or to call it a success, is to go on without the answer. One that is none counts, as in the reference.
  if (action === "success" || action === "ignore")
    return response.status < 400 ? { response, request } : { ignored: message, answer: response };
  if (action === "reset_pagination") return { reset: true };
  if (action === "reduce_page_size") return { tooMuch: message };
  if (action === "split_request_window") throw new WindowRefused(message);
  return undefined;
}

// A connection that broke has a cause. An answer that is too large or is led in circles will be so again.
const mayPass = (error: MagicError): boolean =>
  error.code === "upstream_timeout" || (error.code === "upstream_error" && error.cause !== undefined);

async function wait(
  context: Context,
  errors: ErrorHandler,
  response: HttpResponse | undefined,
  attempts: number,
  message: string,
  limits: boolean,
): Promise<void> {
  const asked = retryAfterSeconds(response?.headers["retry-after"], context.clock.now());
  const told = errors.backoff(response, attempts) ?? (asked === undefined ? undefined : asked * 1000);
  const growing = (first: number): number => backoff(attempts - 1, first, MAX_BACKOFF_MS);
  const pause =
    told === undefined
      ? growing(DEFAULT_BACKOFF_MS)
      : told < DEFAULT_BACKOFF_MS
        ? Math.max(told, growing(LEAST_BACKOFF_MS))
        : told;
  if (pause > MAX_WAIT_MS)
    throw new MagicError(
      "upstream_error",
      `${message}; the wait of ${Math.round(pause / 1000)} s that it asks for is too long`,
    );
  context.log("info", `${message}; trying again in ${(pause / 1000).toFixed(1)} s`);
  // The other partitions would only meet the same limit.
  if (limits) context.budget.pauseUntil(context.clock.monotonic() + pause);
  await context.sleep(pause);
}
