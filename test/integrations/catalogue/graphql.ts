// GraphQL for mock vendors: one query operation, read as the specification has it (https://spec.graphql.org/October2021/), and answers that
// hold what was selected and nothing else. Records are the types: a field that they do not have cannot be asked for.
import type { Ask, Rec } from "./vendor.ts";

export interface Field {
  readonly name: string;
  /** Variables are replaced by what was sent; what was not sent is absent. */
  readonly args: Readonly<Record<string, unknown>>;
  readonly fields: readonly Field[];
}

/** The only field at the root of the query. Throws what is wrong with the request. */
export function rootOf(ask: Ask): Field {
  const { query, variables = {} } = (ask.body ?? {}) as { query?: string; variables?: Rec };
  if (typeof query !== "string") throw new Error("there is no query");
  const tokens = query.match(/[A-Za-z_]\w*|"(?:[^"\\]|\\.)*"|-?\d+(?:\.\d+)?|[^\s,]/g) ?? [];
  const reader = readerOf(tokens, variables);
  const fields = reader.operation();
  const [root] = fields;
  if (fields.length !== 1 || !root) throw new Error("ask for one thing at a time");
  return root;
}

/** `value` with the selected fields only. */
export function select(value: unknown, fields: readonly Field[]): unknown {
  if (Array.isArray(value)) return value.map((each) => select(each, fields));
  if (value === null || typeof value !== "object") {
    if (fields.length > 0 && value !== null) throw new Error(`a ${typeof value} has no fields`);
    return value;
  }
  if (fields.length === 0) throw new Error("an object must have a selection of subfields");
  return Object.fromEntries(
    fields.map((field) => {
      if (!Object.hasOwn(value, field.name)) throw new Error(`Cannot query field '${field.name}'`);
      return [field.name, select((value as Rec)[field.name], field.fields)];
    }),
  );
}

/** What is wrong with a field's arguments: `known` are their names. */
export function unknownArgument({ name, args }: Field, known: readonly string[]): string | undefined {
  const other = Object.keys(args).find((each) => !known.includes(each));
  return other && `Unknown argument '${other}' on field '${name}'`;
}

function readerOf(tokens: readonly string[], variables: Rec): { operation(): Field[] } {
  let at = 0;
  const declared = new Set<string>();
  const peek = (): string => tokens[at] ?? "";
  const next = (wanted?: string): string => {
    const token = tokens[at++] ?? "the end";
    if (wanted !== undefined && token !== wanted) throw new Error(`Syntax Error: '${wanted}' and not '${token}'`);
    return token;
  };
  const declarations = (): void => {
    next("(");
    while (peek() !== ")") {
      next("$");
      const name = next();
      next(":");
      let type = "";
      while (!["$", ")"].includes(peek())) type += next();
      declared.add(name);
      if (type.endsWith("!") && variables[name] === undefined) throw new Error(`Variable '$${name}' is required`);
    }
    next(")");
    const extra = Object.keys(variables).find((name) => !declared.has(name));
    if (extra) throw new Error(`Variable '$${extra}' is not declared`);
  };
  const value = (): unknown => {
    const token = next();
    if (token === "$") {
      const name = next();
      if (!declared.has(name)) throw new Error(`Variable '$${name}' is not declared`);
      return variables[name];
    }
    if (token === "[") {
      const items: unknown[] = [];
      while (peek() !== "]") items.push(value());
      next("]");
      return items;
    }
    if (token === "{") return members("}");
    return /^["\d-]|^(true|false|null)$/.test(token) ? JSON.parse(token) : token;
  };
  const pairs = (begin: string, end: string): Record<string, unknown> => {
    next(begin);
    return members(end);
  };
  const members = (end: string): Record<string, unknown> => {
    const found: Record<string, unknown> = {};
    while (peek() !== end) {
      const name = next();
      next(":");
      const given = value();
      if (given !== undefined) found[name] = given;
    }
    next(end);
    return found;
  };
  const selection = (): Field[] => {
    const fields: Field[] = [];
    next("{");
    while (peek() !== "}") {
      const name = next();
      if (!/^[A-Za-z_]/.test(name)) throw new Error(`Syntax Error: a name and not '${name}'`);
      const args = peek() === "(" ? pairs("(", ")") : {};
      fields.push({ name, args, fields: peek() === "{" ? selection() : [] });
    }
    next("}");
    return fields;
  };
  return {
    operation() {
      if (peek() === "query") next();
      if (/^[A-Za-z_]/.test(peek())) next();
      if (peek() === "(") declarations();
      const fields = selection();
      if (at < tokens.length) throw new Error(`Syntax Error: '${peek()}' after the operation`);
      return fields;
    },
  };
}
