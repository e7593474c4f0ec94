// How much an answer of OpenAI's format says, for the estimate of one that its server did not count: the pieces of a stream come to the same
// as the whole.
import { fields } from "#contract/json-object.ts";
import { type Fields, inParts } from "./conform.ts";

/** What a call takes beside its name and arguments. */
const OF_A_CALL = 8;

/** Letters of a message, or of a delta: every chunk comes through here. */
export function lettersOf(said: Fields): number {
  const { content, tool_calls: calls, function_call: old } = said;
  let letters = length(said["reasoning_content"] ?? said["reasoning"]) + length(said["refusal"]);
  if (typeof content === "string") letters += content.length;
  else if (Array.isArray(content)) {
    const parts = inParts(content);
    letters += length(parts.content) + length(parts.reasoning_content);
  }
  if (Array.isArray(calls))
    for (const call of calls) letters += lettersOfCall(fields(fields(call)["function"] ?? fields(call)["custom"]));
  return old ? letters + lettersOfCall(fields(old)) : letters;
}

// The name comes with a call's first piece.
function lettersOfCall({ name, arguments: given, input }: Fields): number {
  const args = given ?? input;
  const said = typeof args === "object" && args !== null ? JSON.stringify(args).length : length(args);
  return length(name) > 0 ? length(name) + OF_A_CALL + said : said;
}

function length(text: unknown): number {
  return typeof text === "string" ? text.length : 0;
}
