// Which port: the one asked for, or an error that names its holder; the default one, or the next that is free, with a notice.
import { createServer } from "node:net";
import { MagicError } from "#contract/errors.ts";
import type { ProjectConfig } from "#contract/project.ts";
import { DEFAULT_PORT } from "#contract/protocol.ts";
import { portHolder } from "./port-holder.ts";

const ATTEMPTS = 100;

export interface Listening {
  readonly url: string;
  readonly notes: readonly string[];
}

/** Most magic.yaml files name the default port: that one may move on when it is taken, another one was asked for. */
export function configuredPort({ daemon }: ProjectConfig): number | undefined {
  return daemon?.port === DEFAULT_PORT ? undefined : daemon?.port;
}

/** @param asked the port of --port or magic.yaml; 0 is any free one; undefined lets the default move on. */
export async function listenOn(
  asked: number | undefined,
  listen: (port: number) => Promise<string>,
): Promise<Listening> {
  if (asked !== undefined) return { url: await listenOrName(asked, listen), notes: [] };
  for (let port = DEFAULT_PORT; port < DEFAULT_PORT + ATTEMPTS; port++) {
    try {
      const url = await listen(port);
      const holder = port === DEFAULT_PORT ? undefined : await portHolder(DEFAULT_PORT);
      const notes =
        port === DEFAULT_PORT
          ? []
          : [`Port ${DEFAULT_PORT} is taken${holder ? ` by ${holder}` : ""}: listening on ${port}.`];
      return { url, notes };
    } catch (error) {
      if (!isTaken(error)) throw refused(port, error);
    }
  }
  throw new MagicError("port_taken", `Ports ${DEFAULT_PORT} to ${DEFAULT_PORT + ATTEMPTS - 1} are all taken.`);
}

/** Listens there for a moment. Throws port_taken, which names the holder, or usage. */
export async function requireFree(port: number, host: string): Promise<void> {
  const server = createServer();
  const listen = () =>
    new Promise<string>((resolve, reject) => {
      server.once("error", reject).listen({ port, host }, () => resolve(host));
    });
  await listenOrName(port, listen);
  await new Promise((closed) => server.close(closed));
}

async function listenOrName(port: number, listen: (port: number) => Promise<string>): Promise<string> {
  try {
    return await listen(port);
  } catch (error) {
    if (!isTaken(error)) throw refused(port, error);
    const holder = await portHolder(port);
    throw new MagicError("port_taken", `Port ${port} is taken${holder ? ` by ${holder}` : ""}.`, {
      cause: error,
      extra: { port, ...(holder && { holder }) },
    });
  }
}

function isTaken(error: unknown): boolean {
  return (error as NodeJS.ErrnoException).code === "EADDRINUSE";
}

/** What `bind` says of an address that is none of this machine's, and the resolver of a name that leads to none. */
const notHere = ["EADDRNOTAVAIL", "EAFNOSUPPORT", "EINVAL", "ENOTFOUND", "EAI_AGAIN"];

function refused(port: number, error: unknown): unknown {
  const { code = "", address, hostname } = error as NodeJS.ErrnoException & { address?: string; hostname?: string };
  if (code === "EACCES")
    return new MagicError("port_taken", `Port ${port} is not open to this user.`, { cause: error });
  if (notHere.includes(code))
    return new MagicError("usage", `The host ${address ?? hostname} is not an address of this machine.`, {
      cause: error,
      extra: { next: "Correct --host, or `daemon.host` in magic.yaml." },
    });
  return error;
}
