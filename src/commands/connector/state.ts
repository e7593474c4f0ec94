// The state that --state gives: as it is, in the line that it came in, or in the messages of Airbyte's protocol, one of which is the stream's.
import { MagicError } from "#contract/errors.ts";
import { fields } from "#contract/json-object.ts";

/** Undefined: it has none for the stream. @throws MagicError `usage` for what is no state. */
export function stateOf(given: unknown, stream: string): unknown {
  if (given === null) return undefined;
  if (Array.isArray(given)) return given.map((each) => stateOf(each, stream)).findLast((each) => each !== undefined);
  if (typeof given !== "object")
    throw new MagicError("usage", "--state takes an object that an earlier read gave, or Airbyte's state messages.");
  const message = fields(given);
  if (/^state$/i.test(String(message["type"])) && message["state"] !== undefined)
    return stateOf(message["state"], stream);
  if (message["type"] === "LEGACY") return fields(message["data"])[stream];
  const states = fields(message["global"])["stream_states"] ?? [message["stream"]];
  const named = Array.isArray(states) ? states.map(fields) : [];
  if (!named.some((each) => each["stream_descriptor"])) return given;
  return named.find((each) => fields(each["stream_descriptor"])["name"] === stream)?.["stream_state"];
}
