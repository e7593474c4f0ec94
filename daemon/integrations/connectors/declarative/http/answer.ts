// An answer as decoders take it: its bytes, what it says of them, and how to tell of what cannot be read.
import { isUtf8 } from "node:buffer";
import { MagicError } from "#contract/errors.ts";
import type { HttpResponse } from "./client.ts";

export type Answer = Pick<HttpResponse, "body" | "headers" | "url">;

/** Query strings hold keys: an error names the place without them. */
export const place = (url: string): string => (URL.canParse(url) ? new URL(url).origin + new URL(url).pathname : url);

/** @param what such as `is not CSV`. */
export function unreadable(url: string, what: string, error: unknown): MagicError {
  return new MagicError(
    "upstream_error",
    `the answer of ${place(url)} ${what}: ${(error as Error).message.slice(0, 200)}`,
    { cause: error },
  );
}

/** The name of the character set that an answer begins with the mark of, that its headers say it is in, or its XML declaration. */
export function charsetOf({ body, headers }: Answer): string {
  const mark = body.toString("latin1", 0, 2);
  if (mark === "\xff\xfe" || mark === "\xfe\xff") return mark === "\xff\xfe" ? "utf-16le" : "utf-16be";
  const [, named] = /charset\s*=\s*"?([\w.:-]+)/i.exec(headers["content-type"] ?? "") ?? [];
  const [, written] = /^<\?xml[^>]*\sencoding\s*=\s*["']([\w.:-]+)/.exec(body.toString("latin1", 0, 200)) ?? [];
  return named ?? written ?? "utf-8";
}

/** For the encoding that a manifest names, or the answer does: what is no text in it makes it throw. */
export function strictDecoder(answer: Answer, named: string | undefined): TextDecoder {
  const encoding = named ?? (isUtf8(answer.body) ? "utf-8" : charsetOf(answer));
  // Python knows names such as latin-1, utf_16 and utf-8-sig besides.
  const label = encoding
    .toLowerCase()
    .replace(/^latin-?_?1$/, "latin1")
    .replaceAll("_", "-")
    .replace(/-sig$/, "");
  return new TextDecoder(label, { fatal: true });
}
