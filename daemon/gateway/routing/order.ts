// In which order a policy tries its candidates. Every strategy gives an order of all of them: the first is the choice, the others
// are what it falls back to.
import { createHash } from "node:crypto";
import type { Strategy } from "#daemon/gateway/engagement/config.ts";
import type { Candidate } from "./candidate.ts";
import type { Measurements } from "./measurements.ts";

export interface OrderContext {
  /** Who sticks to a candidate. */
  readonly user: string;
  readonly measurements: Measurements;
  readonly stream: boolean;
  /** 0 <= random() < 1. */
  readonly random: () => number;
}

export function inOrder(strategy: Strategy, candidates: readonly Candidate[], context: OrderContext): Candidate[] {
  switch (strategy) {
    case "priority":
      return [...candidates];
    case "weighted":
      return weighted(candidates, context.random);
    case "cheapest":
      return candidates.toSorted((a, b) => (a.worst ?? Infinity) - (b.worst ?? Infinity));
    case "fastest": {
      const expected = ({ name }: Candidate) => context.measurements.expected(name, context.stream);
      return candidates.toSorted((a, b) => expected(a) - expected(b));
    }
    case "sticky":
      return candidates.toSorted((a, b) => stickiness(b, context.user) - stickiness(a, context.user));
  }
}

// A draw without replacement: each place goes to one of those left, in proportion to their weights. Weight 0 comes last.
function weighted(candidates: readonly Candidate[], random: () => number): Candidate[] {
  const left = candidates.filter(({ weight }) => weight > 0);
  const order: Candidate[] = [];
  while (left.length > 0) {
    const index = drawn(left, random);
    order.push(...left.splice(index, 1));
  }
  return [...order, ...candidates.filter(({ weight }) => weight <= 0)];
}

function drawn(left: readonly Candidate[], random: () => number): number {
  let point = random() * left.reduce((sum, { weight }) => sum + weight, 0);
  for (const [index, { weight }] of left.entries()) {
    point -= weight;
    if (point < 0) return index;
  }
  return left.length - 1;
}

// Weighted rendezvous hashing: a user stays with a candidate, and only the users of one that is gone move.
function stickiness({ name, weight }: Candidate, user: string): number {
  if (weight <= 0) return -Infinity;
  const hash = createHash("sha256").update(`${user}\0${name}`).digest();
  const unit = (hash.readUIntBE(0, 6) + 1) / 2 ** 48;
  return -weight / Math.log(unit);
}
