// Is a new version's contract one that the old version's callers can live with? Inputs may become wider, outputs narrower; anything else
// needs a new major version (semver.org, rule 8; below 1.0.0 a new minor one, rule 4).
import semver from "semver";
import type { ControllerContract } from "#contract/controller.ts";
import { MagicError } from "#contract/errors.ts";
import { findBreaksApart } from "../contract-thread.ts";
import type { Break } from "./narrowing.ts";

/**
 * The contracts that a new version must not break: what its alias points at, and the greatest deployed version below it, which need not be
 * the one that serves.
 */
export function predecessors(
  versions: ReadonlyMap<string, { readonly contract: ControllerContract }>,
  serving: string | undefined,
  next: string,
): ControllerContract[] {
  const below = [...versions.keys()].filter((version) => semver.lt(version, next)).sort(semver.rcompare)[0];
  return [...new Set([serving, below])].flatMap((version) => versions.get(version ?? "")?.contract ?? []);
}

/** Rejects with `incompatible_version` where `next` breaks `previous`'s callers without a version number that says so. */
export async function requireCompatible(previous: ControllerContract, next: ControllerContract): Promise<void> {
  if (!promisesCompatibility(previous.version, next.version)) return;
  const breaks = await findBreaksApart(previous, next);
  if (breaks.length === 0) return;
  const first = breaks[0] as Break;
  throw new MagicError(
    "incompatible_version",
    `${next.name}@${next.version} breaks callers of ${previous.version} at ${first.pointer}: ${first.detail}; make it ${nextBreaking(previous.version)}`,
    { problems: breaks.map(({ pointer, detail }) => ({ pointer, code: "breaking_change", detail })) },
  );
}

function promisesCompatibility(from: string, to: string): boolean {
  if (semver.major(from) !== semver.major(to) || !semver.gt(to, from)) return false;
  return semver.major(from) > 0 || semver.minor(from) === semver.minor(to);
}

function nextBreaking(version: string): string {
  return semver.major(version) > 0 ? `${semver.major(version) + 1}.0.0` : `0.${semver.minor(version) + 1}.0`;
}
