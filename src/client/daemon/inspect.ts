// What is there for a root: a daemon that runs, one that only seems to, or none. Looks, and changes nothing.
import { setTimeout as sleep } from "node:timers/promises";
import { isMagicError } from "#contract/errors.ts";
import { PROTOCOL, type RuntimeFile } from "#contract/protocol.ts";
import type { DaemonInfo } from "#contract/wire/daemon.ts";
import { isSameProcess } from "#shared/process-identity.ts";
import { createApiClient } from "../http.ts";
import { readRuntimeFile, readStartingMark } from "./files.ts";

/**
 * absent: none. starting: one owns the root and is not ready. running: it answers. busy: it answers, slowly. wedged: its
 * process lives and does not answer. stale: only its file is left. foreign: something else is where the file points.
 * incompatible: it speaks another protocol.
 */
export type DaemonState = "absent" | "starting" | "running" | "busy" | "wedged" | "stale" | "foreign" | "incompatible";

export interface Inspection {
  readonly state: DaemonState;
  /** One sentence for people. */
  readonly detail: string;
  readonly runtime: RuntimeFile | undefined;
  readonly info: DaemonInfo | undefined;
}

const BUSY_AFTER = 1_000;
const WEDGED_AFTER = 6_000;
// A process that was killed closes its port before it is gone: milliseconds later, or seconds on a machine that is short of CPU.
const DYING = 2_000;

export async function inspectDaemon(root: string): Promise<Inspection> {
  const found = (state: DaemonState, detail: string, runtime?: RuntimeFile, info?: DaemonInfo): Inspection => ({
    state,
    detail,
    runtime,
    info,
  });
  let runtime: RuntimeFile | undefined;
  try {
    runtime = readRuntimeFile(root);
  } catch (error) {
    return found("foreign", (error as Error).message);
  }
  if (!runtime) {
    const mark = readStartingMark(root);
    if (mark && isSameProcess(mark.pid, mark.pid_started))
      return found("starting", `Process ${mark.pid} has been starting since ${mark.started_at}.`);
    return found("absent", "No daemon runs.");
  }
  const { pid, url } = runtime;
  const stale = () => found("stale", `The daemon of the runtime file (pid ${pid}) has ended without a word.`, runtime);
  if (!isSameProcess(pid, runtime.pid_started)) return stale();
  if (runtime.protocol !== PROTOCOL)
    return found(
      "incompatible",
      `The daemon (pid ${pid}, version ${runtime.version}) speaks protocol ${runtime.protocol}, this command ${PROTOCOL}.`,
      runtime,
    );
  const began = performance.now();
  try {
    const info = await ask(runtime);
    const took = Math.round(performance.now() - began);
    if (info.pid !== pid || info.root !== runtime.root)
      return found("foreign", `${url} is answered by another daemon (pid ${info.pid}, root ${info.root}).`, runtime);
    if (took > BUSY_AFTER) return found("busy", `The daemon (pid ${pid}) took ${took} ms to answer.`, runtime, info);
    return found("running", `The daemon runs at ${url} (pid ${pid}).`, runtime, info);
  } catch (error) {
    if (performance.now() - began >= WEDGED_AFTER - 50)
      return found(
        "wedged",
        `The daemon (pid ${pid}) lives, and has not answered for ${WEDGED_AFTER / 1000} s.`,
        runtime,
      );
    const silent = isMagicError(error) && error.code === "daemon_unavailable" && error.extra["reason"] !== "foreign";
    if (!silent)
      return found("foreign", `Something at ${url} is not this root's daemon: ${(error as Error).message}`, runtime);
    if (await endsSoon(runtime)) return stale();
    return found("wedged", `The daemon (pid ${pid}) lives, but nothing answers at ${url}.`, runtime);
  }
}

async function endsSoon({ pid, pid_started }: RuntimeFile): Promise<boolean> {
  const until = performance.now() + DYING;
  while (isSameProcess(pid, pid_started)) {
    if (performance.now() > until) return false;
    await sleep(20);
  }
  return true;
}

function ask(runtime: RuntimeFile): Promise<DaemonInfo> {
  return clientOf(runtime).request<DaemonInfo>("GET", "/v1/daemon", { signal: AbortSignal.timeout(WEDGED_AFTER) });
}

/** One that some command started ends when it is idle; from now on it stays. */
export async function keepDaemon(runtime: RuntimeFile): Promise<void> {
  await clientOf(runtime).request("POST", "/v1/daemon/keep", { signal: AbortSignal.timeout(WEDGED_AFTER) });
}

const clientOf = ({ url, local_token: token }: RuntimeFile) => createApiClient({ url, token, environment: "sandbox" });
