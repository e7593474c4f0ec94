// Names of objects as people write them: `schema.name`, parts taken as they are, double quotes around parts that hold dots or quotes.
import { MagicError } from "#contract/errors.ts";

export interface ObjectName {
  /** null: the system's default schema, database or namespace. */
  readonly schema: string | null;
  readonly name: string;
}

/** Parses `name`, `schema.name`, `"a.b"."c""d"`. Nothing is folded to another case. */
export function parseObjectName(text: string): ObjectName {
  const parts: string[] = [];
  let at = 0;
  while (at <= text.length) {
    if (text[at] === '"') {
      let part = "";
      for (at++; ; at++) {
        if (at >= text.length) throw invalid(text, "a double quote is not closed");
        if (text[at] !== '"') part += text[at];
        else if (text[at + 1] === '"') part += text[at++];
        else break;
      }
      at++;
      if (at < text.length && text[at] !== ".") throw invalid(text, "a dot must follow a closing double quote");
      parts.push(part);
    } else {
      const dot = text.indexOf(".", at);
      parts.push(text.slice(at, dot < 0 ? text.length : dot));
      at = dot < 0 ? text.length : dot;
    }
    if (at >= text.length) break;
    at++;
  }
  if (parts.length > 2 || parts.some((part) => part === "")) throw invalid(text, "write it as schema.name");
  const [first = "", second] = parts;
  if (parts.some((part) => part.includes("\0"))) throw invalid(text, "it holds a NUL character");
  return second === undefined ? { schema: null, name: first } : { schema: first, name: second };
}

function invalid(text: string, why: string): MagicError {
  return new MagicError("invalid_request", `The object name ${JSON.stringify(text)} cannot be read: ${why}.`);
}

/** The name as parseObjectName reads it. */
export function formatObjectName(object: ObjectName): string {
  const part = (text: string) => (/[."]/.test(text) || text === "" ? `"${text.replaceAll('"', '""')}"` : text);
  return object.schema === null ? part(object.name) : `${part(object.schema)}.${part(object.name)}`;
}
