// What serves now: the loaded versions of each controller, and the development version that covers them while a session lasts.
import type { Artifact } from "../runtime.ts";
import { type Catalogue, type CatalogueEntry, noController, versionFor } from "../versions/catalogue.ts";
import type { Instance } from "./instance.ts";

export interface Registry {
  /** The instance that a call reaches: in memory at once, else read from storage. Throws `controller_not_found`. */
  find(name: string, version: string | undefined, requestId: string): Instance | Promise<Instance>;
  developing(name: string): Instance | null;
  /** Swaps the development version in; the session's old one ends after its calls. */
  develop(name: string, session: string, instance: Instance): void;
  /** What another session develops under the name serves again. */
  withdraw(name: string, session: string): Promise<void>;
  /** Puts a loaded instance in place of none. */
  adopt(instance: Instance): Instance;
  /** Ends the instances of a version, or of the whole controller, after their calls. */
  retire(name: string, version?: string): Promise<void>;
  instances(): Instance[];
}

export function openRegistry(catalogue: Catalogue, open: (artifact: Artifact) => Instance): Registry {
  const loaded = new Map<string, Instance>();
  const reading = new Map<string, Promise<Instance>>();
  /** By name, of each session its own; the newest, which comes last, serves. */
  const development = new Map<string, { readonly instance: Instance; readonly session: string }[]>();
  const key = (name: string, version: string): string => `${name}@${version}`;

  function deployed(entry: CatalogueEntry | undefined, name: string, wanted: string | undefined, requestId: string) {
    if (!entry) throw noController(name);
    const version = versionFor(entry, wanted, requestId);
    const known = loaded.get(key(name, version));
    if (!known) return read(name, version);
    if (known.artifact.digest === entry.versions.get(version)?.digest) return known;
    // Removed and deployed anew, by another replica of this daemon.
    loaded.delete(key(name, version));
    void known.retire();
    return read(name, version);
  }

  function read(name: string, version: string): Promise<Instance> {
    const id = key(name, version);
    let under = reading.get(id);
    if (!under) {
      under = catalogue
        .artifact(name, version)
        .then((artifact) => registry.adopt(open(artifact)))
        .finally(() => reading.delete(id));
      reading.set(id, under);
    }
    return under;
  }

  /** Takes out what the session serves under the name. */
  function take(name: string, session: string): Instance | undefined {
    const held = development.get(name) ?? [];
    const rest = held.filter((one) => one.session !== session);
    if (rest.length > 0) development.set(name, rest);
    else development.delete(name);
    return held.find((one) => one.session === session)?.instance;
  }

  const registry: Registry = {
    find(name, version, requestId) {
      const developed = registry.developing(name);
      if (developed && (version === undefined || version === developed.artifact.contract.version)) return developed;
      const entry = catalogue.find(name);
      return entry instanceof Promise
        ? entry.then((one) => deployed(one, name, version, requestId))
        : deployed(entry, name, version, requestId);
    },
    developing: (name) => development.get(name)?.at(-1)?.instance ?? null,
    develop(name, session, instance) {
      const old = take(name, session);
      development.set(name, [...(development.get(name) ?? []), { instance, session }]);
      void old?.retire();
    },
    async withdraw(name, session) {
      await take(name, session)?.retire();
    },
    adopt(instance) {
      const { name, version } = instance.artifact.contract;
      const known = loaded.get(key(name, version));
      if (known) return known;
      loaded.set(key(name, version), instance);
      return instance;
    },
    async retire(name, version) {
      const ending = [...loaded].filter(([id]) => (version ? id === key(name, version) : id.startsWith(`${name}@`)));
      for (const [id] of ending) loaded.delete(id);
      await Promise.all(ending.map(([, instance]) => instance.retire()));
    },
    instances: () => [...loaded.values(), ...[...development.values()].flat().map(({ instance }) => instance)],
  };
  return registry;
}
