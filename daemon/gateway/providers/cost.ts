// Puts `cost_usd` into a whole answer's usage without serialising the answer again: the vendor's bytes stay as they are.
import { scanBody } from "#daemon/gateway/format/scan.ts";
import { failure, UpstreamError } from "./failure.ts";

type Answer = Record<string, unknown>;

/** The bytes with `cost_usd` as the last member of the top-level `usage`; null where that is no object. `undefined` leaves them as they are. */
export function spliceCost(body: Buffer, price: number | null | undefined): Buffer | null {
  const member = scanBody(body, 1000).members.get("usage");
  if (!member || body[member.start] !== 0x7b) return null;
  if (price === undefined) return body;
  const brace = member.end - 1;
  const empty = /^\{\s*$/.test(body.toString("latin1", member.start, Math.min(brace, member.start + 64)));
  const added = `${empty ? "" : ","}"cost_usd":${JSON.stringify(price)}`;
  const priced = Buffer.allocUnsafe(body.length + added.length);
  body.copy(priced, 0, 0, brace);
  priced.write(added, brace, "latin1");
  body.copy(priced, brace + added.length, brace);
  return priced;
}

/** A JSON object that is no error. `parse`: for answers with calls as objects, whose numbers are written again. */
export function parseAnswer(body: Buffer, parse: (text: string) => unknown = JSON.parse): Answer {
  let answer: unknown;
  try {
    answer = parse(body.toString("utf8"));
  } catch {
    throw new UpstreamError(failure("protocol", "The provider's answer is not valid JSON.", { upstreamStatus: 200 }));
  }
  if (typeof answer !== "object" || answer === null || Array.isArray(answer)) {
    throw new UpstreamError(failure("protocol", "The provider's answer is no JSON object.", { upstreamStatus: 200 }));
  }
  return answer as Answer;
}
