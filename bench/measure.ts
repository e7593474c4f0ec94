// How all benchmarks count: processor time and quantiles.
import { readFileSync } from "node:fs";

/** CPU milliseconds of a process and all its threads (proc_pid_stat(5), fields 14 and 15, at 100 ticks a second). */
export function cpuOf(pid: number): number {
  const fields = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1]?.split(" ") ?? [];
  return (Number(fields[11]) + Number(fields[12])) * 10;
}

export function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? 0;
}
