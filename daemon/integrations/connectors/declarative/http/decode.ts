// The bytes of an answer -> values: JSON, JSON lines, CSV, XML, gzip, zip. A page is one or several values.
import { isUtf8 } from "node:buffer";
import { gunzipSync, inflateSync } from "node:zlib";
import { parse as parseCsv } from "csv-parse/sync";
import { XMLParser } from "fast-xml-parser";
import { unzipSync } from "fflate";
import { MagicError } from "#contract/errors.ts";
import { ExactNumber } from "#shared/exact-number.ts";
import { unescapePython } from "../jinja/lexer.ts";
import { type Component, optionalChild, optionalText, refuseCustom, typeOf } from "../manifest/component.ts";
import type { HttpResponse } from "./client.ts";
import { checkBounds } from "./json-bounds.ts";

/** What one page holds: each value goes through the extractor. */
export type Decode = (response: Pick<HttpResponse, "body" | "headers" | "url">) => unknown[];

/** A compressed answer must not unfold without bound. */
const MAX_DECOMPRESSED = 256 * 1024 * 1024;
/** Lines and tags of an answer: each becomes an object, up to a hundred times its own two or three bytes. */
const MAX_PARTS = 10_000_000;
const MAX_ROW = 16 * 1024 * 1024;

export function decoderOf(component: Component | undefined): Decode {
  const type = component ? typeOf(component) : "JsonDecoder";
  if (type === "JsonDecoder") return (response) => [json(response)];
  if (type === "JsonlDecoder") return (response) => lines(response).map((line) => parseJson(line, response.url));
  if (type === "IterableDecoder") return (response) => allLines(response).map((record) => ({ record }));
  if (type === "XmlDecoder") return (response) => [xml(response)];
  if (type === "CsvDecoder") return (response) => csv(response, component as Component);
  if (type === "JsonItemsDecoder")
    return (response) => items(json(response), optionalText(component as Component, "items_path") ?? "");
  if (type === "GzipDecoder" || type === "ZipfileDecoder") {
    const inner = decoderOf(optionalChild(component as Component, "decoder"));
    const open = type === "GzipDecoder" ? (body: Buffer, url: string) => [gunzip(body, url)] : unzip;
    return (response) => open(response.body, response.url).flatMap((body) => inner({ ...response, body }));
  }
  return refuseCustom(component as Component);
}

// UTF-8 wherever it can be: vendors name character sets that they do not use.
function decodeText({ body, headers }: Parameters<Decode>[0]): string {
  return (isUtf8(body) ? body.toString("utf8") : decoderNamed(charsetOf(body, headers)).decode(body)).replace(
    /^\uFEFF/,
    "",
  );
}

/** The text in the encoding that a manifest names; throws for bytes that are none in it. */
function textIn({ body, headers }: Parameters<Decode>[0], named: string | undefined): string {
  const encoding = named ?? (isUtf8(body) ? "utf-8" : charsetOf(body, headers));
  // Python knows names such as latin-1, utf_16 and utf-8-sig besides.
  const label = encoding
    .toLowerCase()
    .replace(/^latin-?_?1$/, "latin1")
    .replaceAll("_", "-")
    .replace(/-sig$/, "");
  return new TextDecoder(label, { fatal: true }).decode(body);
}

