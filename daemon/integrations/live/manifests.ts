// The manifests of declarative connectors: the project's own in `<root>/connectors`, then ours.
import { readdir, readFile, stat } from "node:fs/promises";
import { basename, extname, join } from "node:path";
import { MANIFEST_ENDINGS } from "#contract/connector-files.ts";
import type { Connector } from "#contract/wire/connectors.ts";
import { definitionsFolder } from "../catalogue/catalogue.ts";
import { catalogueEntry } from "../catalogue/manifest-connector.ts";
import { parseManifest } from "../connectors/declarative/manifest/load.ts";

const NAME = /^[A-Za-z0-9][A-Za-z0-9_-]{0,99}$/;

/** The text of a connector's manifest; null where there is none of that name. */
export async function manifestText(root: string, id: string): Promise<string | null> {
  // A provider's name comes from a request: it must not be a path.
  if (!NAME.test(id)) return null;
  for (const folder of [join(root, "connectors"), definitionsFolder()])
    for (const ending of MANIFEST_ENDINGS) {
      const text = await readFile(join(folder, id + ending), "utf8").catch(() => null);
      if (text !== null) return text;
    }
  return null;
}

/** A file as it was when it was last read. */
interface Read {
  readonly stamp: string;
  /** Null where it cannot be used: `magic connector test` says what is wrong with it. */
  readonly connector: Connector | null;
}

/** The project's own connectors for the catalogue, asked each time; a file is read again when it has changed. */
export function projectConnectors(root: string): () => Promise<readonly Connector[]> {
  const folder = join(root, "connectors");
  let known = new Map<string, Read>();
  return async () => {
    const files = await readdir(folder).catch(() => []);
    const now = new Map<string, Read>();
    for (const file of files.sort()) {
      const id = basename(file, extname(file));
      if (!MANIFEST_ENDINGS.some((ending) => ending === extname(file)) || !NAME.test(id)) continue;
      const path = join(folder, file);
      const stamp = await stampOf(path);
      const before = known.get(file);
      now.set(file, before?.stamp === stamp ? before : { stamp, connector: await readConnector(id, path) });
    }
    known = now;
    return [...now.values()].flatMap(({ connector }) => connector ?? []);
  };
}

async function readConnector(id: string, path: string): Promise<Connector | null> {
  try {
    return catalogueEntry(id, parseManifest(await readFile(path, "utf8")));
  } catch {
    return null;
  }
}

async function stampOf(path: string): Promise<string> {
  const found = await stat(path, { bigint: true }).catch(() => null);
  return found === null ? "" : `${found.ino} ${found.size} ${found.mtimeNs} ${found.ctimeNs}`;
}
