// What an answer says of its error.
import { isRecord } from "../manifest/component.ts";
import type { HttpResponse } from "./client.ts";

export function describe(response: HttpResponse): string {
  const url = new URL(response.url);
  const message = errorMessage(response).slice(0, 300).trim();
  return `${url.origin}${url.pathname} answered ${response.status}${message ? `: ${message}` : ""}`;
}

/** The message in an error body, wherever the vendor has put it; else the body's text. */
export function errorMessage(response: HttpResponse): string {
  const body = response.body.subarray(0, 64 * 1024).toString("utf8");
  try {
    return messageIn(JSON.parse(body), 0) ?? body;
  } catch {
    return body;
  }
}

function messageIn(value: unknown, depth: number): string | undefined {
  if (depth > 5) return undefined;
  if (typeof value === "string") return value;
  if (Array.isArray(value)) {
    const parts = value.map((each) => messageIn(each, depth + 1)).filter(Boolean);
    return parts.length ? parts.join(", ") : undefined;
  }
  if (!isRecord(value)) return undefined;
  for (const key of [
    "message",
    "messages",
    "error",
    "errors",
    "failures",
    "failure",
    "detail",
    "err",
    "error_message",
    "msg",
    "reason",
    "status_message",
  ]) {
    if (Object.hasOwn(value, key)) {
      const found = messageIn(value[key], depth + 1);
      if (found) return found;
    }
  }
  return undefined;
}
