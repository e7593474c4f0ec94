// The gateway's rate limits: requests and tokens per minute, and calls at once. Taken before dispatch, corrected after.
import { MagicError } from "#contract/errors.ts";
import type { LimitsConfig } from "#daemon/gateway/engagement/config.ts";
import { type CallRefusal, refusalOf } from "#daemon/storage/call-limits.ts";
import type { Clock } from "#shared/clock.ts";
import type { SharedLimits } from "./shared.ts";
import { createWindow, type Window } from "./window.ts";

/** One call's hold on the limits. */
export interface Hold {
  /** Gives the place back; `tokens` is what the call really used. Later calls do nothing. */
  release(tokens: number): void;
  /** `x-ratelimit-*`, the way OpenAI names them. */
  readonly headers: Readonly<Record<string, string>>;
}

export interface Limits<Held = Hold | Promise<Hold>> {
  /**
   * Takes a place for a call of about `tokens` tokens by this caller, or throws `rate_limited`. Nothing is taken then. A promise where the
   * limits are shared with other daemons.
   */
  take(caller: string, config: LimitsConfig, tokens: number): Held;
  /** Resolves when whoever shares the limits knows of every call that ended. */
  idle(): Promise<void>;
}

interface Usage {
  readonly requests: Window;
  readonly tokens: Window;
  concurrent: number;
}

const MAX_CALLERS = 50_000;
const noLimits: Hold = { release() {}, headers: {} };

/** Limits count for each credential; with `shared`, those of all daemons together. */
export function createLimits(clock: Clock): Limits<Hold>;
export function createLimits(clock: Clock, shared: SharedLimits | null): Limits;
export function createLimits(clock: Clock, shared: SharedLimits | null = null): Limits {
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

  const takeHere = (caller: string, config: LimitsConfig, tokens: number): Hold => {
    const usage = usageOf(caller);
    const refused = refusalOf(config, usage.concurrent, usage.requests, usage.tokens, tokens);
    const headers = () => headersOf(config, usage.requests.sum(), usage.tokens.sum());
    if (refused) throw refusal(refused, config, headers(), usage.tokens.sum());
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
      headers: headers(),
    };
  };

  const takeTogether = async (
    limits: SharedLimits,
    caller: string,
    config: LimitsConfig,
    size: number,
  ): Promise<Hold> => {
    const { refused, requests, tokens, release } = await limits.take(caller, config, size);
    const headers = headersOf(config, requests, tokens);
    if (refused) throw refusal(refused, config, headers, tokens);
    return { release, headers };
  };

  return {
    take(caller, config, tokens) {
      const { requests_per_minute: perMinute, tokens_per_minute: tokenLimit, concurrent: atOnce } = config;
      if (perMinute === undefined && tokenLimit === undefined && atOnce === undefined) return noLimits;
      return shared ? takeTogether(shared, caller, config, tokens) : takeHere(caller, config, tokens);
    },
    idle: async () => shared?.idle(),
  };
}

function forgetIdle(callers: Map<string, Usage>): void {
  for (const [caller, { requests, tokens, concurrent }] of callers)
    if (concurrent === 0 && requests.sum() === 0 && tokens.sum() === 0) callers.delete(caller);
}

function refusal(
  { limit, waitMs }: CallRefusal,
  config: LimitsConfig,
  headers: Readonly<Record<string, string>>,
  used: number,
): MagicError {
  const seconds = Math.max(1, Math.ceil(waitMs / 1000));
  const most = config[limit] ?? 0;
  const words = {
    concurrent: `${most} calls at once`,
    requests_per_minute: `${most} requests per minute`,
    tokens_per_minute: `${most} tokens per minute`,
  };
  const left = limit === "tokens_per_minute" ? `, of which ${Math.max(0, most - used)} are left,` : "";
  return new MagicError(
    "rate_limited",
    `The gateway's limit of ${words[limit]} (gateway.limits.${limit})${left} is reached; try again in ${seconds} s.`,
    { retryAfterS: seconds, extra: { code: "rate_limit_exceeded" }, headers },
  );
}

// The call itself is in the window: it is empty again in a minute, whatever else is in it.
function headersOf(
  { requests_per_minute: perMinute, tokens_per_minute: tokenLimit }: LimitsConfig,
  requests: number,
  tokens: number,
) {
  const headers: Record<string, string> = {};
  if (perMinute !== undefined) {
    headers["x-ratelimit-limit-requests"] = String(perMinute);
    headers["x-ratelimit-remaining-requests"] = String(Math.max(0, perMinute - requests));
    headers["x-ratelimit-reset-requests"] = "60s";
  }
  if (tokenLimit !== undefined) {
    headers["x-ratelimit-limit-tokens"] = String(tokenLimit);
    headers["x-ratelimit-remaining-tokens"] = String(Math.max(0, tokenLimit - tokens));
    headers["x-ratelimit-reset-tokens"] = "60s";
  }
  return headers;
}
