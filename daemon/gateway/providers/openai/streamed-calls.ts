// The tool calls of a stream of OpenAI's format: which call each piece belongs to, where a server leaves out its id or its place, gives two one
// place or one id, or says its name late. Clients take a call's first piece for the one that has its id and its name, and its place for one in a list.
import { fields, list, string } from "#contract/json-object.ts";
import { brokenStream } from "../failure.ts";
import { freshId } from "../tool-id.ts";

/** Of a choice: no model makes so many. */
const MOST_CALLS = 10_000;
/** Characters of arguments that wait for names. */
const MOST_HELD = 1024 * 1024;

type Fields = Record<string, unknown>;

/** A tool call of a stream. */
interface Call {
  /** As it was given out. */
  readonly id: string;
  /** As the server says it; empty for none. */
  readonly own: string;
  /** Its place, given with its name: a call that waits for one leaves no hole before those that have theirs. */
  at: number;
  /** The arguments that came before its name. */
  held: string;
}

/** The tool calls of a choice, as its stream has told them so far. */
export interface Calls {
  newest: Call | undefined;
  /** How many have been given out. */
  told: number;
  /** By id, and by the place that the server gives (a call without one has its own): the one that began there last. */
  readonly begun: Map<number | string, Call>;
  /** Those whose names have not come. */
  readonly nameless: Set<Call>;
  /** Characters that have waited for names. */
  held: number;
}

export function noCalls(): Calls {
  return { newest: undefined, told: 0, begun: new Map(), nameless: new Set(), held: 0 };
}

/**
 * Takes note of what a sound delta says; false where a call begins without its id, its type or its name, where two are given one place, as Gemini's
 * imitation of OpenAI does, or a place is left out, as imitations do that count the text before the calls: OpenAI's own client falls over the hole.
 */
export function soundPlaces(delta: Fields, calls: Calls): boolean {
  for (const piece of list(delta["tool_calls"]).map(fields)) {
    const index = Number(piece["index"]);
    const id = string(piece["id"]);
    const known = calls.begun.get(index);
    if (known) {
      if (known.at !== index || calls.nameless.has(known) || (id !== "" && id !== known.id)) return false;
    } else if (index === calls.told && id !== "" && !calls.begun.has(id) && piece["type"] && nameIn(piece) !== "")
      tell(begin(calls, index, id), calls);
    else return false;
  }
  return true;
}

function begin(calls: Calls, place: number, own: string): Call {
  const id = own === "" || calls.begun.has(own) ? freshId() : own;
  const call = { id, own, at: -1, held: "" };
  if (calls.told + calls.nameless.size >= MOST_CALLS)
    throw brokenStream(`The provider's stream makes more than ${MOST_CALLS} calls.`);
  calls.newest = call;
  calls.begun.set(place, call).set(id, call);
  calls.nameless.add(call);
  return call;
}

function tell(call: Call, calls: Calls): Call {
  if (calls.nameless.delete(call)) call.at = calls.told++;
  return call;
}

function nameIn(piece: Fields): string {
  return string(fields(piece["function"] ?? piece["custom"])["name"]);
}

/** The pieces of a delta as OpenAI has them. `over`: the choice ends, and with it the waiting for names. */
export function mendedPieces(given: unknown, calls: Calls, over: boolean): Fields[] {
  const pieces = list(given).flatMap((piece) => mendedPiece(fields(piece), calls));
  for (const call of over ? calls.nameless : []) pieces.push(opening(tell(call, calls), ""));
  return pieces;
}

// None where it is held until the call's name comes.
function mendedPiece(piece: Fields, calls: Calls): Fields[] {
  const call = callOf(piece, calls);
  if (isCustom(piece)) return [{ ...piece, index: tell(call, calls).at }];
  const { id, index: _index, type: _type, function: called, ...rest } = piece;
  const { name: given, arguments: text, ...more } = fields(called);
  const name = string(given);
  const args = typeof text === "string" ? text : text ? JSON.stringify(text) : null;
  if (calls.nameless.has(call)) {
    call.held += args ?? "";
    calls.held += args?.length ?? 0;
    if (calls.held > MOST_HELD)
      throw brokenStream(
        `The provider's stream holds more than ${MOST_HELD} characters of calls that it has not named.`,
      );
    if (name === "") return [];
    const { function: held, ...place } = opening(tell(call, calls), name);
    return [{ ...rest, ...place, function: { ...more, ...held } }];
  }
  const again = id && id === call.own ? { id: call.id, type: "function" } : {};
  const said = { ...more, ...(name ? { name } : {}), ...(args === null ? {} : { arguments: args }) };
  return [{ ...rest, index: call.at, ...again, function: said }];
}

function opening({ id, at, held }: Call, name: string) {
  return { index: at, id, type: "function", function: { name, arguments: held } };
}

// The call that a piece belongs to; without a place that is the one of its id, or the newest.
function callOf(piece: Fields, calls: Calls): Call {
  const id = string(piece["id"]);
  const place = Number.isInteger(piece["index"]) ? Number(piece["index"]) : null;
  const known = place === null && id === "" ? calls.newest : calls.begun.get(place ?? id);
  const named = known && !calls.nameless.has(known) && nameIn(piece) !== "";
  const another = named && (id === "" ? place === null : id !== known.own);
  if (known && !another) return known;
  return begin(calls, place ?? calls.told, id);
}

/** The specification's chunks know functions alone; OpenAI streams calls of custom tools all the same. Snowflake has an empty one beside each function. */
export function isCustom(piece: Fields): boolean {
  return typeof piece["custom"] === "object" && piece["custom"] !== null && piece["type"] !== "function";
}
