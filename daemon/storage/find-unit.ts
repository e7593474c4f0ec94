// A unit by the names that a caller sent.
import type { Db } from "./schema.ts";
import { repositories } from "./units.ts";

export type Unit = (db: Db, args: unknown) => Promise<unknown>;

export function findUnit(noun: string, unit: string): Unit {
  const repository = Object.hasOwn(repositories, noun) ? repositories[noun as keyof typeof repositories] : {};
  const found = (repository as Record<string, unknown>)[unit];
  if (typeof found !== "function") throw new TypeError(`there is no unit ${noun}.${unit} in daemon/storage/units.ts`);
  return found as Unit;
}
