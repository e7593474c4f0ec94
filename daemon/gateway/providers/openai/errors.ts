// OpenAI's errors (and Azure's, and those of servers that imitate them): `{"error": {message, type, param, code}}`, with variations.
import type { IncomingHttpHeaders } from "node:http";
import { fields, list, string } from "#contract/json-object.ts";
import { type Failure, type FailureKind, failure } from "../failure.ts";

interface WireError {
  readonly message: string;
  readonly type: string | null;
  readonly code: string | null;
  readonly param: string | null;
  readonly details?: unknown;
}

/** What an answer with an error status means. `secrets` are cut out of its message. */
export function openaiFailure(
  status: number,
  headers: IncomingHttpHeaders,
  body: string,
  secrets: readonly string[],
): Failure {
  const error = wireError(body);
  const kind = kindOf(status, error);
  return failure(kind, error.message || answered(status), {
    ...statusOf(kind, status),
    upstreamStatus: status,
    param: error.param,
    ...(kind === "invalid" && error.code ? { code: error.code } : {}),
    retryAfterMs:
      kind === "rate_limit" || kind === "overloaded" ? (retryAfter(headers) ?? retryInfo(error.details)) : null,
    secrets,
  });
}

/** An error inside a stream, or behind a 2xx status. */
export function streamFailure(error: unknown, secrets: readonly string[]): Failure {
  const read = readError(error);
  const status = Number((error as { status?: unknown; code?: unknown })?.status ?? read.code);
  const kind = byName(read) ?? (status >= 400 && status < 600 ? kindOf(status, read) : ofServer(read));
  return failure(kind, read.message || "The provider reported an error.", { upstreamStatus: 200, secrets });
}

/** Retry-After in milliseconds: `retry-after-ms`, seconds or a date (RFC 9110, section 10.2.3). */
export function retryAfter(headers: IncomingHttpHeaders): number | null {
  const ms = Number(headers["retry-after-ms"]);
  if (headers["retry-after-ms"] !== undefined && Number.isFinite(ms) && ms >= 0) return Math.ceil(ms);
  const value = headers["retry-after"];
  if (typeof value !== "string" || value.trim() === "") return null;
  const seconds = Number(value);
  if (Number.isFinite(seconds)) return seconds >= 0 ? Math.ceil(seconds * 1000) : null;
  const date = Date.parse(value);
  return Number.isNaN(date) ? null : Math.max(0, date - Date.now());
}

/** What Google's errors say of it in their `details`, also behind its address for OpenAI's format: a protobuf duration, such as "34.4s". */
export function retryInfo(details: unknown): number | null {
  const known = list<{ "@type"?: unknown; retryDelay?: unknown } | null>(details);
  const info = known.find((detail) => String(detail?.["@type"]).endsWith("RetryInfo"));
  const seconds = /^(\d+(?:\.\d+)?)s$/.exec(String(info?.retryDelay))?.[1];
  return seconds === undefined ? null : Math.ceil(Number(seconds) * 1000);
}

const spent = [
  // Google, with a 429, also behind its address for OpenAI's format.
  /^Your prepayment credits are depleted\b/,
  /^Your (project|billing account) has exceeded its monthly spending cap\b/,
  // xAI, with a 429 or a 403.
  /^Your team (\S+ )?has either used all available credits or reached its monthly spending limit\b/,
  // Moonshot, also behind OpenRouter, and Zhipu, with a 429; SiliconFlow with a 403.
  /\binsufficient balance\b|\bbalance is insufficient\b/i,
];

/** Whether an account is told that it has spent its credit or its limit, where nothing but the words says so. */
export function saysSpent(message: string): boolean {
  return spent.some((words) => words.test(message));
}

/** The kind that a status alone tells. */
export function kindOfStatus(status: number): FailureKind {
  if (status === 401) return "auth";
  if (status === 402) return "quota";
  if (status === 403) return "permission";
  if (status === 404) return "not_found";
  if (status === 408 || status === 504) return "timeout";
  if (status === 424) return "server";
  if (status === 429) return "rate_limit";
  if (status === 500) return "internal";
  if (status === 503 || status === 529) return "overloaded";
  if (status >= 400 && status < 500) return "invalid";
  return "server";
}

