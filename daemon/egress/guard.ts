// The decision: which addresses a host and port may be reached at. Every name is resolved here, once, every answer is checked,
// and the connection goes to what was checked: a name that resolves otherwise a moment later changes nothing.
import { lookup } from "node:dns/promises";
import { isIP } from "node:net";
import { MagicError } from "#contract/errors.ts";
import { isPublic } from "./addresses.ts";
import { boundedLookups, type Resolver } from "./lookups.ts";

export interface GuardOptions {
  /** `host:port` pairs that are reachable although they are private; asked anew for each connection. */
  readonly allowPrivate?: (() => readonly string[]) | undefined;
  /** Name to addresses; the system's resolver when absent. */
  readonly resolver?: Resolver | undefined;
}

export interface Guard {
  /** The addresses to connect to, in order. @throws MagicError `egress_blocked`, `upstream_error` when the name is unknown. */
  addresses(hostname: string, port: number): Promise<readonly string[]>;
  /** Whether a socket that ended up at `address` may be used. */
  mayUse(address: string | undefined, hostname: string, port: number): boolean;
}

export function createGuard({ allowPrivate = () => [], resolver = systemResolver }: GuardOptions): Guard {
  const lookUp = boundedLookups(resolver);
  const allowed = (host: string, port: number): boolean => {
    const wanted = [hostPort(host, port), hostPort(host, "*")];
    return allowPrivate().some((pair) => wanted.includes(normalPair(pair)));
  };
  const mayUse: Guard["mayUse"] = (address, hostname, port) =>
    address !== undefined && (isPublic(address) || allowed(address, port) || allowed(hostname, port));

  return {
    mayUse,
    async addresses(hostname, port) {
      const host = bare(hostname);
      const found = isIP(host) === 0 ? await resolve(host) : [host];
      for (const address of found)
        if (!mayUse(address, host, port))
          throw new MagicError(
            "egress_blocked",
            `${hostPort(host, port)} is not a public address, and egress.allow_private in magic.yaml does not list it`,
            { extra: { host, port } },
          );
      return found;
    },
  };

  async function resolve(host: string): Promise<readonly string[]> {
    // RFC 6761 section 6.3: these never go to the DNS, whatever resolver is asked.
    if (/^(?:.+\.)?localhost\.?$/i.test(host)) return ["127.0.0.1"];
    try {
      const found = await lookUp(host);
      if (found.length > 0) return found;
    } catch (error) {
      throw new MagicError("upstream_error", `the name ${host} does not resolve`, { cause: error });
    }
    throw new MagicError("upstream_error", `the name ${host} has no address`);
  }
}

async function systemResolver(hostname: string): Promise<readonly string[]> {
  return (await lookup(hostname, { all: true })).map(({ address }) => address);
}

function bare(hostname: string): string {
  return hostname.startsWith("[") && hostname.endsWith("]") ? hostname.slice(1, -1) : hostname;
}

function hostPort(hostname: string, port: number | "*"): string {
  const host = bare(hostname).toLowerCase().replace(/\.$/, "");
  return host.includes(":") ? `[${host}]:${port}` : `${host}:${port}`;
}

// "127.0.0.1:9000", "[::1]:9000", "localhost:*" for every port: as a URL would read them, so that one spelling meets another.
function normalPair(pair: string): string {
  const every = pair.endsWith(":*");
  const url = URL.parse(`http://${every ? pair.slice(0, -2) : pair}`);
  if (url === null) return "";
  return hostPort(url.hostname, every ? "*" : Number(url.port || 80));
}
