// What remains of a crash for the next command to tell, and for back-off to count.
import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type CrashNote, runtimeNames } from "#contract/protocol.ts";
import { rfc3339 } from "#shared/clock.ts";
import { redactText } from "#shared/redact.ts";

const KEPT = 8;

/** Synchronous, because the process is about to end. */
export function noteCrash(state: string, error: unknown): void {
  const path = join(state, runtimeNames.crash);
  const { message, stack } = error instanceof Error ? error : new Error(String(error));
  const crash = {
    at: rfc3339(Date.now()),
    pid: process.pid,
    message: redactText(message).slice(0, 500),
    stack: redactText(stack ?? "").slice(0, 4_000),
  };
  try {
    const note: CrashNote = { crashes: [...earlier(path), crash].slice(-KEPT), shown: false };
    writeFileSync(path, JSON.stringify(note), { mode: 0o600 });
  } catch {
    // A full disk may be why it crashes.
  }
}

/** Once a daemon has run well for a while, earlier crashes no longer count. */
export function forgetCrashes(state: string): void {
  rmSync(join(state, runtimeNames.crash), { force: true });
}

function earlier(path: string): CrashNote["crashes"] {
  try {
    const found = JSON.parse(readFileSync(path, "utf8")) as CrashNote;
    return Array.isArray(found.crashes) ? found.crashes : [];
  } catch {
    return [];
  }
}