/** What is said of an answer that says nothing itself. */
export function answered(status: number): string {
  if (status < 300 || status >= 400) return `The provider answered ${status}.`;
  return `The provider answered ${status}, a redirect, which is not followed: base_url must be where it leads.`;
}

/** 413 and 422 keep their status; other refusals of the request are 400. */
export function statusOf(kind: FailureKind, status: number): { status: number } | object {
  return kind === "invalid" && (status === 413 || status === 422) ? { status } : {};
}

// Of a used-up quota some say that the request were wrong, or its key. Words alone count where none of the request's own are quoted.
function kindOf(status: number, error: WireError): FailureKind {
  if (status < 500 && SPENT.test(namesOf(error))) return "quota";
  if ((status === 429 || status === 403) && saysSpent(error.message)) return "quota";
  return kindOfStatus(status);
}

// OpenAI's own codes (their type is `insufficient_quota`, but OpenAI promises it no longer), LiteLLM's and Alibaba's, which come with a 400, Moonshot's,
// Volcengine's and Zhipu's.
const SPENT =
  /insufficient_quota|billing_hard_limit|credit_balance_exhausted|(organization|project)_(usage|spend)_limit_exceeded|budget_exceeded|exceeded_current_quota|arrearage|accountoverdue|\b1113$/;

function byName(error: WireError): FailureKind | null {
  const names = namesOf(error);
  if (SPENT.test(names) || saysSpent(error.message)) return "quota";
  if (/rate_limit|too_many_requests/.test(names)) return "rate_limit";
  if (/overloaded|unavailable/.test(names)) return "overloaded";
  if (/authentication|invalid_api_key/.test(names)) return "auth";
  if (/invalid_request|context_length|content_policy/.test(names)) return "invalid";
  return null;
}

// What OpenAI and its imitations call a 500 where they cannot say so by a status.
function ofServer(error: WireError): FailureKind {
  return /server_?error|api_error/.test(namesOf(error)) ? "internal" : "server";
}

function namesOf({ type, code }: WireError): string {
  return `${type ?? ""} ${code ?? ""}`.toLowerCase();
}

function wireError(body: string): WireError {
  return readError(errorIn(body));
}

/** The error that a text holds, in OpenAI's form or near it; undefined where it is no JSON. */
export function errorIn(text: string): unknown {
  try {
    const parsed: unknown = JSON.parse(text);
    const first = Array.isArray(parsed) ? parsed[0] : parsed;
    return (first as { error?: unknown })?.error ?? first;
  } catch {
    return undefined;
  }
}

function readError(error: unknown): WireError {
  if (typeof error === "string") return { message: error, type: null, code: null, param: null };
  const { message, detail, type, code, param, details, metadata } = fields(error);
  const text = (value: unknown) => (typeof value === "string" ? value : null);
  // OpenRouter's own words say nothing ("Provider returned error"); those of the provider that it asked stand beside them.
  const raw = string(fields(metadata)["raw"]);
  return {
    message: [said(message) || said(detail), raw && (wireError(raw).message || raw)].filter(Boolean).join(": "),
    type: text(type),
    code: typeof code === "number" ? String(code) : text(code),
    param: text(param),
    details,
  };
}

// FastAPI (vLLM, llama.cpp's Python server) lists what is wrong, `[{loc, msg}]`, as its `detail`; Mistral has such a `detail` in its `message`.
function said(value: unknown, depth = 0): string {
  if (typeof value === "string") return value;
  if (typeof value !== "object" || value === null || depth > 3) return "";
  if (Array.isArray(value)) {
    const parts = value.slice(0, 5).map((one) => said(one, depth + 1));
    return parts.filter(Boolean).join("; ");
  }
  const { message, detail, msg, loc } = value as Record<string, unknown>;
  const text = said(message ?? detail ?? msg, depth + 1);
  return text && Array.isArray(loc) ? `${loc.join(".")}: ${text}` : text;
}
