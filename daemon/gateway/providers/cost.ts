// Puts `cost_usd` into a whole answer's usage without serialising the answer again: the vendor's bytes stay as they are.
import { isAscii } from "node:buffer";
import { scanMembers } from "#daemon/gateway/format/scan.ts";
import type { WholeBody } from "./adapter.ts";
import { noAnswer } from "./failure.ts";

/** Bytes up to which an answer is put together as a text. */
const SHORT = 64 * 1024;
const USAGE = '"usage"';

type Answer = Readonly<Record<string, unknown>>;

/** What came, as it came and as it reads. */
export interface ParsedAnswer {
  readonly body: Buffer;
  readonly ascii: boolean;
  readonly text: string;
  readonly answer: Answer;
}

/** The body with `cost_usd` in the top-level `usage`; null where that is no object, or has one already. `undefined` leaves it as it is. */
export function spliceCost(parsed: ParsedAnswer, price: number | null | undefined): WholeBody | null {
  const { body, text } = parsed;
  const usage = parsed.answer["usage"];
  if (typeof usage !== "object" || usage === null || Array.isArray(usage)) return null;
  if (price === undefined) return body;
  if ("cost_usd" in usage) return null;
  // As the first member: where an object begins is found sooner than where it ends.
  const added = `"cost_usd":${JSON.stringify(price)}${Object.keys(usage).length === 0 ? "" : ","}`;
  const only = startOfOnlyUsage(parsed);
  if (only > 0) return text.slice(0, only) + added + text.slice(only);
  // A character for each byte.
  const { places, members } = scanMembers(body.toString("latin1"), ["usage"]);
  const [place] = places;
  // Of two members of a name it might not be the one that counts.
  if (!place || members !== Object.keys(parsed.answer).length) return null;
  const start = place.start + 1;
  return Buffer.concat([body.subarray(0, start), Buffer.from(added), body.subarray(start)]);
}

// Where the usage's members begin in a short answer of ASCII that says `"usage"` once and writes no ASCII as an escape: that one is then the
// key of the top level. 0 elsewhere, for the scanner to find it.
function startOfOnlyUsage({ body, ascii, text }: ParsedAnswer): number {
  if (!ascii || body.length > SHORT) return 0;
  const at = text.indexOf(USAGE);
  const behind = at + USAGE.length;
  if (text.includes(USAGE, behind) || (text.includes("\\") && text.includes("\\u00"))) return 0;
  return text.indexOf("{", behind) + 1;
}

/** A JSON object that is no error. `parse`: for answers with calls as objects, whose numbers are written again. */
export function parseAnswer(body: Buffer, parse?: (text: string) => unknown): Answer {
  return readAnswer(body, parse).answer;
}

/** The same, for who puts something into it. */
export function readAnswer(body: Buffer, parse: (text: string) => unknown = JSON.parse): ParsedAnswer {
  const ascii = isAscii(body);
  // Read as Latin-1, ASCII costs half.
  const text = body.toString(ascii ? "latin1" : "utf8");
  let answer: unknown;
  try {
    answer = parse(text);
  } catch {
    throw noAnswer("is not valid JSON");
  }
  if (typeof answer !== "object" || answer === null || Array.isArray(answer)) {
    throw noAnswer("is no JSON object");
  }
  return { body, ascii, text, answer: answer as Answer };
}
