// The checks of `magic doctor`. Each looks at one thing, says what it found and what to do, and mends it when asked to and
// when nothing can be lost by it.
import { accessSync, chmodSync, constants, existsSync, readFileSync, statfsSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import { problemLine } from "#contract/problem.ts";
import { readProject } from "#contract/project-check.ts";
import { runtimeNames, VERSION } from "#contract/protocol.ts";
import { credentialsFile, masterKeyFile, PROJECT_FILE, stateFolder, userStateFolder } from "#shared/paths.ts";
import { LEADS_NOWHERE, leadsNowhere } from "#shared/plain-file.ts";
import { isSameProcess } from "#shared/process-identity.ts";
import type { Check, DoctorOptions } from "./check.ts";
import { readCrashNote } from "./files.ts";
import { type DaemonState, type Inspection, inspectDaemon } from "./inspect.ts";
import { stateChecks } from "./state-checks.ts";
import { removeStaleFiles, stopDaemon } from "./stop.ts";

export async function runChecks(options: DoctorOptions): Promise<Check[]> {
  const inspection = await inspectDaemon(options.root);
  return [
    nodeCheck(),
    folderCheck("user state", userStateFolder(options.env), options.fix),
    folderCheck("project state", stateFolder(options.root), options.fix),
    diskCheck(options),
    projectCheck(options.root, inspection.info?.unset ?? []),
    await daemonCheck(inspection, options),
    ...stateChecks(inspection, options),
    crashCheck(options.root),
    secretsCheck(options),
    isolationCheck(inspection),
  ];
}

// Cells are proven on exactly one Node: another works, unproven.
function nodeCheck(): Check {
  const pinned = "26.10.0";
  if (process.versions.node === pinned) return { name: "node", status: "ok", detail: `Node ${pinned}, the pinned one` };
  const detail = `Node ${process.versions.node}; the pinned one is ${pinned}`;
  return { name: "node", status: "warning", detail, next: "Run `npm ci` without --omit=optional." };
}

function folderCheck(name: string, folder: string, fix: boolean): Check {
  try {
    const found = statSync(folder);
    const { mode, uid } = found;
    if (!found.isDirectory())
      return { name, status: "failed", detail: `${folder} is no folder`, next: "Move it out of the way." };
    if (process.getuid && uid !== process.getuid())
      return {
        name,
        status: "failed",
        detail: `${folder} belongs to uid ${uid}`,
        next: "Take it over, or choose another root.",
      };
    accessSync(folder, constants.R_OK | constants.W_OK | constants.X_OK);
    if ((mode & 0o077) === 0) return { name, status: "ok", detail: folder };
    const detail = `${folder} is open to other users (mode ${(mode & 0o777).toString(8)})`;
    const status = (mode & 0o022) === 0 ? "warning" : "failed";
    if (!fix) return { name, status, detail, next: "`magic doctor --fix` makes it yours alone." };
    chmodSync(folder, 0o700);
    return { name, status: "fixed", detail: `${detail}: now 700` };
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "ENOENT") return futureFolderCheck(name, folder);
    return {
      name,
      status: "failed",
      detail: `${folder} cannot be used (${code})`,
      next: "Correct its owner and permissions, or its disk.",
    };
  }
}

/** Of a folder that is not there yet: whether it can be made. */
function futureFolderCheck(name: string, folder: string): Check {
  if (leadsNowhere(folder))
    return {
      name,
      status: "failed",
      detail: `${folder}: ${LEADS_NOWHERE}`,
      next: "Bring back what it leads to, or remove the link.",
    };
  const parent = nearestTo(folder);
  try {
    accessSync(parent, constants.W_OK | constants.X_OK);
    return { name, status: "ok", detail: `${folder} (made when it is needed)` };
  } catch (error) {
    const detail = `${folder} cannot be made (${(error as NodeJS.ErrnoException).code})`;
    return { name, status: "failed", detail, next: `Correct the owner and permissions of ${parent}, or its disk.` };
  }
}

/** The folder itself, or the first one above it that is there. */
function nearestTo(folder: string): string {
  return existsSync(folder) || folder === dirname(folder) ? folder : nearestTo(dirname(folder));
}

function diskCheck({ root, env }: DoctorOptions): Check {
  try {
    // The user's state folder may still be made; a project is there.
    const { bavail, bsize } = statfsSync(root === userStateFolder(env) ? nearestTo(root) : root);
    const free = Math.floor((bavail * bsize) / 2 ** 20);
    const detail = `${free.toLocaleString("en-US")} MB free`;
    if (free >= 200) return { name: "disk", status: "ok", detail };
    return { name: "disk", status: free < 20 ? "failed" : "warning", detail, next: "Free some space." };
  } catch (error) {
    return { name: "disk", status: "failed", detail: `${root}: ${(error as Error).message}` };
  }
}

