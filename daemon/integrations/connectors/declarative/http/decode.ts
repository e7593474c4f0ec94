// The bytes of an answer -> values: JSON, JSON lines, CSV, XML, gzip, zip. A page is one or several values.
import { gunzipSync } from "node:zlib";
import { parse as parseCsv } from "csv-parse/sync";
import { XMLParser } from "fast-xml-parser";
import { unzipSync } from "fflate";
import { MagicError } from "#contract/errors.ts";
import { type Component, optionalChild, optionalText, refuseCustom, typeOf } from "../manifest/component.ts";
import type { HttpResponse } from "./client.ts";

/** What one page holds: each value goes through the extractor. */
export type Decode = (response: Pick<HttpResponse, "body" | "headers" | "url">) => unknown[];

/** A compressed answer must not unfold without bound. */
const MAX_DECOMPRESSED = 512 * 1024 * 1024;

export function decoderOf(component: Component | undefined): Decode {
  const type = component ? typeOf(component) : "JsonDecoder";
  if (type === "JsonDecoder") return (response) => [json(response)];
  if (type === "JsonlDecoder") return (response) => lines(response).map((line) => parseJson(line, response.url));
  if (type === "IterableDecoder") return (response) => lines(response).map((record) => ({ record }));
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

const decodeText = (body: Buffer): string => body.toString("utf8").replace(/^\uFEFF/, "");

function json(response: Parameters<Decode>[0]): unknown {
  const text = decodeText(contentDecoded(response));
  return text.trim() === "" ? {} : parseJson(text, response.url);
}

// A reviver costs several times the parsing itself: it is for pages that may hold such a number.
const HUGE = /[[:,\s]-?\d{16}|^-?\d{16}|\d[eE]\+?\d{3}/;

/** Integers beyond 2^53, and what is more than a double can be, come as text. Throws upstream_error for what is no JSON. */
export function parseJson(text: string, url: string): unknown {
  try {
    return HUGE.test(text) ? JSON.parse(text, exactNumbers) : JSON.parse(text);
  } catch (error) {
    throw new MagicError(
      "upstream_error",
      `the answer of ${place(url)} is not JSON: ${(error as Error).message.slice(0, 200)}`,
    );
  }
}

// JavaScript would round an id beyond 2^53, and make 1e400 infinite, which is null in JSON: they stay text as they were written.
function exactNumbers(this: unknown, _key: string, value: unknown, context?: { source?: string }): unknown {
  if (typeof value !== "number" || Number.isSafeInteger(value) || context?.source === undefined) return value;
  return !Number.isFinite(value) || /^-?\d+$/.test(context.source) ? context.source : value;
}

const place = (url: string): string => (URL.canParse(url) ? new URL(url).origin + new URL(url).pathname : url);

function lines(response: Parameters<Decode>[0]): string[] {
  return decodeText(contentDecoded(response))
    .split(/\r?\n/)
    .filter((line) => line.trim() !== "");
}

// Attributes are @name and text is #text, as in xmltodict, which the manifests were written against.
const parser = new XMLParser({
  ignoreAttributes: false,
  attributeNamePrefix: "@",
  textNodeName: "#text",
  parseTagValue: false,
  parseAttributeValue: false,
  processEntities: true,
});

function xml(response: Parameters<Decode>[0]): unknown {
  try {
    const { "?xml": _declaration, ...document } = parser.parse(decodeText(contentDecoded(response))) as Record<
      string,
      unknown
    >;
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
  const delimiter = (optionalText(component, "delimiter") ?? ",").replaceAll("\\t", "\t");
  const encoding = (optionalText(component, "encoding") ?? "utf-8").toLowerCase();
  const nulls = Array.isArray(component["set_values_to_none"]) ? component["set_values_to_none"] : [];
  const absent: Record<string, null> = {};
  try {
    // Python knows names such as latin-1 and utf_16 besides.
    const name = encoding.replace(/^latin-?_?1$/, "latin1").replaceAll("_", "-");
    const text = new TextDecoder(name).decode(contentDecoded(response));
    return parseCsv(text, {
      columns: (names: string[]) => {
        for (const name of names) absent[name] = null;
        return names;
      },
      delimiter,
      bom: true,
      skip_empty_lines: true,
      relax_column_count: true,
      cast: (value) => (nulls.includes(value) ? null : value),
      // A row that is too short has nothing in its last columns.
      on_record: (record: Record<string, unknown>) => ({ ...absent, ...record }),
    });
  } catch (error) {
    throw new MagicError(
      "upstream_error",
      `the answer of ${place(response.url)} is not CSV: ${(error as Error).message.slice(0, 200)}`,
    );
  }
}

function items(value: unknown, path: string): unknown[] {
  let at = value;
  for (const part of path.split(".").filter((each) => each && each !== "item"))
    at = (at as Record<string, unknown> | undefined)?.[part];
  return Array.isArray(at) ? at : [];
}

// Clients undo Content-Encoding themselves; a body that still carries it is undone here.
function contentDecoded({ body, headers, url }: Parameters<Decode>[0]): Buffer {
  return /^(x-)?gzip$/i.test(headers["content-encoding"] ?? "") ? gunzip(body, url) : body;
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
