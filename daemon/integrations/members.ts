// Objects whose members are the caller's own, also after many patches.
import { type FieldProblem, MagicError } from "#contract/errors.ts";
import { mergePatch } from "./merge-patch.ts";

/** As in the schemas of what is sent, which see one patch alone. */
const most = { metadata: 50, mapping: 2000, config: 200, credentials: 200 };

export function memberProblems(name: keyof typeof most, members: object): FieldProblem[] {
  const count = Object.keys(members).length;
  if (count <= most[name]) return [];
  const detail = `would have ${count} keys: ${most[name]} are the most`;
  return [{ pointer: `/${name}`, code: "maxProperties", detail }];
}

/** @throws MagicError `validation_failed` when there would be too many. */
export function mergedMembers<T extends object>(name: keyof typeof most, held: T, patch: unknown): T {
  if (patch === undefined) return held;
  const merged = patch === null ? {} : mergePatch(held, patch);
  const problems = memberProblems(name, merged as T);
  if (problems.length > 0) throw new MagicError("validation_failed", undefined, { problems });
  return merged as T;
}
