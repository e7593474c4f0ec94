// The manifests of declarative connectors: the project's own in `<root>/connectors`, then ours.
import { readdir, readFile } from "node:fs/promises";
import { basename, extname, join } from "node:path";
import { parse } from "yaml";
import type { Connector } from "#contract/wire/connectors.ts";
import { definitionsFolder } from "../catalogue/catalogue.ts";
import { connectorOf, type Manifest } from "../catalogue/manifest-connector.ts";

const ENDINGS = [".yaml", ".yml", ".json"];
const NAME = /^[A-Za-z0-9][A-Za-z0-9_-]{0,99}$/;

/** The text of a connector's manifest; null where there is none of that name. */
export async function manifestText(root: string, id: string): Promise<string | null> {
  // A provider's name comes from a request: it must not be a path.
  if (!NAME.test(id)) return null;
  for (const folder of [join(root, "connectors"), definitionsFolder()])
    for (const ending of ENDINGS) {
      const text = await readFile(join(folder, id + ending), "utf8").catch(() => null);
      if (text !== null) return text;
    }
  return null;
}

/** The project's own connectors for the catalogue; a file that cannot be read is left out. */
export async function projectConnectors(root: string): Promise<readonly Connector[]> {
  const folder = join(root, "connectors");
  const files = await readdir(folder).catch(() => []);
  const connectors: Connector[] = [];
  for (const file of files.sort()) {
    const id = basename(file, extname(file));
    if (!ENDINGS.includes(extname(file)) || !NAME.test(id)) continue;
    try {
      connectors.push(connectorOf(id, parse(await readFile(join(folder, file), "utf8")) as Manifest));
    } catch {
      // `magic connector test` says what is wrong with it.
    }
  }
  return connectors;
}
