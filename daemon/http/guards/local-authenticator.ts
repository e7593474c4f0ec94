// Authentication by the credentials of the runtime file alone.
import { createHash, timingSafeEqual } from "node:crypto";
import type { IncomingHttpHeaders } from "node:http";
import { MagicError } from "#contract/errors.ts";
import { type Principal, type Scope, scopes } from "#contract/identity.ts";
import { type Environment, environments, headers as names } from "#contract/protocol.ts";
import type { LocalCredentials } from "#daemon/identity/local-credentials.ts";
import { type Authenticator, bearerOf } from "./authenticate.ts";

const administrative = /^(keys|clients|tokens|audit):/;
const every: ReadonlySet<Scope> = new Set(scopes);
const ordinary: ReadonlySet<Scope> = new Set(scopes.filter((scope) => !administrative.test(scope)));

export function localAuthenticator(credentials: LocalCredentials): Authenticator {
  const digests = Object.entries(credentials).map(([name, secret]) => ({ name, digest: digestOf(secret) }));
  return {
    authenticate(headers, remote) {
      const token = bearerOf(headers);
      if (token === undefined) throw new MagicError("invalid_key", "There is no bearer credential.");
      const given = digestOf(token);
      const match = digests.find(({ digest }) => timingSafeEqual(digest, given))?.name;
      if (match === "local_token" && remote.loopback) return local("local", headers);
      if (match === "admin_key") return local("admin", headers);
      if (match === "api_key")
        return { type: "key", id: "key_local", environment: "sandbox", scopes: ordinary, tier: "starter" };
      if (match === "gateway_token")
        return {
          type: "token",
          id: "gt_local",
          environment: "live",
          environments,
          scopes: new Set<Scope>(["gateway:use"]),
          tier: "enterprise",
        };
      throw new MagicError("invalid_key", "The credential is not known.");
    },
  };
}

function local(type: "local" | "admin", headers: IncomingHttpHeaders): Principal {
  return { type, id: null, environment: environmentOf(headers), scopes: every, tier: "enterprise" };
}

/** The environment that a credential for both chooses by its header; sandbox without one. */
export function environmentOf(headers: IncomingHttpHeaders): Environment {
  const asked = headers[names.environment] ?? "sandbox";
  const found = environments.find((environment) => environment === asked);
  if (!found) throw new MagicError("invalid_request", "Magic-Environment is sandbox or live.");
  return found;
}

function digestOf(secret: string): Buffer {
  return createHash("sha256").update(secret).digest();
}
