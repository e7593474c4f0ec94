// What every component of one connection shares: configuration, evaluator, HTTP, clock. And how a component's text becomes a value.
import type { TokenKeeper } from "#contract/tokens.ts";
import type { Clock } from "#shared/clock.ts";
import type { Answers } from "./http/answers.ts";
import type { Budget } from "./http/budget.ts";
import type { HttpClient } from "./http/client.ts";
import { PythonTypeError } from "./jinja/errors.ts";
import type { Interpolator } from "./jinja/interpolate.ts";
import { Attributed } from "./jinja/python.ts";
import type { Component } from "./manifest/component.ts";
import type { JobGate } from "./read/job-gate.ts";

export interface Context {
  readonly config: Readonly<Record<string, unknown>>;
  readonly jinja: Interpolator;
  readonly http: HttpClient;
  readonly clock: Clock;
  readonly budget: Budget;
  readonly jobs: JobGate;
  readonly signal: AbortSignal;
  /** A line for the user: a wait, a retry, a record left out. Never holds credentials. */
  log(level: "info" | "warn", message: string): void;
  /** Waits; ends early when the signal aborts, by throwing its reason. */
  sleep(ms: number): Promise<void>;
  /** False: no page is asked for before the last one was taken. */
  readonly readsAhead: boolean;
  /** Values shared by all partitions: tokens, login sessions. */
  readonly shared: Map<string, unknown>;
  /** Of parents that are read more than once. */
  readonly answers?: Answers;
  /** Keeps the tokens that a vendor puts in place of the configured ones. */
  readonly tokens: TokenKeeper;
}

export type Variables = Readonly<Record<string, unknown>>;

/** The slice of a stream: which partition, which interval. */
export interface Slice {
  readonly partition: Readonly<Record<string, unknown>>;
  readonly interval: Readonly<Record<string, unknown>>;
  readonly extra: Readonly<Record<string, unknown>>;
}

/** What a template is evaluated in. */
export type Templates = Pick<Context, "config" | "jinja">;

export const emptySlice: Slice = { partition: {}, interval: {}, extra: {} };

/** `stream_partition` and `stream_interval` are other names of it; its parts have the reference's names. */
export function sliceVariables({ partition, interval, extra }: Slice): Variables {
  const parts = { partition, cursor_slice: interval, extra_fields: extra };
  return { stream_slice: new Attributed({ ...partition, ...interval }, parts) };
}

function variables(context: Templates, component: Component, more: Variables): Variables {
  return { config: context.config, parameters: component["$parameters"] ?? {}, ...more };
}

/** A field's value; text is a template, read as a native value. Missing context gives "". */
export function native(context: Templates, component: Component, value: unknown, more: Variables = {}): unknown {
  return typeof value === "string"
    ? digits(context.jinja.evaluate(value, variables(context, component, more), ""))
    : value;
}

// A long id of digits is read as an integer; beyond 2^53 it is text again, as everywhere: JSON knows no other.
function digits(value: unknown): unknown {
  if (typeof value === "bigint") return value.toString();
  if (Array.isArray(value)) return value.map(digits);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, each]) => [key, digits(each)]));
}

/** A field's value as text. */
export function text(context: Templates, component: Component, value: unknown, more: Variables = {}): string {
  if (typeof value !== "string") return value === undefined || value === null ? "" : String(value);
  return context.jinja.text(value, variables(context, component, more));
}

const falseTexts: ReadonlySet<string> = new Set(["", "False", "false", "{}", "[]", "()", "0", "0.0"]);

/**
 * A condition: empty text, None, False, 0, empty lists and objects are false, as in Python. What compares a number with nothing is true:
 * the reference implementation takes a template that raises a TypeError for the text that it is.
 */
export function condition(context: Templates, component: Component, value: unknown, more: Variables = {}): boolean {
  let result: unknown;
  try {
    result = native(context, component, value, more);
  } catch (error) {
    if (error instanceof PythonTypeError) return true;
    throw error;
  }
  if (typeof result === "string") return !falseTexts.has(result);
  if (typeof result === "object" && result !== null) return Object.keys(result).length > 0;
  return Boolean(result);
}

/** A mapping whose keys and values are templates, nested ones too; what comes to null or to no text is left out, in a list it is null. */
export function nested(context: Templates, component: Component, value: unknown, more: Variables = {}): unknown {
  if (Array.isArray(value))
    return value.map((each) => {
      const inner = nested(context, component, each, more);
      return inner === "" ? null : inner;
    });
  if (typeof value === "object" && value !== null) {
    const out: Record<string, unknown> = {};
    for (const [key, each] of Object.entries(value)) {
      const inner = nested(context, component, each, more);
      if (inner !== null && inner !== undefined && inner !== "") out[text(context, component, key, more)] = inner;
    }
    return out;
  }
  return native(context, component, value, more);
}