function projectCheck(root: string, unset: readonly string[]): Check {
  const name = PROJECT_FILE;
  const next = "Correct it: a daemon that runs keeps to the last good one until then, and none starts by this one.";
  let written = Buffer.alloc(0);
  try {
    if (!statSync(join(root, PROJECT_FILE)).isFile()) throw new Error("it is not a file");
    written = readFileSync(join(root, PROJECT_FILE));
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    if (leadsNowhere(join(root, PROJECT_FILE))) return { name, status: "failed", detail: LEADS_NOWHERE, next };
    if (code !== "ENOENT") return { name, status: "failed", detail: `it cannot be read: ${message}`, next };
  }
  if (written.toString("latin1").trim() === "") return { name, status: "ok", detail: "none: every default" };
  const { problems } = readProject(written, PROJECT_FILE);
  if (problems.length === 0 && unset.length > 0)
    return {
      name,
      status: "warning",
      detail: `valid, but the daemon was started without ${unset.join(", ")}`,
      next: "Set those that you use, then `magic daemon restart`.",
    };
  if (problems.length === 0) return { name, status: "ok", detail: "valid" };
  const [first, ...others] = problems.map(problemLine);
  const more = others.length === 0 ? "" : ` (and ${others.length} more: \`magic validate\` lists them)`;
  return { name, status: "failed", detail: `${first}${more}`, next };
}

const advice: Readonly<Record<DaemonState, string | undefined>> = {
  absent: undefined,
  running: undefined,
  starting: "Wait; `magic daemon stop` ends it if it never gets ready.",
  busy: "See `magic daemon logs`; it answers, so nothing is broken.",
  wedged: "`magic doctor --fix` stops it, so that the next command starts another.",
  stale: "The next command starts another; `magic doctor --fix` clears the file.",
  foreign: "Free the port or the file that the detail names, then `magic daemon start`.",
  incompatible: "`magic daemon restart` starts this version.",
};

async function daemonCheck({ state, detail, runtime }: Inspection, { root, fix }: DoctorOptions): Promise<Check> {
  const name = "daemon";
  const next = advice[state];
  if (state === "running" && runtime && runtime.version !== VERSION)
    return {
      name,
      status: "warning",
      detail: `running: ${detail} It is version ${runtime.version}, this command ${VERSION}.`,
      next: "`magic daemon restart` starts this version.",
    };
  if (state === "running" || state === "absent") return { name, status: "ok", detail: `${state}: ${detail}` };
  if (state === "starting" || state === "busy")
    return { name, status: "warning", detail: `${state}: ${detail}`, ...(next !== undefined && { next }) };
  if (fix && state === "stale") {
    removeStaleFiles(root);
    return { name, status: "fixed", detail: `stale: ${detail} Its file is removed.` };
  }
  if (fix && state === "wedged" && runtime) {
    const { pid } = await stopDaemon(root);
    return { name, status: "fixed", detail: `wedged: ${detail} It was stopped (pid ${pid}).` };
  }
  // A foreign file whose process is gone keeps the root's own daemon from nothing; one that lives is not ours to end.
  if (fix && state === "foreign" && runtime && !isSameProcess(runtime.pid, runtime.pid_started)) {
    removeStaleFiles(root);
    return { name, status: "fixed", detail: `foreign: ${detail} Its file is removed.` };
  }
  return { name, status: "failed", detail: `${state}: ${detail}`, ...(next !== undefined && { next }) };
}

function crashCheck(root: string): Check {
  const crash = attempt(() => readCrashNote(root));
  const last = crash?.crashes.at(-1);
  if (!last) return { name: "crashes", status: "ok", detail: "none noted" };
  const detail = `${crash?.crashes.length} noted, the last at ${last.at}: ${last.message}`;
  return { name: "crashes", status: "warning", detail, next: "Read `magic daemon logs`." };
}

/** Files that hold credentials, and must be the user's alone. */
function secretsCheck({ root, env, fix }: DoctorOptions): Check {
  const state = stateFolder(root);
  const files = [join(state, runtimeNames.runtime), credentialsFile(state), masterKeyFile(userStateFolder(env))];
  const open = files.filter((path) => ((attempt(() => statSync(path).mode) ?? 0) & 0o077) !== 0);
  if (open.length === 0) return { name: "secrets", status: "ok", detail: "readable by you alone" };
  const detail = `readable by others: ${open.join(", ")}`;
  if (!fix)
    return {
      name: "secrets",
      status: "failed",
      detail,
      next: "`magic doctor --fix` closes them; roll the credentials if others could log in.",
    };
  for (const path of open) chmodSync(path, 0o600);
  return { name: "secrets", status: "fixed", detail: `${detail}: now 600` };
}

function isolationCheck({ info }: Inspection): Check {
  const name = "isolation";
  if (!info) return { name, status: "ok", detail: unprobed() };
  if (!info.isolation) return { name, status: "ok", detail: "known once a first controller has been locked down" };
  const { level, layers } = info.isolation;
  const shown = layers.map(
    (layer) => `${layer.active ? "+" : "-"}${layer.name}${layer.active ? "" : ` (${layer.detail ?? "off"})`}`,
  );
  const weak = layers.some((layer) => !layer.active);
  const detail = `${level}: ${shown.join(" ")}`;
  if (!weak) return { name, status: "ok", detail };
  const next =
    level === "none"
      ? "Controllers are refused on this machine; `magic daemon start --allow-weak-sandbox` runs them without the lockdown."
      : "docs/cell.md says what each layer is for.";
  return { name, status: "warning", detail, next };
}

// Without a daemon only the kernel's word is at hand.
function unprobed(): string {
  if (process.platform !== "linux") return `${process.platform}: process isolation and --permission only, no lockdown`;
  const lsm = attempt(() => readFileSync("/sys/kernel/security/lsm", "utf8").trim()) ?? "unknown";
  return `proven when a daemon runs; the kernel's security modules: ${lsm}`;
}

function attempt<T>(look: () => T): T | undefined {
  try {
    return look();
  } catch {
    return undefined;
  }
}
