// Claude refuses a whole request for one member at the top of a tool's schema whose name is not `[a-zA-Z0-9_.-]{1,64}` (`filter[id]`, `$top`, words of
// other alphabets). Such a member goes to it under a name made of its own, and stands under its own again in the calls that come back.
import { isObject } from "#contract/json-object.ts";
import { unescapedPart } from "#contract/json-pointer.ts";
import { objectOf, parseExact } from "#daemon/gateway/format/exact-json.ts";
import { percentDecoded } from "#shared/percent-encoding.ts";
import { fittingNames, ownNames } from "../fitting-names.ts";
import type { Schema } from "../json-schema.ts";
import { inWords } from "./schema.ts";

type Names = ReadonlyMap<string, string>;

/** By the tool's name, where it has such members: their own names by those that Claude knows. */
export type MemberNames = ReadonlyMap<string, Names>;

const TAKEN = /^[a-zA-Z0-9_.-]{1,64}$/;
/** Leaves room for a number. */
const LONGEST = 56;

/** The schema of the tool's input with names that Claude takes; `names` learns what they stand for. */
export function withNames(tool: string, schema: Schema, names: Map<string, Names>): Schema {
  const { properties } = schema;
  if (!isObject(properties) || Object.keys(properties).every((name) => TAKEN.test(name))) return schema;
  const sent = fittingNames(Object.keys(properties), TAKEN, plainName);
  names.set(tool, ownNames(sent));
  const members = Object.entries(properties).map(([own, member]) => {
    const name = sent.get(own) ?? own;
    return [name, name === own || !isObject(member) ? member : inWords(member, [`name: ${JSON.stringify(own)}`])];
  });
  const { required } = schema;
  const named = {
    ...schema,
    properties: Object.fromEntries(members),
    ...(Array.isArray(required) ? { required: required.map((own) => sent.get(own) ?? own) } : {}),
  };
  return led(named, sent) as Schema;
}

function plainName(own: string): string {
  return own.replaceAll(/[^a-zA-Z0-9_.-]+/g, "_").slice(0, LONGEST) || "_";
}

// Generators name a member by where it first stood (`#/properties/filter[id]`): such references lead to where it stands now.
function led(node: unknown, sent: Names): unknown {
  if (Array.isArray(node)) return node.map((one) => led(one, sent));
  if (!isObject(node)) return node;
  return Object.fromEntries(
    Object.entries(node).map(([key, value]) => {
      return [key, key === "$ref" && typeof value === "string" ? ledReference(value, sent) : led(value, sent)];
    }),
  );
}

function ledReference(reference: string, sent: Names): string {
  return reference.replace(/^(#\/properties\/)([^/]+)/, (_all, root: string, part: string) => {
    return root + (sent.get(unescapedPart(percentDecoded(part))) ?? part);
  });
}

/** An earlier call's input as Claude knows the members now. */
export function sentInput(input: Record<string, unknown>, names: Names | undefined): Record<string, unknown> {
  return names ? renamed(input, new Map([...names].map(([name, own]) => [own, name]))) : input;
}

/** The input of a call with the members' own names. */
export function ownInput(input: unknown, names: Names | undefined): unknown {
  return names && objectOf(input) ? renamed(input as Record<string, unknown>, names) : input;
}

/** The same of its text; as it is where it is cut short. */
export function ownText(text: string, names: Names): string {
  try {
    return JSON.stringify(ownInput(parseExact(text), names));
  } catch {
    return text;
  }
}

function renamed(input: Record<string, unknown>, names: Names): Record<string, unknown> {
  return Object.fromEntries(Object.entries(input).map(([name, value]) => [names.get(name) ?? name, value]));
}
