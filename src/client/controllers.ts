// Controllers of a daemon, for commands: invoke, deploy, develop.
import { MagicError } from "#contract/errors.ts";
import type { DevelopmentEvent } from "#contract/wire/controllers.ts";
import type { ApiClient } from "./http.ts";

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

export function invokeController(client: ApiClient, request: InvokeRequest): Promise<InvokeAnswer> {
  const { name, input, version, signal } = request;
  return client.request<InvokeAnswer>("POST", `/v1/controllers/${encodeURIComponent(name)}/invoke`, {
    body: { input, ...(version === undefined ? {} : { version }) },
    ...(signal && { signal }),
  });
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
  return client.request("POST", `/v1/dev/sessions/${encodeURIComponent(session)}/reload`, { body: {} });
}