function charsetOf(body: Buffer, headers: Readonly<Record<string, string>>): string {
  const [, named] = /charset\s*=\s*"?([\w.:-]+)/i.exec(headers["content-type"] ?? "") ?? [];
  const [, written] = /^<\?xml[^>]*\sencoding\s*=\s*["']([\w.:-]+)/.exec(body.toString("latin1", 0, 200)) ?? [];
  return named ?? written ?? "utf-8";
}

function decoderNamed(label: string): { decode(body: Buffer): string } {
  try {
    return new TextDecoder(label);
  } catch {
    return new TextDecoder();
  }
}

function json(response: Parameters<Decode>[0]): unknown {
  const text = decodeText(response);
  return text.trim() === "" ? {} : parseJson(text, response.url);
}

// A reviver costs several times the parsing itself: it is for pages that may hold such a number.
const HUGE = /(?:^|[[:,\s])-?\d[\d.]{15}|\d[eE][+-]?\d{3}/;

/**
 * Integers beyond 2^53, and what is more than a double can be, come as text; fractions that no double is keep their digits. NaN and the
 * infinities, which Python's writers know, are null. Throws upstream_error for what is no JSON.
 */
export function parseJson(text: string, url: string): unknown {
  checkBounds(text, place(url));
  const parse = (json: string): unknown => (HUGE.test(json) ? JSON.parse(json, exactNumbers) : JSON.parse(json));
  try {
    return parse(text);
  } catch (error) {
    if (NO_NUMBER.test(text)) {
      try {
        return parse(text.replace(NO_NUMBERS, (found) => (found.startsWith('"') ? found : "null")));
      } catch {}
    }
    throw new MagicError(
      "upstream_error",
      `the answer of ${place(url)} is not JSON: ${(error as Error).message.slice(0, 200)}`,
    );
  }
}

const NO_NUMBER = /[[:,\s]-?(?:NaN|Infinity)\b/;
const NO_NUMBERS = /"(?:[^"\\]|\\.)*"|-?\b(?:NaN|Infinity)\b/g;

// JavaScript would round an id beyond 2^53, and make 1e400 infinite, which is null in JSON: they stay text as they were written.
function exactNumbers(this: unknown, _key: string, value: unknown, context?: { source?: string }): unknown {
  const written = context?.source;
  if (typeof value !== "number" || written === undefined || isSame(value, written)) return value;
  return Number.isFinite(value) && !/^-?\d+$/.test(written) ? new ExactNumber(written) : written;
}

function isSame(value: number, written: string): boolean {
  if (Number.isSafeInteger(value) && /^-?\d+$/.test(written)) return true;
  if (!Number.isFinite(value)) return false;
  const [a, b] = [decimalOf(String(value)), decimalOf(written)];
  return a.digits === b.digits && a.exponent === b.exponent;
}

// 1.50 and 15e-1 are one number.
function decimalOf(text: string): { readonly digits: string; readonly exponent: number } {
  const [, sign, whole = "", fraction = "", power = "0"] =
    /^(-?)(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d+))?$/.exec(text) ?? [];
  const digits = (whole + fraction).replace(/^0+/, "");
  const kept = digits.replace(/0+$/, "");
  if (kept === "") return { digits: "0", exponent: 0 };
  return { digits: sign + kept, exponent: Number(power) - fraction.length + digits.length - kept.length };
}

const place = (url: string): string => (URL.canParse(url) ? new URL(url).origin + new URL(url).pathname : url);

function allLines(response: Parameters<Decode>[0]): string[] {
  const text = decodeText(response);
  checkParts(text, "\n", "lines", response.url);
  return text === "" ? [] : text.replace(/\r?\n$/, "").split(/\r?\n/);
}

function checkParts(text: string, mark: string, name: string, url: string): void {
  if (text.length <= MAX_PARTS) return;
  let parts = 0;
  for (let at = text.indexOf(mark); at >= 0; at = text.indexOf(mark, at + 1))
    if (++parts > MAX_PARTS)
      throw new MagicError("upstream_error", `the answer of ${place(url)} holds more than ${MAX_PARTS} ${name}`);
}

const lines = (response: Parameters<Decode>[0]): string[] => allLines(response).filter((line) => line.trim() !== "");

// Attributes are @name and text is #text, as in xmltodict, which the manifests were written against.
const parser = new XMLParser({
  ignoreAttributes: false,
  attributeNamePrefix: "@",
  textNodeName: "#text",
  parseTagValue: false,
  parseAttributeValue: false,
  processEntities: true,
  // Characters by their number too.
  htmlEntities: true,
});

