// The connectors that are offered: those in code, our definitions in this folder, and those that a user has added.
import { readdir, readFile } from "node:fs/promises";
import { basename, join } from "node:path";
import { fileURLToPath } from "node:url";
import { parse } from "yaml";
import type { Connector } from "#contract/wire/connectors.ts";
import { lazy } from "#shared/lazy.ts";
import type { Component } from "../connectors/declarative/manifest/component.ts";
import type { OAuthDefinition } from "../oauth/provider.ts";
import { codeConnectors } from "./code-connectors.ts";
import { catalogueEntry, factsOf } from "./manifest-connector.ts";

export interface Catalogue {
  /** By id, in the order of ids. */
  list(): Promise<readonly Connector[]>;
  get(id: string): Promise<Connector | null>;
  /** How to authorize with it; null when there is no such connector, empty where its definition does not say. */
  oauth(id: string): Promise<OAuthDefinition | null>;
}

/** More connectors, asked each time; one of ours is not replaced. */
export type MoreConnectors = () => Promise<readonly Connector[]>;

export function createCatalogue(more: MoreConnectors = async () => []): Catalogue {
  const oauth = new Map<string, OAuthDefinition>();
  const ours = lazy(() => load(oauth));
  const all = async (): Promise<ReadonlyMap<string, Connector>> => {
    const [own, added] = await Promise.all([ours(), more()]);
    return added.length === 0 ? own : new Map([...added.map((one) => [one.id, one] as const), ...own]);
  };
  return {
    list: async () => [...(await all()).values()].sort((a, b) => (a.id < b.id ? -1 : 1)),
    get: async (id) => (await all()).get(id) ?? null,
    oauth: async (id) => ((await all()).has(id) ? (oauth.get(id) ?? {}) : null),
  };
}

/** The folder of our definitions: one manifest a system, named by its id. From source and from dist alike. */
export function definitionsFolder(): string {
  return fileURLToPath(new URL(".", import.meta.resolve("#catalogue/README.md")));
}

/** What the examination found, by id: `npm run grades` writes it. */
type Grades = Readonly<Record<string, Connector["grade"]>>;

async function load(oauth: Map<string, OAuthDefinition>): Promise<ReadonlyMap<string, Connector>> {
  const folder = definitionsFolder();
  const grades = JSON.parse(await readFile(join(folder, "grades.json"), "utf8")) as Grades;
  const connectors = new Map(codeConnectors(grades).map((connector) => [connector.id, connector]));
  for (const [id, manifest] of Object.entries(await manifestsIn(folder))) {
    connectors.set(id, catalogueEntry(id, manifest, grades[id]));
    const { oauth: definition } = factsOf(manifest);
    if (definition) oauth.set(id, definition);
  }
  return connectors;
}

// The build puts them into one file: to read their YAML would hold the daemon up for half a second.
async function manifestsIn(folder: string): Promise<Readonly<Record<string, Component>>> {
  const files = (await readdir(folder)).sort();
  if (files.includes("definitions.json"))
    return JSON.parse(await readFile(join(folder, "definitions.json"), "utf8")) as Record<string, Component>;
  const found: Record<string, Component> = {};
  for (const file of files)
    if (file.endsWith(".yaml"))
      found[basename(file, ".yaml")] = parse(await readFile(join(folder, file), "utf8")) as Component;
  return found;
}
