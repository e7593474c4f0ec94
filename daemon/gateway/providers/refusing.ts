// Servers and models of which it was learned that they refuse something: a refusal of what is none without it. They are not asked for it again.
import type { Target } from "./adapter.ts";

/** Bounded, for a configuration that changes for ever. */
const MOST = 1_000;

export interface Refusing {
  has(target: Target): boolean;
  add(target: Target): void;
}

export function refusing(): Refusing {
  const known = new Set<string>();
  return {
    has: (target) => known.size > 0 && known.has(keyOf(target)),
    add(target) {
      if (known.size >= MOST) known.clear();
      known.add(keyOf(target));
    },
  };
}

// Behind one address there may be several servers, each with models of its own.
function keyOf({ baseUrl, model }: Target): string {
  return `${baseUrl ?? ""}\0${model}`;
}
