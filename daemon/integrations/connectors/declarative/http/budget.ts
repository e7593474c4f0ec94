// How often one connection may call: the manifest's api_budget, and what 429 answers say. Every partition of a connection shares one budget.
import type { Clock } from "#shared/clock.ts";
import { DateTime } from "../jinja/datetime.ts";
import { addDuration, parseDuration } from "../jinja/duration.ts";
import { compileRegex } from "../jinja/regex.ts";
import {
  type Component,
  children,
  isRecord,
  list,
  manifestError,
  optionalText,
  refuseCustom,
  typeOf,
} from "../manifest/component.ts";
import type { HttpResponse } from "./client.ts";

export interface Budget {
  /** Waits until the request may be sent. */
  take(call: Call, sleep: (ms: number) => Promise<void>): Promise<void>;
  /** Takes what an answer says about how many calls are left, where the manifest has a budget. */
  learn(answer: Pick<HttpResponse, "status" | "headers">, now: number): void;
  /** No request of this connection before then (milliseconds on the monotonic clock). */
  pauseUntil(at: number): void;
}

/** A request as policies tell it from others. */
export interface Call {
  readonly method: string;
  readonly url: URL;
  /** Lower-case names. */
  readonly headers?: Readonly<Record<string, string>>;
}

/** What a template comes to. */
type Evaluate = (value: unknown) => unknown;

interface Window {
  readonly limit: number;
  readonly ms: number;
  /** When the calls in the window were sent, and for how many each counts. */
  readonly sent: { readonly at: number; readonly calls: number }[];
  /** What they count for together. */
  used: number;
}

interface Policy {
  /** How many calls it counts for; undefined: it is not this policy's. */
  weightOf(call: Call): number | undefined;
  readonly windows: () => readonly Window[];
}

/** What a vendor says beyond that is not believed: its next answer will tell. */
const MAX_PAUSE_MS = 3_600_000;

export function createBudget(component: Component | undefined, clock: Clock, evaluate: Evaluate): Budget {
  const policies = component ? children(component, "policies").map((each) => policyOf(evaluate, each)) : [];
  let paused = 0;
  const header = (field: string, otherwise: string): string =>
    (optionalText(component ?? {}, field) ?? otherwise).toLowerCase();
  const remaining = header("ratelimit_remaining_header", "ratelimit-remaining");
  const reset = header("ratelimit_reset_header", "ratelimit-reset");
  const limits = new Set(list(component?.["status_codes_for_ratelimit_hit"] ?? 429).map(Number));
  return {
    async take(call, sleep) {
      const policy = policies.find((each) => each.weightOf(call) !== undefined);
      const weight = policy?.weightOf(call) ?? 1;
      const windows = policy?.windows() ?? [];
      for (;;) {
        const now = clock.monotonic();
        const wait = Math.max(paused - now, ...windows.map((window) => waitFor(window, now, weight)));
        if (wait <= 0) {
          for (const window of windows) count(window, now, weight);
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

function count(window: Window, at: number, weight: number): void {
  const calls = Math.min(weight, window.limit);
  window.sent.push({ at, calls });
  window.used += calls;
}

function waitFor(window: Window, now: number, weight: number): number {
  const { sent, limit, ms } = window;
  while (sent[0] && sent[0].at <= now - ms) window.used -= sent.shift()?.calls ?? 0;
  let over = window.used + Math.min(weight, limit) - limit;
  if (over <= 0) return 0;
  // As many must have left the window.
  for (const { at, calls } of sent) {
    over -= calls;
    if (over <= 0) return at + ms - now;
  }
  return 0;
}

const POLICIES = ["FixedWindowCallRatePolicy", "MovingWindowCallRatePolicy", "UnlimitedCallRatePolicy"];

function policyOf(evaluate: Evaluate, component: Component): Policy {
  if (!POLICIES.includes(typeOf(component))) refuseCustom(component);
  const matchers = children(component, "matchers").map((each) => ({ matches: matcherOf(each), component: each }));
  let windows: readonly Window[] | undefined;
  return {
    weightOf(call) {
      const found = matchers.find(({ matches }) => matches(call))?.component;
      if (!found) return matchers.length === 0 ? 1 : undefined;
      return Math.max(1, Math.floor(numberIn(evaluate, found, "weight")));
    },
    // Not before they are needed: a manifest can be looked at without a configuration.
    windows: () => {
      windows ??= windowsOf(evaluate, component);
      return windows;
    },
  };
}

function windowsOf(evaluate: Evaluate, component: Component): Window[] {
  if (typeOf(component) === "UnlimitedCallRatePolicy") return [];
  const rates =
    typeOf(component) === "FixedWindowCallRatePolicy"
      ? [{ limit: component["call_limit"], interval: component["period"] }]
      : list(component["rates"]);
  return rates.filter(isRecord).map((rate) => ({
    limit: Math.max(1, numberIn(evaluate, rate, "limit")),
    ms: durationMs(String(evaluate(rate["interval"]))),
    sent: [],
    used: 0,
  }));
}

function numberIn(evaluate: Evaluate, component: Component, field: string): number {
  const number = Number(evaluate(component[field] ?? 1));
  if (!Number.isFinite(number)) throw manifestError(`${field} of the api_budget is no number`);
  return number;
}

export function matcherOf(component: Component): (call: Call) => boolean {
  const pattern = component["url_path_pattern"] ? compileRegex(String(component["url_path_pattern"])) : undefined;
  const base = component["url_base"] ? String(component["url_base"]).replace(/\/$/, "") : undefined;
  const fits = (wanted: unknown, given: (name: string) => string | null | undefined): boolean =>
    !isRecord(wanted) || Object.entries(wanted).every(([name, value]) => given(name) === String(value));
  return ({ method, url, headers }) =>
    fits(component["params"], (name) => url.searchParams.get(name)) &&
    fits(component["headers"], (name) => headers?.[name.toLowerCase()]) &&
    (!component["method"] || String(component["method"]).toUpperCase() === method) &&
    (!base || url.href.startsWith(base)) &&
    (!pattern || pattern.matcher(url.pathname).find());
}

/** An ISO 8601 duration in milliseconds; months and years are counted from the epoch. */
export function durationMs(text: string): number {
  const duration = parseDuration(text);
  return Number(addDuration(new DateTime(0n, 0), duration).us / 1000n);
}
