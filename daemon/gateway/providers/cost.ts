// Puts `cost_usd` into a whole answer's usage without serialising the answer again: the vendor's bytes stay as they are.
import { isAscii } from "node:buffer";
import { scanMembers } from "#daemon/gateway/format/scan.ts";
import { stringEnd } from "#shared/json-text.ts";
import { noAnswer } from "./failure.ts";

/** Bytes up to which an answer is put together as a text. */
const SHORT = 64 * 1024;

type Answer = Readonly<Record<string, unknown>>;

/** What came, as it came and as it reads. */
export interface ParsedAnswer {
  readonly body: Buffer;
  readonly text: string;
  readonly answer: Answer;
}

/** The bytes with `cost_usd` as the last member of the top-level `usage`; null where that is no object. `undefined` leaves them as they are. */
export function spliceCost(parsed: ParsedAnswer, price: number | null | undefined): Buffer | null {
  const { body, text } = parsed;
  const usage = parsed.answer["usage"];
  if (typeof usage !== "object" || usage === null || Array.isArray(usage)) return null;
  if (price === undefined) return body;
  const added = `${Object.keys(usage).length === 0 ? "" : ","}"cost_usd":${JSON.stringify(price)}`;
  const only = endOfOnlyUsage(parsed);
  if (only > 0) return Buffer.from(text.slice(0, only) + added + text.slice(only), "latin1");
  // A character for each byte.
  const { places, members } = scanMembers(body.toString("latin1"), ["usage"]);
  const [place] = places;
  // Of two members of a name it might not be the one that counts.
  if (!place || members !== Object.keys(parsed.answer).length) return null;
  const end = place.end - 1;
  return Buffer.concat([body.subarray(0, end), Buffer.from(added), body.subarray(end)]);
}

// Where the usage ends in a short answer of ASCII that says `"usage"` once and writes no ASCII as an escape: that one is then the key of the
// top level. 0 elsewhere, for the scanner to find it.
function endOfOnlyUsage({ body, text }: ParsedAnswer): number {
  if (body.length > SHORT || !isAscii(body)) return 0;
  const at = text.lastIndexOf('"usage"');
  if (text.indexOf('"usage"') !== at || text.includes("\\u00")) return 0;
  let depth = 0;
  for (let i = text.indexOf("{", at); i < text.length; i++) {
    const code = text.charCodeAt(i);
    if (code === 0x22) i = stringEnd(text, i) - 1;
    else if (code === 0x7b) depth++;
    else if (code === 0x7d && --depth === 0) return i;
  }
  return 0;
}

/** A JSON object that is no error. `parse`: for answers with calls as objects, whose numbers are written again. */
export function parseAnswer(body: Buffer, parse?: (text: string) => unknown): Answer {
  return readAnswer(body, parse).answer;
}

/** The same, for who puts something into it. */
export function readAnswer(body: Buffer, parse: (text: string) => unknown = JSON.parse): ParsedAnswer {
  const text = body.toString("utf8");
  let answer: unknown;
  try {
    answer = parse(text);
  } catch {
    throw noAnswer("is not valid JSON");
  }
  if (typeof answer !== "object" || answer === null || Array.isArray(answer)) {
    throw noAnswer("is no JSON object");
  }
  return { body, text, answer: answer as Answer };
}
