// `${env:NAME}` and `${secret:NAME}` inside configured values: kept as they are at rest, replaced at the moment of use.
import { MagicError } from "#contract/errors.ts";

const reference = /\$\{(env|secret):([A-Za-z_][A-Za-z0-9_]*)\}/g;

export type LookUp = (kind: "env" | "secret", name: string) => string | undefined;

/**
 * The value with every reference in its strings replaced, at any depth.
 *
 * @throws MagicError `invalid_request` that names what is not there, never a value.
 */
export function resolveReferences<T>(value: T, lookUp: LookUp): T {
  return resolve(value) as T;

  function resolve(part: unknown): unknown {
    if (typeof part === "string")
      return part.replace(reference, (_, kind: "env" | "secret", name: string) => need(kind, name));
    if (Array.isArray(part)) return part.map(resolve);
    if (typeof part !== "object" || part === null) return part;
    return Object.fromEntries(Object.entries(part).map(([key, member]) => [key, resolve(member)]));
  }

  function need(kind: "env" | "secret", name: string): string {
    const found = lookUp(kind, name);
    if (found === undefined) throw new MagicError("invalid_request", `\${${kind}:${name}} is not set`);
    return found;
  }
}
