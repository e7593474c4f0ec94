// The gateway's rate limits: requests and tokens per minute, and calls at once. Taken before dispatch, corrected after.
import { MagicError } from "#contract/errors.ts";
import type { LimitsConfig } from "#daemon/gateway/engagement/config.ts";
import type { Clock } from "#shared/clock.ts";
import { createWindow, type Window } from "./window.ts";

/** One call's hold on the limits. */
export interface Hold {
  /** Gives the place back; `tokens` is what the call really used. Later calls do nothing. */
  release(tokens: number): void;
  /** `x-ratelimit-*`, the way OpenAI names them. */
  readonly headers: Readonly<Record<string, string>>;
}

export interface Limits {
  /** Takes a place for a call of about `tokens` tokens by this caller, or throws `rate_limited`. Nothing is taken then. */
  take(caller: string, config: LimitsConfig, tokens: number): Hold;
}

interface Usage {
  readonly requests: Window;
  readonly tokens: Window;
  concurrent: number;
}

const MAX_CALLERS = 50_000;
const noLimits: Hold = { release() {}, headers: {} };

/** Limits count for each credential. */
export function createLimits(clock: Clock): Limits {
  const callers = new Map<string, Usage>();

  const usageOf = (caller: string): Usage => {
    let usage = callers.get(caller);
    if (!usage) {
      if (callers.size >= MAX_CALLERS) forgetIdle(callers);
      usage = { requests: createWindow(clock), tokens: createWindow(clock), concurrent: 0 };
      callers.set(caller, usage);
    }
    return usage;
  };

  return {
    take(caller, config, tokens) {
      const { requests_per_minute: perMinute, tokens_per_minute: tokenLimit, concurrent: atOnce } = config;
      if (perMinute === undefined && tokenLimit === undefined && atOnce === undefined) return noLimits;
      const usage = usageOf(caller);
      const refused = (limit: string, waitMs: number) =>
        refusal(limit, waitMs / 1000, headersOf(usage, perMinute, tokenLimit));
      if (atOnce !== undefined && usage.concurrent >= atOnce)
        throw refused(`${atOnce} calls at once (gateway.limits.concurrent)`, 1_000);
      if (perMinute !== undefined && usage.requests.sum() + 1 > perMinute)
        throw refused(
          `${perMinute} requests per minute (gateway.limits.requests_per_minute)`,
          usage.requests.untilBelow(perMinute - 1),
        );
      // A single call larger than the whole limit passes when nothing else is in the window: refusing it for ever helps nobody.
      const used = tokenLimit === undefined ? 0 : usage.tokens.sum();
      if (tokenLimit !== undefined && used > 0 && used + tokens > tokenLimit)
        throw refused(
          `${tokenLimit} tokens per minute (gateway.limits.tokens_per_minute), of which ${Math.max(0, tokenLimit - used)} are left`,
          usage.tokens.untilBelow(Math.max(0, tokenLimit - tokens)),
        );
      usage.concurrent++;
      usage.requests.add(1);
      const when = usage.tokens.add(tokens);
      let released = false;
      return {
        release(actual) {
          if (released) return;
          released = true;
          usage.concurrent--;
          usage.tokens.correct(when, actual - tokens);
        },
        headers: headersOf(usage, perMinute, tokenLimit),
      };
    },
  };
}

function forgetIdle(callers: Map<string, Usage>): void {
  for (const [caller, { requests, tokens, concurrent }] of callers)
    if (concurrent === 0 && requests.sum() === 0 && tokens.sum() === 0) callers.delete(caller);
}

function refusal(limit: string, retryAfterS: number, headers: Readonly<Record<string, string>>): MagicError {
  const seconds = Math.max(1, Math.ceil(retryAfterS));
  return new MagicError("rate_limited", `The gateway's limit of ${limit} is reached; try again in ${seconds} s.`, {
    retryAfterS: seconds,
    extra: { code: "rate_limit_exceeded" },
    headers,
  });
}

// The call itself is in the window: it is empty again in a minute, whatever else is in it.
function headersOf({ requests, tokens }: Usage, perMinute: number | undefined, tokenLimit: number | undefined) {
  const headers: Record<string, string> = {};
  if (perMinute !== undefined) {
    headers["x-ratelimit-limit-requests"] = String(perMinute);
    headers["x-ratelimit-remaining-requests"] = String(Math.max(0, perMinute - requests.sum()));
    headers["x-ratelimit-reset-requests"] = "60s";
  }
  if (tokenLimit !== undefined) {
    headers["x-ratelimit-limit-tokens"] = String(tokenLimit);
    headers["x-ratelimit-remaining-tokens"] = String(Math.max(0, tokenLimit - tokens.sum()));
    headers["x-ratelimit-reset-tokens"] = "60s";
  }
  return headers;
}
