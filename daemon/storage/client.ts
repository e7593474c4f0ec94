// The typed client: `units.<noun>.<unit>(args)` becomes a name and arguments for whoever runs units. It loads no repository
// code, so that with SQLite the main thread never does.
import type { Repositories } from "./units.ts";

// biome-ignore lint/suspicious/noExplicitAny: the first parameter is the database, whichever it is
type Bound<F> = F extends (db: any, ...args: infer A) => Promise<infer R> ? (...args: A) => Promise<R> : never;

export type Units = {
  readonly [N in keyof Repositories]: { readonly [U in keyof Repositories[N]]: Bound<Repositories[N][U]> };
};

export type RunUnit = (noun: string, unit: string, args: unknown) => Promise<unknown>;

export function unitsClient(run: RunUnit): Units {
  return lazily((noun) => lazily((unit) => (args: unknown) => run(noun, unit, args))) as Units;
}

function lazily(make: (name: string) => unknown): object {
  const made = new Map<string, unknown>();
  return new Proxy(
    {},
    {
      get(_, name) {
        // An awaited proxy must not look like a promise.
        if (typeof name !== "string" || name === "then") return undefined;
        let value = made.get(name);
        if (value === undefined) {
          value = make(name);
          made.set(name, value);
        }
        return value;
      },
    },
  );
}
