// The URL of a server at the end of a sync, read once: whoever checks where it leads must see what its driver will see.
import { isMagicError, MagicError } from "#contract/errors.ts";

const NO_HOST = /^([a-z+]+:\/\/[^/?#]*@)(?=[/?#]|$)/i;
/** What a database's driver takes from the query in place of what stands before it. */
const overriding = ["host", "hostaddr", "port", "socket"];

/** Reads what a driver reads, `postgres://user@/db?host=/run` (nothing behind the user) too; null: it is none. */
export function readServerUrl(text: string): URL | null {
  if (!/^[a-z][a-z+]*:\/\//i.test(text)) return null;
  const url = URL.parse(text.replace(NO_HOST, "$1localhost"));
  return url && [url.username, url.password, url.hostname, url.pathname].every(isEncoded) ? url : null;
}

/** @throws MagicError `invalid_request`; the message does not repeat the URL, which may hold a password. */
export function serverUrl(text: string): URL {
  const url = readServerUrl(text);
  if (url) return url;
  throw new MagicError(
    "invalid_request",
    "The URL cannot be read: it is scheme://host:port/name, and what is special in a user name or password is percent-encoded (% itself as %25, @ as %40).",
  );
}

/**
 * Where a database's driver will connect to: a host's name or address, or the folder or file of a socket.
 *
 * @throws MagicError `invalid_request` where two drivers could read it in two ways, or the port is none.
 */
export function databasePlace(url: URL, defaultPort: number): { readonly host: string; readonly port: number } {
  const { searchParams: given } = url;
  const twice = overriding.find((name) => given.getAll(name).length > 1);
  if (twice) throw new MagicError("invalid_request", `The database's URL has the parameter ${twice} twice.`);
  // PostgreSQL's driver knows no such parameter: it would go to the host, past whoever checked the socket.
  const socket = /^(mysql|mariadb):$/.test(url.protocol) ? given.get("socket") : null;
  const host = given.get("host") || socket || decodeURIComponent(url.hostname) || "localhost";
  const port = Number(given.get("port") || url.port || defaultPort);
  if (!(Number.isInteger(port) && port > 0 && port < 65_536))
    throw new MagicError("invalid_request", "The port in the database's URL is none from 1 to 65535.");
  return { host, port };
}

/** What `make` makes of a database's URL. @throws MagicError `invalid_request` where it cannot: files of certificates that are not there. */
export function madeOf<T>(make: () => T): T {
  try {
    return make();
  } catch (error) {
    if (isMagicError(error)) throw error;
    throw new MagicError("invalid_request", `The database's URL cannot be used: ${(error as Error).message}.`);
  }
}

function isEncoded(text: string): boolean {
  try {
    decodeURIComponent(text);
    return true;
  } catch {
    return false;
  }
}
