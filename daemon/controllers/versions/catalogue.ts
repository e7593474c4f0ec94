// Which controllers, versions and aliases there are: storage's truth, kept in memory for the path of a call.
import type { ControllerContract } from "#contract/controller.ts";
import { MagicError } from "#contract/errors.ts";
import type { Storage } from "#daemon/storage/storage.ts";
import type { Artifact } from "../runtime.ts";

export interface Alias {
  readonly version: string;
  readonly candidate: string | null;
  readonly percent: number;
  /** What a rollback returns to. */
  readonly previous: string | null;
}

export interface CatalogueEntry {
  readonly name: string;
  readonly versions: ReadonlyMap<
    string,
    { readonly digest: string; readonly created_at: string; readonly contract: ControllerContract }
  >;
  readonly aliases: ReadonlyMap<string, Alias>;
}

export interface Catalogue {
  /** In memory; fills it first where nothing was read yet. */
  find(name: string): CatalogueEntry | undefined | Promise<CatalogueEntry | undefined>;
  /** As they are stored now, also by another replica. */
  all(): Promise<CatalogueEntry[]>;
  artifact(name: string, version: string): Promise<Artifact>;
  /** Reads one controller again: it was changed, perhaps by another replica. */
  refresh(name: string): Promise<CatalogueEntry | undefined>;
}

/** Another replica on the same Postgres may have deployed: what is older is read again, behind the call. */
const MAX_AGE_MS = 2_000;
/** A name that is not there is asked for no more often: anybody can call names. */
const MISS_AGE_MS = 500;
const MAX_MISSED = 10_000;

export function openCatalogue(storage: Storage): Catalogue {
  const { controller } = storage.units;
  const entries = new Map<string, CatalogueEntry>();
  let filled: Promise<void> | null = null;
  let done = false;
  let filledAt = 0;

  /** Another replica may have deployed a moment ago what this one has never heard of. */
  const missed = new Map<string, number>();
  function look(name: string): Promise<CatalogueEntry | undefined> | undefined {
    const now = performance.now();
    if (now - (missed.get(name) ?? Number.NEGATIVE_INFINITY) < MISS_AGE_MS) return undefined;
    if (missed.size >= MAX_MISSED) missed.clear();
    missed.set(name, now);
    return catalogue.refresh(name);
  }

  let readings = 0;
  /** By which reading a name is known. */
  const knownBy = new Map<string, number>();
  /** Of two connections of a pool the one that was asked first may answer last, with what was true before a deployment. */
  function learn(reading: number, name: string, { versions, aliases }: StoredControllers): void {
    const has = versions.some((row) => row.name === name);
    if (reading < (knownBy.get(name) ?? 0) || !(has || entries.has(name))) return;
    knownBy.set(name, reading);
    if (has) entries.set(name, entryOf(name, versions, aliases, entries.get(name)));
    else entries.delete(name);
  }

  async function fill(): Promise<void> {
    const reading = ++readings;
    const stored = await controller.list({ name: null });
    for (const name of new Set([...entries.keys(), ...stored.versions.map((row) => row.name)]))
      learn(reading, name, stored);
    filledAt = performance.now();
    done = true;
  }

  function ready(): Promise<void> | null {
    if (!done) {
      filled ??= fill().catch((error: unknown) => {
        filled = null;
        throw error;
      });
      return filled;
    }
    if (storage.dialect === "postgres" && performance.now() - filledAt > MAX_AGE_MS) {
      filledAt = performance.now();
      fill().catch(() => {});
    }
    return null;
  }

  const catalogue: Catalogue = {
    find(name) {
      const wait = ready();
      if (wait) return wait.then(() => entries.get(name));
      return entries.get(name) ?? (storage.dialect === "postgres" ? look(name) : undefined);
    },
    async all() {
      await (storage.dialect === "postgres" ? fill() : ready());
      return [...entries.values()].sort((a, b) => (a.name < b.name ? -1 : 1));
    },
    async artifact(name, version) {
      const row = await controller.read({ name, version });
      if (!row) throw new MagicError("controller_not_found", `${name} has no version ${version}`);
      const contract = JSON.parse(row.contract) as ControllerContract;
      return { contract, code: row.code, map: row.map, digest: row.digest };
    },
    async refresh(name) {
      await ready();
      const reading = ++readings;
      learn(reading, name, await controller.list({ name }));
      return entries.get(name);
    },
  };
  return catalogue;
}

/** Nobody has deployed it, and no session serves it. */
export function noController(name: string): MagicError {
  return new MagicError("controller_not_found", `there is no controller ${name}`);
}

type StoredControllers = Awaited<ReturnType<Storage["units"]["controller"]["list"]>>;

/** `before`: what was known; a contract that has not changed is not read again. */
function entryOf(
  name: string,
  versions: StoredControllers["versions"],
  aliases: StoredControllers["aliases"],
  before: CatalogueEntry | undefined,
): CatalogueEntry {
  const contractOf = ({ version, digest, contract }: StoredControllers["versions"][number]): ControllerContract => {
    const known = before?.versions.get(version);
    return known?.digest === digest ? known.contract : (JSON.parse(contract) as ControllerContract);
  };
  return {
    name,
    versions: new Map(
      versions
        .filter((row) => row.name === name)
        .map((row) => [row.version, { digest: row.digest, created_at: row.created_at, contract: contractOf(row) }]),
    ),
    aliases: new Map(
      aliases
        .filter((row) => row.controller === name)
        .map((row) => [
          row.alias,
          { version: row.version, candidate: row.candidate, percent: row.percent, previous: row.previous },
        ]),
    ),
  };
}

/**
 * What a call for `wanted` (a version, an alias, or nothing) reaches now. While a candidate has a share of an alias, the request's id
 * decides: a retry with the same id, and every nested call of one request, reach the same version.
 */
export function versionFor(entry: CatalogueEntry, wanted: string | undefined, requestId: string): string {
  if (wanted !== undefined && entry.versions.has(wanted)) return wanted;
  const alias = entry.aliases.get(wanted ?? "latest");
  if (!alias)
    throw new MagicError("controller_not_found", `${entry.name} has no version or alias ${wanted ?? "latest"}`);
  return alias.candidate !== null && shareOf(requestId) < alias.percent ? alias.candidate : alias.version;
}

/** The text's place between 0 and 100, evenly spread: FNV-1a and a final mix, because ids of one moment differ in few characters. */
function shareOf(text: string): number {
  let hash = 0x811c9dc5;
  for (let at = 0; at < text.length; at++) hash = Math.imul(hash ^ text.charCodeAt(at), 0x01000193);
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return (((hash ^ (hash >>> 16)) >>> 0) / 2 ** 32) * 100;
}
