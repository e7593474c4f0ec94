// A deployment: nobody is sent to a version before it was found to fit the ones before it, to load, and to be stored.
import { MagicError } from "#contract/errors.ts";
import type { Storage } from "#daemon/storage/storage.ts";
import type { Logger } from "#daemon/telemetry/log.ts";
import { type Clock, rfc3339 } from "#shared/clock.ts";
import { digestOf } from "../bundle/digest.ts";
import type { Artifact, DeployedVersion, DeployOptions } from "../runtime.ts";
import type { Instance } from "../serving/instance.ts";
import type { Registry } from "../serving/registry.ts";
import type { Catalogue } from "./catalogue.ts";
import { predecessors, requireCompatible } from "./compatibility.ts";

export interface DeployServices {
  readonly catalogue: Catalogue;
  readonly registry: Registry;
  readonly units: Pick<Storage["units"]["controller"], "deploy">;
  readonly clock: Clock;
  readonly log: Logger;
  open(artifact: Artifact): Instance;
}

/**
 * Of one controller one at a time: a version that is being deployed is one that the next must not break. Throws invalid_request, conflict,
 * incompatible_version, build_failed.
 */
export async function deployVersion(
  services: DeployServices,
  artifact: Artifact,
  options: DeployOptions = {},
): Promise<DeployedVersion> {
  const { catalogue, registry, units, clock, log, open } = services;
  const { contract, code, map } = artifact;
  const { alias = "latest", percent = 100 } = options;
  const digest = digestOf(contract, code);
  if (digest !== artifact.digest)
    throw new MagicError("invalid_request", "the digest is not that of the contract and the code");
  const entry = await catalogue.refresh(contract.name);
  const before = entry?.aliases.get(alias)?.version ?? entry?.aliases.get("latest")?.version;
  for (const previous of predecessors(entry?.versions ?? new Map(), before, contract.version))
    await requireCompatible(previous, contract);
  const known = entry?.versions.get(contract.version);
  // It must load before anybody is sent to it; a version that is there did.
  const instance = known?.digest === digest ? null : open(artifact);
  await instance?.start();
  const created_at = known?.created_at ?? rfc3339(clock.now());
  const row = {
    name: contract.name,
    version: contract.version,
    digest,
    contract: JSON.stringify(contract),
    code,
    map,
    created_at,
  };
  try {
    await units.deploy({ row, alias, percent, at: rfc3339(clock.now()) });
  } catch (error) {
    await instance?.retire();
    throw error;
  }
  if (instance && registry.adopt(instance) !== instance) void instance.retire();
  await catalogue.refresh(contract.name);
  log.info("controller.deployed", { controller: contract.name, version: contract.version, digest, alias, percent });
  return { name: contract.name, version: contract.version, digest, alias, created_at };
}
