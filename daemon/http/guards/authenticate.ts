// Who calls, and may they: authentication, then the route's scope, both before the body is read, validated or anything is
// looked up. So a caller without the scope learns nothing, not even whether an id exists.
import type { IncomingHttpHeaders, IncomingMessage } from "node:http";
import type { Socket } from "node:net";
import type { FastifyInstance, FastifyRequest } from "fastify";
import { MagicError } from "#contract/errors.ts";
import type { Principal } from "#contract/identity.ts";
import { isLoopback } from "#shared/loopback.ts";
import { anonymous } from "../route-config.ts";

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
  const admit = (request: FastifyRequest, remote: Remote, principal: Principal) => {
    const { scope, surface } = request.route;
    request.principal = principal;
    checkExposure(options.host, remote, principal);
    if (surface === "local" && principal.type !== "local")
      throw new MagicError("insufficient_scope", "Only the command line of this machine may call this.");
    if (scope && !principal.scopes.has(scope))
      throw new MagicError("insufficient_scope", `The scope ${scope} is missing.`, { extra: { scope } });
  };

  // A known credential is told at once, and costs no promise.
  app.addHook("onRequest", (request, _reply, done) => {
    const { url, scope, errors } = request.route;
    const remote = remoteOf(request.raw);
    if (url === undefined) {
      whoAsks(options, request.headers, remote).then((principal) => {
        request.principal = principal;
        done();
      }, done);
      return;
    }
    if (scope === null || scope === undefined) {
      // A token endpoint takes its credential in the body.
      const credential = errors === "oauth" || request.headers.authorization !== undefined;
      if (credential) checkExposure(options.host, remote, anonymous);
      return done();
    }
    checkExposure(options.host, remote);
    const found = options.authenticator.authenticate(request.headers, remote);
    if (found instanceof Promise) found.then((principal) => admit(request, remote, principal)).then(() => done(), done);
    else {
      admit(request, remote, found);
      done();
    }
  });
}

// Where there is nothing to call, everybody gets the same 404 or 405; who it was is for the log and the audit log alone.
async function whoAsks(
  { authenticator, host }: AuthenticationOptions,
  headers: IncomingHttpHeaders,
  remote: Remote,
): Promise<Principal> {
  if (headers.authorization === undefined) return anonymous;
  try {
    checkExposure(host, remote);
    return await authenticator.authenticate(headers, remote);
  } catch {
    return anonymous;
  }
}

/**
 * Refuses credentials over plain HTTP to a listener beyond loopback: before they are looked at (no principal given) when they
 * crossed the network, and afterwards all but the local command line's own.
 */
export function checkExposure(host: string, remote: Remote, principal?: Principal): void {
  if (remote.encrypted || isLoopback(host)) return;
  if (principal ? principal.type === "local" : remote.loopback) return;
  throw new MagicError(
    "tls_required",
    "Credentials are not accepted over plain HTTP beyond loopback: listen with --tls.",
  );
}

const remotes = new WeakMap<Socket, Remote>();

/** Who is at the other end of a request's connection: one object for all of its requests. */
export function remoteOf({ socket }: IncomingMessage): Remote {
  let remote = remotes.get(socket);
  if (!remote) {
    const { remoteAddress: address, encrypted } = socket as Socket & { encrypted?: boolean };
    remote = { address, loopback: isLoopback(address), encrypted: encrypted === true };
    remotes.set(socket, remote);
  }
  return remote;
}
