// What drawing a value from a schema has at hand: its root, the dice, and the steps that are left.
import { list } from "#contract/json-object.ts";
import type { Random } from "./random.ts";

export type Schema = Readonly<Record<string, unknown>>;

/** Of an array, or of an object beyond its named properties. */
export const MOST_ITEMS = 100;

/** Steps left for all samples of one answer: schemas are strangers', and references, lengths and patterns multiply without end. */
export interface Budget {
  left: number;
}

export function sampleBudget(): Budget {
  return { left: 50_000 };
}

export interface Context {
  readonly root: Schema;
  readonly random: Random;
  readonly depth: number;
  /** The property's name: makes strings readable. */
  readonly name: string;
  /** How often what was drawn before could not be taken: then a text has to be another one. */
  readonly again?: number;
  readonly budget: Budget;
}

// Takes steps; false when none are left.
export function spend({ budget }: Context, steps: number): boolean {
  budget.left -= steps;
  return budget.left >= 0;
}

export function numberOf(value: unknown, otherwise: number): number {
  return typeof value === "number" && Number.isFinite(value) ? value : otherwise;
}

/** The properties' names of such a list. */
export function namesOf(value: unknown): string[] {
  return list(value).filter((name) => typeof name === "string");
}
