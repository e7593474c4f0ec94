// Controllers of a daemon, for commands: invoke, deploy, develop.
import { isMagicError, MagicError } from "#contract/errors.ts";
import { nearest } from "#contract/suggest.ts";
import type { DevelopmentEvent } from "#contract/wire/controllers.ts";
import { type ApiClient, requestPage } from "./http.ts";
import { pathPart } from "./path-part.ts";

export interface InvokeAnswer {
  readonly output: unknown;
  readonly request_id: string;
  readonly version: string;
  readonly duration_ms: number;
  readonly usage: Readonly<Record<string, unknown>>;
}

export interface InvokeRequest {
  readonly name: string;
  readonly input: unknown;
  /** A version or an alias. */
  readonly version?: string | undefined;
  readonly signal?: AbortSignal;
}

/** Runs the handler once. Throws what the invoke route answers. */
export function invokeController(client: ApiClient, request: InvokeRequest): Promise<InvokeAnswer> {
  const { name, input, version, signal } = request;
  const body = { input, ...(version === undefined ? {} : { version }) };
  const answer = client.request<InvokeAnswer>("POST", `${at(name)}/invoke`, { body, ...(signal && { signal }) });
  return suggesting(client, name, answer);
}

/** The answer of a route of the controller. Throws what it answers; for a name that is not there, with the nearest one. */
async function suggesting<T>(client: ApiClient, name: string, answer: Promise<T>): Promise<T> {
  try {
    return await answer;
  } catch (error) {
    throw await withSuggestion(client, name, error);
  }
}

// A slip in the name is answered with the nearest one that there is, if the caller may list them.
async function withSuggestion(client: ApiClient, name: string, error: unknown): Promise<unknown> {
  if (!isMagicError(error) || error.code !== "controller_not_found") return error;
  const known = await listControllers(client).catch(() => []);
  const near = known.some((one) => one.name === name)
    ? undefined
    : nearest(
        name,
        known.map((one) => one.name),
      );
  if (near === undefined) return error;
  const extra = { ...error.extra, next: `Did you mean ${near}?` };
  return new MagicError(error.code, error.message, { extra, cause: error });
}

export interface DevelopOptions {
  /** The folder with the controllers, on the daemon's machine. */
  readonly folder: string;
  readonly only?: readonly string[] | undefined;
  readonly signal: AbortSignal;
}

const LONGEST_LINE = 4 * 1024 * 1024;

/** A development session's events. The daemon ends the session when this is left or the signal aborts. */
export async function* develop(client: ApiClient, options: DevelopOptions): AsyncGenerator<DevelopmentEvent> {
  const { folder, only, signal } = options;
  const answer = await client.send("POST", "/v1/dev/sessions", {
    body: { folder, ...(only && only.length > 0 ? { only } : {}) },
    headers: { accept: "application/x-ndjson" },
    signal,
  });
  if (!answer.body) throw new MagicError("daemon_unavailable", "The daemon's answer has no events.");
  let rest = "";
  for await (const text of answer.body.pipeThrough(new TextDecoderStream())) {
    const lines = (rest + text).split("\n");
    rest = lines.pop() ?? "";
    if (rest.length > LONGEST_LINE) throw new MagicError("daemon_unavailable", "The daemon's events cannot be read.");
    for (const line of lines) if (line.trim() !== "") yield JSON.parse(line) as DevelopmentEvent;
  }
}

/** Builds everything of a session again. */
export function reloadSession(client: ApiClient, session: string): Promise<unknown> {
  return client.request("POST", `/v1/dev/sessions/${pathPart(session)}/reload`, { body: {} });
}

/** A built controller: what `magic build` writes and `magic deploy` sends. */
export interface Artifact {
  readonly contract: { readonly name: string; readonly version: string } & Readonly<Record<string, unknown>>;
  readonly code: string;
  readonly map: string;
  readonly digest: string;
}

/** Builds the controller in a folder of this machine; only a daemon of this machine does. */
export function buildController(client: ApiClient, folder: string, signal?: AbortSignal): Promise<Artifact> {
  return client.request<Artifact>("POST", "/v1/dev/builds", { body: { folder }, ...(signal && { signal }) });
}

export interface DeployOptions {
  readonly alias?: string | undefined;
  readonly percent?: number | undefined;
  readonly signal?: AbortSignal;
}

export interface Deployed {
  readonly name: string;
  readonly version: string;
  readonly digest: string;
  readonly alias: string;
  readonly created_at: string;
}

/** Stores an immutable version and points the alias at it. Throws conflict, incompatible_version. */
export function deployArtifact(client: ApiClient, artifact: Artifact, options: DeployOptions): Promise<Deployed> {
  const { contract, code, map, digest } = artifact;
  const { alias, percent, signal } = options;
  return client.request<Deployed>("POST", "/v1/controllers", {
    body: {
      contract,
      code,
      map,
      digest,
      ...(alias !== undefined && { alias }),
      ...(percent !== undefined && { percent }),
    },
    ...(signal && { signal }),
  });
}

export interface ControllerSummary {
  readonly name: string;
  readonly serving: string | null;
  readonly aliases: Readonly<Record<string, string>>;
  readonly rollout: { readonly version: string; readonly percent: number } | null;
  readonly versions: readonly { readonly version: string; readonly digest: string; readonly created_at: string }[];
  readonly development: boolean;
}

const at = (name: string) => `/v1/controllers/${pathPart(name)}`;

/** All of them; nothing is paged. */
export async function listControllers(client: ApiClient): Promise<readonly ControllerSummary[]> {
  return (await requestPage<{ data: ControllerSummary[] }>(client, "/v1/controllers")).data;
}

/** Throws controller_not_found. */
export function getController(client: ApiClient, name: string): Promise<ControllerSummary> {
  return suggesting(client, name, client.request("GET", at(name)));
}

/** Points an alias at a version, or gives the version `percent` of the alias's calls. */
export function promoteController(
  client: ApiClient,
  name: string,
  alias: string,
  version: string,
  percent: number | undefined,
): Promise<ControllerSummary> {
  const body = { version, ...(percent !== undefined && { percent }) };
  return suggesting(client, name, client.request("PUT", `${at(name)}/aliases/${pathPart(alias)}`, { body }));
}

/** Points an alias back at what it pointed at before. */
export function rollbackController(client: ApiClient, name: string, alias?: string): Promise<ControllerSummary> {
  const body = alias === undefined ? {} : { alias };
  return suggesting(client, name, client.request("POST", `${at(name)}/rollback`, { body }));
}

/** One version, or without it the controller with all of them. Throws controller_not_found. */
export async function deleteController(client: ApiClient, name: string, version?: string): Promise<void> {
  const path = version === undefined ? at(name) : `${at(name)}/versions/${pathPart(version)}`;
  await suggesting(client, name, client.request("DELETE", path));
}
