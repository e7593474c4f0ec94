// The wire speaks snake_case, TypeScript camelCase. What a user or a vendor has named (metadata, schemas, events) stays as it is.

type Camel<S extends string> = S extends `${infer Head}_${infer Tail}` ? `${Head}${Capitalize<Camel<Tail>>}` : S;
type Verbatim = "metadata" | "schema" | "config_schema" | "mapping" | "payload" | "config" | "credentials";

/** The document with camelCase members. */
export type Camelized<T> = T extends readonly (infer Item)[]
  ? Camelized<Item>[]
  : T extends object
    ? { [K in keyof T as K extends string ? Camel<K> : K]: K extends Verbatim ? T[K] : Camelized<T[K]> }
    : T;

const verbatim: ReadonlySet<string> = new Set([
  "metadata",
  "schema",
  "config_schema",
  "configSchema",
  "mapping",
  "payload",
  "config",
  "credentials",
]);

/** A document of the API with TypeScript's names (`next_cursor` is `nextCursor`); what users wrote keeps its names. */
export function camelize<T>(document: T): Camelized<T> {
  return renamed(document, (name) =>
    name.replace(/_([a-z0-9])/g, (_, next: string) => next.toUpperCase()),
  ) as Camelized<T>;
}

/** The way back, for what is sent. */
export function snakify(document: unknown): unknown {
  return renamed(document, (name) => name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`));
}

function renamed(part: unknown, rename: (name: string) => string): unknown {
  if (Array.isArray(part)) return part.map((item) => renamed(item, rename));
  if (typeof part !== "object" || part === null) return part;
  return Object.fromEntries(
    Object.entries(part).map(([name, value]) => [rename(name), verbatim.has(name) ? value : renamed(value, rename)]),
  );
}
