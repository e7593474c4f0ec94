// The connectors that a project has added: manifests in `<root>/connectors/<name>.yaml`, kept with the project's code.
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { basename, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { MANIFEST_ENDINGS, MAX_MANIFEST_BYTES } from "#contract/connector-files.ts";
import { filledFrom } from "#contract/env-reference.ts";
import { isMagicError, MagicError } from "#contract/errors.ts";
import { nearest } from "#contract/suggest.ts";
import { readWhole } from "#shared/collect.ts";
import { makeFolder } from "#shared/make-folder.ts";
import { readProjectFile } from "#shared/project-file.ts";
import { replaceFileSync } from "#shared/replace-file.ts";

export const CONNECTOR_NAME = /^[a-z0-9](?:[a-z0-9_-]{0,62}[a-z0-9])?$/;

function connectorsFolder(root: string): string {
  return join(root, "connectors");
}

function manifestsIn(folder: string): string[] {
  if (!existsSync(folder)) return [];
  return readdirSync(folder)
    .filter((file) => MANIFEST_ENDINGS.some((ending) => file.endsWith(ending)))
    .map((file) => file.replace(/\.(yaml|yml|json)$/, ""))
    .sort();
}

/** The manifest's text: of the project's connectors, else of the catalogue. A path to a file works too. Throws not_found with the names. */
export async function readConnector(root: string, name: string): Promise<string> {
  if (/[./\\]/.test(name) && existsSync(name)) return readManifest(name);
  const file = CONNECTOR_NAME.test(name)
    ? MANIFEST_ENDINGS.map((ending) => join(connectorsFolder(root), name + ending)).find((path) => existsSync(path))
    : undefined;
  if (file) return readManifest(file);
  const ours = CONNECTOR_NAME.test(name) ? catalogueFile(`${name}.yaml`) : undefined;
  if (ours && existsSync(ours)) return readFileSync(ours, "utf8");
  const known = manifestsIn(connectorsFolder(root));
  const near = nearest(name, [...known, ...manifestsIn(catalogueFile("."))]);
  throw new MagicError(
    "not_found",
    `There is no connector '${name}' that is a manifest. ${known.length ? `The project has: ${known.join(", ")}.` : "Add one with `magic connector add FILE`."} \`magic connector list\` shows the catalogue.`,
    { extra: { next: near === undefined ? "Check the name." : `Did you mean ${near}?` } },
  );
}

/** The text of the file. Throws not_found. */
export async function readManifest(path: string): Promise<string> {
  try {
    return String(await readWhole(path, MAX_MANIFEST_BYTES));
  } catch (error) {
    if (isMagicError(error)) throw error;
    const { code, message } = error as NodeJS.ErrnoException;
    const next = code === "EISDIR" ? "Name the manifest in it, such as manifest.yaml." : "Check the path.";
    throw new MagicError("not_found", `${path} cannot be read: ${code ?? message}.`, { cause: error, extra: { next } });
  }
}

// Our definitions are files that both programs know the place of: from source and from dist alike.
function catalogueFile(file: string): string {
  return fileURLToPath(new URL(file, import.meta.resolve("#catalogue/README.md")));
}

/** The private addresses that the project opens (`egress.allow_private` of magic.yaml); none where the file is not valid. */
export function allowedPrivate(root: string, env: NodeJS.ProcessEnv): readonly string[] {
  const { config } = readProjectFile(root);
  return (config?.egress?.allow_private ?? []).map((text) => filledFrom(env, text));
}

/** Writes the manifest whole or not at all; resolves to its path. Throws exists. */
export async function writeConnector(root: string, name: string, text: string, force: boolean): Promise<string> {
  const path = join(connectorsFolder(root), `${name}.yaml`);
  if (
    !force &&
    MANIFEST_ENDINGS.some((ending) => existsSync(join(connectorsFolder(root), name + ending))) &&
    (await readConnector(root, name)) !== text
  )
    throw new MagicError(
      "exists",
      `There is a connector '${name}' already: pass --force to replace it, or another name.`,
    );
  makeFolder(connectorsFolder(root));
  replaceFileSync(path, text, 0o666);
  return path;
}

/** `source-stripe/manifest.yaml` -> stripe. */
export function nameFromFile(file: string): string {
  const base = basename(file).replace(/\.(ya?ml|json)$/i, "");
  const above = basename(join(file, ".."));
  const folder = above === ".." ? basename(resolve(file, "..")) : above;
  const raw = base === "manifest" && folder && folder !== "." ? folder : base;
  return raw
    .toLowerCase()
    .replace(/^source-/, "")
    .replace(/[^a-z0-9_-]+/g, "-")
    .replace(/^-+|-+$/g, "");
}
