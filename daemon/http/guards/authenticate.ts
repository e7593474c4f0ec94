// Who calls, and may they: authentication, then the route's scope, both before the body is read, validated or anything is
// looked up. So a caller without the scope learns nothing, not even whether an id exists.
import type { IncomingHttpHeaders } from "node:http";
import type { FastifyInstance, FastifyRequest } from "fastify";
import { MagicError } from "#contract/errors.ts";
import type { Principal } from "#contract/identity.ts";
import { isLoopback } from "./loopback.ts";

export interface Remote {
  readonly address: string | undefined;
  readonly loopback: boolean;
  readonly encrypted: boolean;
}

/** Makes a principal of a request's credential; throws `invalid_key` or `expired` for a bad or missing one. */
export interface Authenticator {
  authenticate(headers: IncomingHttpHeaders, remote: Remote): Principal | Promise<Principal>;
}

export interface AuthenticationOptions {
  readonly authenticator: Authenticator;
  /** The address listened on: plain HTTP beyond loopback takes no credentials. */
  readonly host: string;
}

export function useAuthentication(app: FastifyInstance, options: AuthenticationOptions): void {
  const open = isLoopback(options.host);
  app.addHook("onRequest", async (request) => {
    if (request.is404) return;
    const { scope, errors, surface } = request.routeOptions.config;
    const remote = remoteOf(request);
    const exposed = !open && !remote.encrypted;
    if (scope === null || scope === undefined) {
      // A token endpoint takes its credential in the body.
      if (exposed && (errors === "oauth" || request.headers.authorization !== undefined)) throw exposedCredential();
      return;
    }
    // Refused before it is looked at, unless it can only be the command line of this very machine.
    if (exposed && !remote.loopback) throw exposedCredential();
    const principal = await options.authenticator.authenticate(request.headers, remote);
    request.principal = principal;
    if (exposed && principal.type !== "local") throw exposedCredential();
    if (surface === "local" && principal.type !== "local")
      throw new MagicError("insufficient_scope", "Only the command line of this machine may call this.");
    if (!principal.scopes.has(scope))
      throw new MagicError("insufficient_scope", `The scope ${scope} is missing.`, { extra: { scope } });
  });
}

function remoteOf(request: FastifyRequest): Remote {
  const { remoteAddress, encrypted } = request.raw.socket as { remoteAddress?: string; encrypted?: boolean };
  return { address: remoteAddress, loopback: isLoopback(remoteAddress), encrypted: encrypted === true };
}

function exposedCredential(): MagicError {
  return new MagicError(
    "tls_required",
    "Credentials are not accepted over plain HTTP beyond loopback: listen with --tls.",
  );
}

/** The token of `Authorization: Bearer`, or undefined. */
export function bearerOf(headers: IncomingHttpHeaders): string | undefined {
  return /^Bearer +([\x21-\x7e]+)$/i.exec(headers.authorization ?? "")?.[1];
}
