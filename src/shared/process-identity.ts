// Is the process that wrote a file still that process? A pid alone does not say: pids are used again, and a zombie still has one.
import { readFileSync } from "node:fs";

/** Start time in clock ticks since boot (proc_pid_stat(5), field 22); null where the system has no /proc or no such process. */
export function processStarted(pid: number): string | null {
  return statOf(pid)?.started ?? null;
}

/** True when a process with this pid lives and, where known, began at `started`. A zombie is dead. */
export function isSameProcess(pid: number, started: string | null): boolean {
  if (!Number.isInteger(pid) || pid <= 0) return false;
  const stat = statOf(pid);
  if (stat) return stat.state !== "Z" && stat.state !== "X" && (started === null || stat.started === started);
  if (process.platform === "linux") return false;
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "EPERM";
  }
}

// The second field, the name, is in parentheses and may itself hold spaces and parentheses.
function statOf(pid: number): { readonly state: string; readonly started: string } | undefined {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, "latin1");
    const fields = text.slice(text.lastIndexOf(")") + 2).split(" ");
    const [state, started] = [fields[0], fields[19]];
    return state && started ? { state, started } : undefined;
  } catch {
    return undefined;
  }
}
