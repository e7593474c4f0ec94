// What an answer says of its error.
import { isRecord } from "../manifest/component.ts";
import type { HttpResponse } from "./client.ts";
import { jsonOf } from "./response.ts";

export function describe(response: HttpResponse): string {
  const url = new URL(response.url);
  const message = (errorMessage(response) ?? textOf(response)).slice(0, 300).trim();
  return `${url.origin}${url.pathname} answered ${response.status}${message ? `: ${message}` : ""}`;
}

/** The message in an error body, wherever the vendor has put it, or all of one that is no JSON. Undefined: it says none. */
export function errorMessage(response: HttpResponse): string | undefined {
  const body = jsonOf(response);
  return body === undefined ? textOf(response) : messageIn(body, 0);
}

const textOf = ({ body }: HttpResponse): string => body.subarray(0, 64 * 1024).toString("utf8");

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
