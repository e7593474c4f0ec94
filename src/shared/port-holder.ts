// Who listens on a port, for an error that names the process. Linux only, and only what this user may see.
import { readdir, readFile, readlink } from "node:fs/promises";

/** `name (pid 123)`, or undefined where it cannot be found out. */
export async function portHolder(port: number): Promise<string | undefined> {
  try {
    const inode = (await inodeOf("/proc/net/tcp", port)) ?? (await inodeOf("/proc/net/tcp6", port));
    const pid = inode === undefined ? undefined : await pidOf(`socket:[${inode}]`);
    if (pid === undefined) return undefined;
    return `${(await readFile(`/proc/${pid}/comm`, "utf8")).trim()} (pid ${pid})`;
  } catch {
    return undefined;
  }
}

// proc_net(5): the second field is address:port in hexadecimal, the fourth the state (0A: listening), the tenth the inode.
async function inodeOf(table: string, port: number): Promise<string | undefined> {
  const wanted = `:${port.toString(16).toUpperCase().padStart(4, "0")}`;
  for (const line of (await readFile(table, "latin1")).split("\n").slice(1)) {
    const fields = line.trim().split(/\s+/);
    if (fields[1]?.endsWith(wanted) && fields[3] === "0A") return fields[9];
  }
  return undefined;
}

async function pidOf(socket: string): Promise<string | undefined> {
  for (const pid of await readdir("/proc")) {
    if (!/^\d+$/.test(pid)) continue;
    const descriptors = await readdir(`/proc/${pid}/fd`).catch(() => [] as string[]);
    for (const descriptor of descriptors)
      if ((await readlink(`/proc/${pid}/fd/${descriptor}`).catch(() => "")) === socket) return pid;
  }
  return undefined;
}
