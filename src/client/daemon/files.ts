// What a daemon leaves in the root's state folder for the command line to find: the runtime file of a ready one, the mark of
// a starting one, the note of a crashed one. Their writers are in daemon/process.
import { readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { MagicError } from "#contract/errors.ts";
import {
  type CrashNote,
  type DaemonDocument,
  type RuntimeFile,
  runtimeNames,
  type StartingMark,
} from "#contract/protocol.ts";
import { localCertificate, stateFolder } from "#shared/paths.ts";
import { readPlainFile, WITHOUT_WAITING } from "#shared/plain-file.ts";

/** The runtime file of a root; undefined where there is none or it is damaged. Throws `state_unusable` when it cannot be trusted or read. */
export function readRuntimeFile(root: string): RuntimeFile | undefined {
  const path = join(stateFolder(root), runtimeNames.runtime);
  const found = readJson<RuntimeFile>(path);
  if (found === undefined) return undefined;
  const file = statSync(path, { throwIfNoEntry: false });
  // Its daemon has just ended.
  if (!file) return undefined;
  const { uid, mode } = file;
  if (process.getuid && uid !== process.getuid())
    throw new MagicError("state_unusable", `${path} belongs to another user: its daemon is not trusted.`);
  if (process.platform !== "win32" && (mode & 0o077) !== 0)
    throw new MagicError(
      "state_unusable",
      `${path} can be read by other users (mode ${(mode & 0o777).toString(8)}): it must be 600.`,
    );
  if (!isRuntimeFile(found) || isCopy(root, found)) return undefined;
  if (found.url.startsWith("https:")) trustLocalCertificate(root);
  return found;
}

// A project that is copied while its daemon runs takes that daemon's file along: what is done in the copy must not be done to the
// original. One that is moved takes its daemon along, and nothing is left where it was.
function isCopy(root: string, { root: owner, pid, pid_started }: RuntimeFile): boolean {
  if (owner === root) return false;
  try {
    const [here, there] = [root, owner].map((path) => statSync(stateFolder(path)));
    if (here?.ino === there?.ino && here?.dev === there?.dev) return false;
    const original = readJson<RuntimeFile>(join(stateFolder(owner), runtimeNames.runtime));
    return original?.pid === pid && original.pid_started === pid_started;
  } catch {
    return false;
  }
}

let trusted: string | undefined;

// A daemon with --tls has made its own certificate, which no authority knows: this process takes it besides those it knows.
function trustLocalCertificate(root: string): void {
  try {
    const certificate = readFileSync(localCertificate(stateFolder(root)), "utf8");
    if (trusted === certificate) return;
    // Loaded for such a daemon alone: it would be a sixth of what a command that asks the daemon takes.
    const tls = process.getBuiltinModule("node:tls");
    tls.setDefaultCACertificates([...tls.getCACertificates("default"), certificate]);
    trusted = certificate;
  } catch {
    // There is none where the user brought a certificate.
  }
}

export function readStartingMark(root: string): StartingMark | undefined {
  const found = readJson<StartingMark>(join(stateFolder(root), runtimeNames.starting));
  return typeof found?.pid === "number" ? found : undefined;
}

export function readCrashNote(root: string): CrashNote | undefined {
  const found = readJson<CrashNote>(join(stateFolder(root), runtimeNames.crash));
  return Array.isArray(found?.crashes) && found.crashes.length > 0 ? found : undefined;
}

/** What `magic daemon start|status --json` prints for a running daemon. */
export function daemonDocument(runtime: RuntimeFile): DaemonDocument {
  const { pid, url, gateway_token, api_key, admin_key, local_token, version, protocol, root } = runtime;
  return {
    pid,
    url,
    gateway_url: url,
    base_url: url,
    gateway_token,
    api_key,
    admin_key,
    local_token,
    version,
    protocol,
    root,
  };
}

function isRuntimeFile(found: RuntimeFile): boolean {
  return (
    typeof found.pid === "number" &&
    typeof found.url === "string" &&
    typeof found.local_token === "string" &&
    typeof found.protocol === "number"
  );
}

function readJson<T>(path: string): T | undefined {
  try {
    return (JSON.parse(String(readPlainFile(path))) as T | null) ?? undefined;
  } catch (error) {
    const { message, cause } = error as Error;
    const { code } = (cause ?? {}) as NodeJS.ErrnoException;
    if (code === "ENOENT" || code === "ENOTDIR" || error instanceof SyntaxError) return undefined;
    const extra = code === undefined ? { next: "Move it out of the way." } : {};
    throw new MagicError("state_unusable", message, { cause: error, extra });
  }
}

/** So that a crash is told once, not by every command. */
export function markCrashShown(root: string, note: CrashNote): void {
  try {
    writeFileSync(join(stateFolder(root), runtimeNames.crash), JSON.stringify({ ...note, shown: true }), {
      mode: 0o600,
    });
  } catch {
    // Told twice is better than a command that fails for it.
  }
}

/** The last lines of what a daemon's runtime printed when it died: out of memory, a failed assertion. "" when there are none. */
export function lastWords(root: string): string {
  try {
    // esbuild's process, whose pipe ends with the daemon, calls that a deadlock of its own.
    return readFileSync(join(stateFolder(root), runtimeNames.output), { encoding: "utf8", flag: WITHOUT_WAITING })
      .replace(/^fatal error: all goroutines are asleep[\s\S]*evanw\/esbuild[\s\S]*/m, "")
      .trim()
      .slice(-1_000);
  } catch {
    return "";
  }
}
