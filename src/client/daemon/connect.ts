// From a command to a client for the daemon that it means: another one named by --url, else this root's own, which is found, or
// started when there is none.
import { setTimeout as sleep } from "node:timers/promises";
import { isMagicError, MagicError } from "#contract/errors.ts";
import { type CrashNote, PROTOCOL, type RuntimeFile } from "#contract/protocol.ts";
import { backoff } from "#shared/backoff.ts";
import { findRoot } from "#shared/paths.ts";
import { isSameProcess } from "#shared/process-identity.ts";
import { type ApiClient, createApiClient } from "../http.ts";
import { lastWords, markCrashShown, readCrashNote, readRuntimeFile } from "./files.ts";
import type { SpawnOptions, Started } from "./spawn.ts";

export interface ConnectOptions {
  readonly root?: string | undefined;
  /** --url or MAGIC_URL. */
  readonly url?: string | undefined;
  readonly live?: boolean;
  readonly env?: NodeJS.ProcessEnv;
  /** False: only a running daemon will do. */
  readonly start?: boolean;
  /** Where notes for the user go: a daemon was started, the last one crashed. */
  readonly note?: (text: string) => void;
  /** There was none: this call started it. */
  readonly onStarted?: () => void;
}

/** A client for the daemon that a command's options and environment name. `MAGIC_API_KEY` replaces the local token. */
export async function connect(options: ConnectOptions): Promise<ApiClient> {
  const env = options.env ?? process.env;
  const environment = options.live ? "live" : "sandbox";
  const key = env["MAGIC_API_KEY"] || undefined;
  const url = options.url ?? (env["MAGIC_URL"] || undefined);
  // Once: who only looks on asks again and again, or beside another one.
  if (options.live && options.start !== false && /^(sk|gt)_test_/.test(key ?? ""))
    options.note?.("MAGIC_API_KEY is a sandbox key: this is the sandbox, not live.");
  const findPath = () => findRoot(options.root, env).path;
  if (url !== undefined) {
    const ours = localTokenFor(findPath, url);
    return createApiClient({ url, token: key ?? ours, environment, named: true });
  }
  const root = findPath();
  const runtime = options.start === false ? requireRunning(root) : await findOrStart({ ...options, root });
  return createApiClient({ url: runtime.url, token: key ?? runtime.local_token, environment });
}

/** The runtime file of a root's daemon when that very process lives. Throws `protocol_mismatch` for one that speaks another protocol. */
export function findDaemon(root: string): RuntimeFile | undefined {
  const runtime = readRuntimeFile(root);
  if (!runtime || !isSameProcess(runtime.pid, runtime.pid_started)) return undefined;
  if (runtime.protocol !== PROTOCOL)
    throw new MagicError(
      "protocol_mismatch",
      `The daemon (version ${runtime.version}) speaks protocol ${runtime.protocol}, this command ${PROTOCOL}.`,
    );
  return runtime;
}

export interface StartOptions extends Omit<SpawnOptions, "startedBy"> {
  readonly note?: ((text: string) => void) | undefined;
}

export interface StartResult {
  readonly runtime: RuntimeFile;
  readonly notes: readonly string[];
  /** Set when this call started it. */
  readonly started: Started | undefined;
}

/** Milliseconds to wait for a daemon that another command is starting, or that is still stopping. */
const OWNER_TIMEOUT = 20_000;

/** The root's daemon, started when there is none. Two callers at once get the same one. */
export async function startDaemon(options: StartOptions, startedBy: "user" | "command" = "user"): Promise<StartResult> {
  const until = performance.now() + OWNER_TIMEOUT;
  const words = abruptEnd(options.root);
  for (;;) {
    const running = findDaemon(options.root);
    if (running) return { runtime: running, notes: [], started: undefined };
    try {
      const { spawnDaemon } = await import("./spawn.ts");
      const started = await spawnDaemon({ ...options, startedBy });
      return { runtime: started.runtime, notes: [...words, ...started.notes], started };
    } catch (error) {
      if (!isMagicError(error) || error.code !== "daemon_owned" || performance.now() > until) throw error;
    }
    await sleep(50);
  }
}

// A runtime file without its process: what that one printed at its end is overwritten by the next.
function abruptEnd(root: string): string[] {
  const stale = readRuntimeFile(root);
  if (!stale || isSameProcess(stale.pid, stale.pid_started)) return [];
  const text = lastWords(root);
  return text === "" ? [] : [`The last daemon (pid ${stale.pid}) died. It said: ${text}`];
}

async function findOrStart(options: ConnectOptions & { readonly root: string }): Promise<RuntimeFile> {
  const running = findDaemon(options.root);
  if (running) return running;
  const crash = readCrashNote(options.root);
  if (crash) {
    refuseDuringBackoff(crash);
    tellCrash(options.root, crash, options.note);
  }
  const { runtime, notes, started } = await startDaemon(
    { root: options.root, ...(options.env && { env: options.env }) },
    "command",
  );
  for (const text of notes) options.note?.(text);
  if (started) options.onStarted?.();
  if (started) options.note?.(`Started the daemon at ${runtime.url} (pid ${runtime.pid}).`);
  return runtime;
}

/** Tells, once, that the last daemon crashed. */
export function tellCrash(root: string, crash: CrashNote, note: ((text: string) => void) | undefined): void {
  const last = crash.crashes.at(-1);
  if (crash.shown || !last) return;
  note?.(`The daemon crashed at ${last.at}: ${last.message}. Its log: \`magic daemon logs\`.`);
  markCrashShown(root, crash);
}

// A daemon that crashes again and again is not started by every command anew: 1, 2, 4... seconds pass in between, 60 at most.
function refuseDuringBackoff(crash: CrashNote): void {
  const recent = crash.crashes.filter(({ at }) => Date.now() - Date.parse(at) < 10 * 60_000);
  const last = recent.at(-1);
  if (!last || recent.length < 2) return;
  const wait = backoff(recent.length - 2, 1_000, 60_000) - (Date.now() - Date.parse(last.at));
  if (wait <= 0) return;
  throw new MagicError(
    "daemon_unavailable",
    `The daemon crashed ${recent.length} times, last with: ${last.message}. It is not started again for ${Math.ceil(wait / 1000)} s; \`magic daemon start\` starts it now.`,
    { retryAfterS: wait / 1000 },
  );
}

function requireRunning(root: string): RuntimeFile {
  const running = findDaemon(root);
  if (!running) throw new MagicError("daemon_unavailable", `No daemon runs for ${root}.`);
  return running;
}

// --url may name this root's own daemon: then no key is needed, and the certificate that it made for itself is trusted.
function localTokenFor(root: () => string, url: string): string | undefined {
  try {
    const runtime = findDaemon(root());
    return runtime && new URL(runtime.url).origin === URL.parse(url)?.origin ? runtime.local_token : undefined;
  } catch {
    return undefined;
  }
}
