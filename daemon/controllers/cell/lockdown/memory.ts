// How much memory this process may still take, by the kernel's own count (setrlimit(2), RLIMIT_DATA).
import { readFileSync } from "node:fs";
import { type Kernel, resource } from "./kernel.ts";

/** So much more than it has: an absolute limit would kill Node, which reserves some 550 MB that it never touches. */
export function limitMemory(kernel: Kernel, bytes: number): void {
  const kilobytes = /^VmData:\s+(\d+)/m.exec(readFileSync("/proc/self/status", "utf8"))?.[1];
  if (kilobytes === undefined) throw new Error("/proc/self/status has no VmData");
  kernel.limit(resource.data, Number(kilobytes) * 1024 + bytes);
}
