// How often one connection may call: the manifest's api_budget, and what 429 answers say. Every partition of a connection shares one budget.
import type { Clock } from "#shared/clock.ts";
import { DateTime } from "../jinja/datetime.ts";
import { addDuration, parseDuration } from "../jinja/duration.ts";
import { compileRegex } from "../jinja/regex.ts";
import { type Component, children, list, optionalText, typeOf } from "../manifest/component.ts";
import type { HttpResponse } from "./client.ts";

export interface Budget {
  /** Waits until the request may be sent. */
  take(method: string, url: URL, sleep: (ms: number) => Promise<void>): Promise<void>;
  /** Takes what an answer says about how many calls are left, where the manifest has a budget. */
  learn(answer: Pick<HttpResponse, "status" | "headers">, now: number): void;
  /** No request of this connection before then (milliseconds on the monotonic clock). */
  pauseUntil(at: number): void;
}

interface Window {
  readonly limit: number;
  readonly ms: number;
  /** When the calls in the window were sent. */
  readonly sent: number[];
}

interface Policy {
  readonly matches: (method: string, url: URL) => boolean;
  readonly windows: readonly Window[];
}

/** What a vendor says beyond that is not believed: its next answer will tell. */
const MAX_PAUSE_MS = 3_600_000;

export function createBudget(component: Component | undefined, clock: Clock): Budget {
  const policies = component ? children(component, "policies").map(policyOf) : [];
  let paused = 0;
  const header = (field: string, otherwise: string): string =>
    (optionalText(component ?? {}, field) ?? otherwise).toLowerCase();
  const remaining = header("ratelimit_remaining_header", "ratelimit-remaining");
  const reset = header("ratelimit_reset_header", "ratelimit-reset");
  const limits = new Set(list(component?.["status_codes_for_ratelimit_hit"] ?? 429).map(Number));
  return {
    async take(method, url, sleep) {
      for (;;) {
        const now = clock.monotonic();
        const windows = policies.find((policy) => policy.matches(method, url))?.windows ?? [];
        const wait = Math.max(paused - now, ...windows.map((window) => waitFor(window, now)));
        if (wait <= 0) {
          for (const window of windows) window.sent.push(now);
          return;
        }
        await sleep(wait);
      }
    },
    learn({ status, headers }, now) {
      if (!component || !headers[reset] || (!limits.has(status) && Number(headers[remaining] ?? "1") > 0)) return;
      const wait = Number(headers[reset]) * 1000 - now;
      if (wait > 0 && wait <= MAX_PAUSE_MS) paused = Math.max(paused, clock.monotonic() + wait);
    },
    pauseUntil(at) {
      paused = Math.max(paused, at);
    },
  };
}

function waitFor(window: Window, now: number): number {
  while (window.sent.length && (window.sent[0] as number) <= now - window.ms) window.sent.shift();
  if (window.sent.length < window.limit) return 0;
  return (window.sent[window.sent.length - window.limit] as number) + window.ms - now;
}

function policyOf(component: Component): Policy {
  const matchers = children(component, "matchers").map(matcherOf);
  const matches: Policy["matches"] = (method, url) =>
    !matchers.length || matchers.some((matcher) => matcher(method, url));
  if (typeOf(component) === "UnlimitedCallRatePolicy") return { matches, windows: [] };
  const rates =
    typeOf(component) === "FixedWindowCallRatePolicy"
      ? [{ limit: component["call_limit"], interval: component["period"] }]
      : list(component["rates"]);
  const windows = (rates as { limit: unknown; interval: unknown }[]).map((rate) => ({
    limit: Math.max(1, Number(rate.limit)),
    ms: durationMs(String(rate.interval)),
    sent: [],
  }));
  return { matches, windows };
}

export function matcherOf(component: Component): (method: string, url: URL) => boolean {
  const pattern = component["url_path_pattern"] ? compileRegex(String(component["url_path_pattern"])) : undefined;
  const base = component["url_base"] ? String(component["url_base"]).replace(/\/$/, "") : undefined;
  return (method, url) =>
    (!component["method"] || String(component["method"]).toUpperCase() === method) &&
    (!base || url.href.startsWith(base)) &&
    (!pattern || pattern.matcher(url.pathname).find());
}

/** An ISO 8601 duration in milliseconds; months and years are counted from the epoch. */
export function durationMs(text: string): number {
  const duration = parseDuration(text);
  return Number(addDuration(new DateTime(0n, 0), duration).us / 1000n);
}
