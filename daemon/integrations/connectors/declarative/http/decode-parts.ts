// Answers of many rows, some rows at a time: as values, a report of a hundred megabytes would be ten times that.
import { isUtf8 } from "node:buffer";
import { type Component, optionalChild, typeOf } from "../manifest/component.ts";
import type { Answer } from "./answer.ts";
import { csvInParts, fileInParts } from "./csv.ts";
import { type Decode, decoderOf, type Lost } from "./decode.ts";
import { gunzip, unzip } from "./unpack.ts";

/** What an answer holds, a part at a time: each value goes through the extractor. */
export type DecodeParts = (answer: Answer) => AsyncIterable<unknown[]>;

const SLICE = 1024 * 1024;
const NEWLINE = 0x0a;

/** Answers of other forms are one part. */
export function partsDecoderOf(component: Component | undefined, lost: Lost): DecodeParts {
  return rowsDecoderOf(component, lost) ?? oneOf(decoderOf(component, lost));
}

/** A ResponseToFileExtractor's. */
export const filePartsOf =
  (extractor: Component): DecodeParts =>
  (answer) =>
    fileInParts(answer, extractor);

/** Null: the form has no rows. */
export function rowsDecoderOf(component: Component | undefined, lost: Lost): DecodeParts | null {
  if (!component) return null;
  const type = typeOf(component);
  if (type === "JsonlDecoder") return (answer) => lines(answer, decoderOf(component, lost));
  if (type === "CsvDecoder") return (answer) => csvInParts(answer, component);
  if (type !== "GzipDecoder" && type !== "ZipfileDecoder") return null;
  const inner = rowsDecoderOf(optionalChild(component, "decoder"), lost);
  if (!inner) return null;
  return async function* (answer) {
    const bodies = type === "GzipDecoder" ? [gunzip(answer.body, answer.url)] : unzip(answer.body, answer.url);
    for (const body of bodies) yield* inner({ ...answer, body });
  };
}

function oneOf(decode: ReturnType<typeof decoderOf>): DecodeParts {
  return async function* (answer) {
    yield decode(answer);
  };
}

async function* lines(answer: Answer, decode: Decode): AsyncGenerator<unknown[]> {
  const { body } = answer;
  // A character set may have the newline's byte within a character.
  if (!isUtf8(body)) {
    yield decode(answer);
    return;
  }
  for (let at = 0; at < body.length; ) {
    const newline = body.indexOf(NEWLINE, at + SLICE);
    const end = newline < 0 ? body.length : newline + 1;
    yield decode({ ...answer, body: body.subarray(at, end) });
    at = end;
  }
}