function xml(response: Parameters<Decode>[0]): unknown {
  const text = decodeText(response);
  checkParts(text, "<", "tags", response.url);
  try {
    // The parser takes half a document, or a page of HTML, for a whole one.
    const { "?xml": _declaration, ...document } = parser.parse(text, text.trim() !== "") as Record<string, unknown>;
    return emptyAsNull(document);
  } catch (error) {
    throw new MagicError(
      "upstream_error",
      `the answer of ${place(response.url)} is not XML: ${(error as Error).message.slice(0, 200)}`,
    );
  }
}

function emptyAsNull(value: unknown): unknown {
  if (value === "") return null;
  if (Array.isArray(value)) return value.map(emptyAsNull);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, each]) => [key, emptyAsNull(each)]));
}

function csv(response: Parameters<Decode>[0], component: Component): unknown[] {
  const delimiter = unescapePython(optionalText(component, "delimiter") ?? ",");
  const nulls = Array.isArray(component["set_values_to_none"]) ? component["set_values_to_none"] : [];
  const absent: Record<string, null> = {};
  try {
    const text = textIn(response, optionalText(component, "encoding"));
    checkParts(text, "\n", "lines", response.url);
    return parseCsv(text, {
      columns: (names: string[]) => {
        for (const name of names) absent[name] = null;
        return names;
      },
      delimiter,
      bom: true,
      skip_empty_lines: true,
      max_record_size: MAX_ROW,
      relax_column_count: true,
      relax_quotes: true,
      cast: (value, { header }) => (!header && nulls.includes(value) ? null : value),
      // A row that is too short has nothing in its last columns.
      on_record: (record: Record<string, unknown>) => ({ ...absent, ...record }),
    });
  } catch (error) {
    if (error instanceof MagicError) throw error;
    throw new MagicError(
      "upstream_error",
      `the answer of ${place(response.url)} is not CSV: ${(error as Error).message.slice(0, 200)}`,
    );
  }
}

/** What pandas, which the reference reads files with, takes for nothing. */
const NOTHING = [
  ...["", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN", "<NA>"],
  ...["N/A", "NA", "NULL", "NaN", "None", "n/a", "nan", "null"],
];

/** A ResponseToFileExtractor's file: CSV, compressed or not, whatever its headers say. */
export function fileDecoder(component: Component): Decode {
  const set_values_to_none = component["preserve_na_values"] === true ? [""] : NOTHING;
  return (response) => {
    const opened = inflated(gunzip(response.body, response.url));
    const body = opened.includes(0) ? Buffer.from(opened.filter((byte) => byte !== 0)) : opened;
    return csv({ ...response, body }, { type: "CsvDecoder", set_values_to_none });
  };
}

// Text may begin as compressed data would.
function inflated(body: Buffer): Buffer {
  try {
    return body[0] === 0x78 ? inflateSync(body, { maxOutputLength: MAX_DECOMPRESSED }) : body;
  } catch {
    return body;
  }
}

function items(value: unknown, path: string): unknown[] {
  let at = value;
  for (const part of path.split(".").filter((each) => each && each !== "item"))
    at = (at as Record<string, unknown> | undefined)?.[part];
  return Array.isArray(at) ? at : [];
}

// A body that is no gzip stays as it is.
function gunzip(body: Buffer, url: string): Buffer {
  if (body[0] !== 0x1f || body[1] !== 0x8b) return body;
  try {
    return gunzipSync(body, { maxOutputLength: MAX_DECOMPRESSED });
  } catch (error) {
    throw new MagicError(
      "upstream_error",
      `the gzip answer of ${place(url)} cannot be read: ${(error as Error).message}`,
    );
  }
}

function unzip(body: Buffer, url: string): Buffer[] {
  try {
    let total = 0;
    const files = unzipSync(body, {
      filter: (file) => {
        total += file.originalSize;
        if (total > MAX_DECOMPRESSED) throw new Error(`it holds more than ${MAX_DECOMPRESSED} bytes`);
        return !file.name.endsWith("/");
      },
    });
    return Object.values(files).map((file) => Buffer.from(file));
  } catch (error) {
    throw new MagicError(
      "upstream_error",
      `the zip answer of ${place(url)} cannot be read: ${(error as Error).message}`,
    );
  }
}
