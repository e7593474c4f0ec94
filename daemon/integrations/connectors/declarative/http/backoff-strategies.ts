// How long to wait before the next try, as the manifest says.
import { MagicError } from "#contract/errors.ts";
import { retryAfterSeconds } from "../../../retry-after.ts";
import { type Context, native, text } from "../context.ts";
import { compileRegex } from "../jinja/regex.ts";
import { type Component, optionalText, refuseCustom, typeOf } from "../manifest/component.ts";
import type { HttpResponse } from "./client.ts";
import { responseVariables } from "./response.ts";

export function backoffOf(
  context: Context,
  strategy: Component,
): (response: HttpResponse | undefined, attempt: number) => number | undefined {
  const number = (field: string, otherwise?: number) =>
    Number(native(context, strategy, strategy[field] ?? otherwise)) * 1000;
  switch (typeOf(strategy)) {
    case "ConstantBackoffStrategy":
      return () => number("backoff_time_in_seconds") + jitter(strategy);
    case "ExponentialBackoffStrategy":
      return (_response, attempt) => number("factor", 5) * 2 ** attempt + jitter(strategy);
    case "WaitTimeFromResponse":
      return (response) => waitFromResponse(context, strategy, response);
    case "WaitTimeFromHeader":
    case "WaitUntilTimeFromHeader":
      return (response) => waitFromHeader(context, strategy, response);
    default:
      return refuseCustom(strategy);
  }
}

// What it makes of an answer may be nothing, or no number: then the next strategy is asked.
function waitFromResponse(
  context: Context,
  strategy: Component,
  response: HttpResponse | undefined,
): number | undefined {
  if (!response) return undefined;
  let seconds: number;
  try {
    seconds = Number(native(context, strategy, strategy["wait_time_in_seconds"], responseVariables(response)));
  } catch {
    return undefined;
  }
  if (!(seconds > 0)) return undefined;
  const most = strategy["max_waiting_time_in_seconds"];
  if (most !== undefined && most !== null && seconds >= Number(native(context, strategy, most))) throw tooLong(seconds);
  return seconds * 1000;
}

const tooLong = (seconds: number): MagicError =>
  new MagicError("upstream_error", `the server asks to wait ${seconds} s, longer than max_waiting_time_in_seconds`);

function jitter(strategy: Component): number {
  const range = strategy["jitter_range_in_seconds"];
  if (range === undefined || range === null) return 0;
  const [low, high] = Array.isArray(range) ? range.map(Number) : [0, Number(range)];
  return ((low ?? 0) + Math.random() * ((high ?? 0) - (low ?? 0))) * 1000;
}

function waitFromHeader(context: Context, strategy: Component, response: HttpResponse | undefined): number | undefined {
  const header = response?.headers[text(context, strategy, strategy["header"]).toLowerCase()];
  const least = strategy["min_wait"];
  const leastS = least === undefined || least === null ? undefined : Number(native(context, strategy, least));
  const shortest = leastS === undefined ? undefined : leastS * 1000;
  if (header === undefined) return shortest;
  const regex = optionalText(strategy, "regex");
  let value = header;
  if (regex) {
    const matcher = compileRegex(text(context, strategy, regex)).matcher(header);
    if (!matcher.find()) return shortest;
    value = matcher.group(matcher.groupCount() > 0 ? 1 : 0) ?? "";
  }
  const seconds = Number(value);
  let wait =
    typeOf(strategy) === "WaitTimeFromHeader"
      ? Number.isFinite(seconds) && value.trim()
        ? seconds
        : retryAfterSeconds(value, context.clock.now())
      : untilSeconds(value, context.clock.now());
  if (wait === undefined) return shortest;
  if (leastS !== undefined) wait = Math.max(wait, leastS);
  const most = strategy["max_waiting_time_in_seconds"];
  if (most !== undefined && most !== null && wait > Number(native(context, strategy, most))) throw tooLong(wait);
  return Math.max(0, wait) * 1000;
}

export function untilSeconds(value: string, now: number): number | undefined {
  const seconds = Number(value);
  // Vendors give seconds or milliseconds since the epoch; seconds of that size are three thousand years away.
  const unit = seconds > 1e11 ? 1 : 1000;
  const at = Number.isFinite(seconds) && value.trim() ? seconds * unit : Date.parse(value);
  return Number.isNaN(at) ? undefined : (at - now) / 1000;
}
