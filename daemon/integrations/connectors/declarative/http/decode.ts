// The bytes of an answer -> values: JSON, JSON lines, CSV, XML, gzip, zip. A page is one or several values.
import { isUtf8 } from "node:buffer";
import { XMLParser } from "fast-xml-parser";
import { MagicError } from "#contract/errors.ts";
import { ExactNumber } from "#shared/exact-number.ts";
import { type Component, optionalChild, optionalText, refuseCustom, typeOf } from "../manifest/component.ts";
import { type Answer, charsetOf, place, unreadable } from "./answer.ts";
import { csv } from "./csv.ts";
import { checkBounds } from "./json-bounds.ts";
import { gunzip, unzip } from "./unpack.ts";

/** What one page holds: each value goes through the extractor. */
export type Decode = (response: Answer) => unknown[];

/** Lines and tags of an answer: each becomes an object, up to a hundred times its own two or three bytes. */
const MAX_PARTS = 10_000_000;

/** Is told of rows that could not be read. */
export type Lost = (message: string) => void;

/** @param lost absent: a row that cannot be read fails the answer. */
export function decoderOf(component: Component | undefined, lost?: Lost): Decode {
  const type = component ? typeOf(component) : "JsonDecoder";
  if (type === "JsonDecoder") return (response) => [json(response)];
  if (type === "JsonlDecoder") return (response) => jsonLines(response, lost);
  if (type === "IterableDecoder") return (response) => allLines(response).map((record) => ({ record }));
  if (type === "XmlDecoder") return (response) => [xml(response)];
  if (type === "CsvDecoder") return (response) => csv(response, component as Component);
  if (type === "JsonItemsDecoder")
    return (response) => items(json(response), optionalText(component as Component, "items_path") ?? "");
  if (type === "GzipDecoder" || type === "ZipfileDecoder") {
    const inner = decoderOf(optionalChild(component as Component, "decoder"), lost);
    const open = type === "GzipDecoder" ? (body: Buffer, url: string) => [gunzip(body, url)] : unzip;
    return (response) => open(response.body, response.url).flatMap((body) => inner({ ...response, body }));
  }
  return refuseCustom(component as Component);
}

// UTF-8 wherever it can be: vendors name character sets that they do not use.
function decodeText(answer: Answer): string {
  const { body } = answer;
  const text = isUtf8(body) ? body.toString("utf8") : decoderNamed(charsetOf(answer)).decode(body);
  return text.replace(/^\uFEFF/, "");
}

function decoderNamed(label: string): { decode(body: Buffer): string } {
  try {
    return new TextDecoder(label);
  } catch {
    return new TextDecoder();
  }
}

function json(response: Answer): unknown {
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
    throw unreadable(url, "is not JSON", error);
  }
}

const NO_NUMBER = /[[:,\s]-?(?:NaN|Infinity)\b/;
// A text that nothing closes reaches to the end: its end is not looked for at each of its quotes.
const NO_NUMBERS = /"(?:[^"\\]|\\.)*"?|-?\b(?:NaN|Infinity)\b/g;

// JavaScript would round an id beyond 2^53, and make 1e400 infinite, which is null in JSON: they stay text as they were written.
function exactNumbers(this: unknown, _key: string, value: unknown, context?: { source?: string }): unknown {
  const written = context?.source;
  if (typeof value !== "number" || written === undefined || isSame(value, written)) return value;
  return Number.isFinite(value) && !/^-?\d+$/.test(written) ? new ExactNumber(written) : written;
}

function isSame(value: number, written: string): boolean {
  // A longer one is text even where a double happens to come out alike: an id ending in zeros is of one kind with its neighbours.
  if (/^-?\d+$/.test(written)) return Number.isSafeInteger(value);
  if (!Number.isFinite(value)) return false;
  const [a, b] = [decimalOf(String(value)), decimalOf(written)];
  return a.digits === b.digits && a.exponent === b.exponent;
}

// 1.50 and 15e-1 are one number.
function decimalOf(text: string): { readonly digits: string; readonly exponent: number } {
  const [, sign, whole = "", fraction = "", power = "0"] =
    /^(-?)(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d+))?$/.exec(text) ?? [];
  const digits = (whole + fraction).replace(/^0+/, "");
  const kept = digits.replace(/(?<!0)0+$/, "");
  if (kept === "") return { digits: "0", exponent: 0 };
  return { digits: sign + kept, exponent: Number(power) - fraction.length + digits.length - kept.length };
}

function allLines(response: Answer): string[] {
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

// A line that is no JSON keeps nobody from the others. Where none is, or the last one breaks off, the answer itself is broken.
function jsonLines(response: Answer, lost: Lost | undefined): unknown[] {
  const lines = allLines(response).filter((line) => line.trim() !== "");
  const ends = response.body.at(-1) === 0x0a;
  const read: unknown[] = [];
  let left = 0;
  for (const [at, line] of lines.entries()) {
    try {
      read.push(parseJson(line, response.url));
    } catch (error) {
      const broken = at === lines.length - 1 && (!ends || read.length === 0);
      if (!lost || broken || !(error instanceof MagicError && error.cause !== undefined)) throw error;
      left++;
    }
  }
  if (left > 0) lost?.(`${left} of ${lines.length} lines of ${place(response.url)} are not JSON: they were left out`);
  return read;
}

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
  ignoreDeclaration: true,
  ignorePiTags: true,
});

function xml(response: Answer): unknown {
  const text = decodeText(response);
  checkParts(text, "<", "tags", response.url);
  try {
    // The parser takes half a document, or a page of HTML, for a whole one.
    return emptyAsNull(parser.parse(text, text.trim() !== ""));
  } catch (error) {
    throw unreadable(response.url, "is not XML", error);
  }
}

function emptyAsNull(value: unknown): unknown {
  if (value === "") return null;
  if (Array.isArray(value)) return value.map(emptyAsNull);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, each]) => [key, emptyAsNull(each)]));
}

function items(value: unknown, path: string): unknown[] {
  let at = value;
  for (const part of path.split(".").filter((each) => each && each !== "item"))
    at = (at as Record<string, unknown> | undefined)?.[part];
  return Array.isArray(at) ? at : [];
}
