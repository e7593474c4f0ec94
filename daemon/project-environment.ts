// `${env:NAME}` in magic.yaml. A variable that is not set does not keep the daemon from starting: a project names the keys of
// every provider that it may use, and few machines have all of them.
import { ENV_REFERENCE } from "#contract/env-reference.ts";
import { toPointer } from "#contract/json-pointer.ts";

export interface MissingVariable {
  readonly name: string;
  /** Where it is used: a JSON pointer into the configuration. */
  readonly pointer: string;
}

export interface Filled<T> {
  readonly value: T;
  readonly missing: readonly MissingVariable[];
  /** Values of six characters and more: shorter ones would strike out ordinary text. */
  readonly secrets: readonly string[];
}

const SHORTEST_SECRET = 6;

/** The configuration with every reference replaced, "" for an unset variable. */
export function fillEnvironment<T>(config: T, env: NodeJS.ProcessEnv): Filled<T> {
  const missing: MissingVariable[] = [];
  const secrets = new Set<string>();

  const text = (written: string, pointer: string): string =>
    written.replace(ENV_REFERENCE, (_all, name: string) => {
      const found = env[name];
      if (found === undefined || found === "") missing.push({ name, pointer });
      else if (found.length >= SHORTEST_SECRET) secrets.add(found);
      return found ?? "";
    });

  const fill = (part: unknown, pointer: string): unknown => {
    if (typeof part === "string") return text(part, pointer);
    if (Array.isArray(part)) return part.map((entry, index) => fill(entry, `${pointer}/${index}`));
    if (typeof part !== "object" || part === null) return part;
    const entries = Object.entries(part).map(([key, value]) => [key, fill(value, pointer + toPointer([key]))]);
    // Names are asked for that others chose: no object inherits one here.
    return Object.assign(Object.create(null), Object.fromEntries(entries));
  };

  return { value: fill(config, "") as T, missing, secrets: [...secrets] };
}
