// Client credentials -> an access token (RFC 6749, section 4.4). Errors are section 5.2's.
import { MagicError } from "#contract/errors.ts";
import type { Scope } from "#contract/identity.ts";
import type { Environment } from "#contract/protocol.ts";
import type { Storage } from "#daemon/storage/storage.ts";
import type { Clock } from "#shared/clock.ts";
import { digestOf, parseSecret, sameDigest, timeOf } from "./credentials/secret.ts";
import type { Uses } from "./credentials/uses.ts";
import type { AccessTokens } from "./jwt/access-token.ts";

export interface TokenRequest {
  readonly clientId: string | undefined;
  readonly clientSecret: string | undefined;
  readonly grantType: string | undefined;
  /** Space-separated; by default everything that the client has. */
  readonly scope: string | undefined;
}

export interface TokenAnswer {
  readonly access_token: string;
  readonly token_type: "Bearer";
  readonly expires_in: number;
  readonly scope: string;
}

export interface ClientLoginOptions {
  readonly units: Pick<Storage["units"]["credential"], "bySecret">;
  readonly accessTokens: AccessTokens;
  readonly uses: Uses;
  readonly clock: Clock;
  readonly ttlS: () => number;
}

/** The answer, and whose it is for the audit log. */
export type ClientLogin = (request: TokenRequest) => Promise<{ answer: TokenAnswer; clientId: string }>;

export function createClientLogin(options: ClientLoginOptions): ClientLogin {
  const { units, accessTokens, uses, clock } = options;
  return async ({ clientId, clientSecret, grantType, scope }) => {
    if (grantType !== undefined && grantType !== "client_credentials")
      throw oauthError("unsupported_grant_type", "The only grant type is client_credentials.");
    if (clientId === undefined || clientSecret === undefined)
      throw new MagicError("invalid_key", "client_id and client_secret are needed.");
    const parsed = parseSecret(clientSecret);
    const found = parsed?.kind === "client" ? await units.bySecret({ secretId: parsed.secretId }) : undefined;
    // One answer for an unknown client, a wrong, an ended and a revoked secret: nothing is to be learned here.
    const valid =
      found &&
      sameDigest(found.secret.digest, digestOf(clientSecret)) &&
      sameDigest(found.credential.id, clientId) &&
      found.credential.revoked_at === null &&
      [found.credential.expires_at, found.secret.expires_at].every((end) => timeOf(end) > clock.now());
    if (!valid) throw new MagicError("invalid_key", "The client or its secret is not known.");
    uses.note(found.secret.id);
    const has = JSON.parse(found.credential.scopes) as Scope[];
    const environment = found.credential.environment as Environment;
    const asked = scope?.split(" ").filter((one) => one !== "") ?? [];
    const granted = asked.length === 0 ? has : has.filter((one) => asked.includes(one));
    const missing = asked.find((one) => !has.includes(one as Scope));
    if (missing !== undefined)
      throw oauthError("invalid_scope", `The client does not have the scope ${JSON.stringify(missing.slice(0, 100))}.`);
    // No token outlives its client.
    const left = (timeOf(found.credential.expires_at) - clock.now()) / 1_000;
    const expiresIn = Math.min(options.ttlS(), Math.ceil(left));
    return {
      clientId,
      answer: {
        access_token: await accessTokens.issue(clientId, environment, granted, expiresIn),
        token_type: "Bearer",
        expires_in: expiresIn,
        scope: granted.join(" "),
      },
    };
  };
}

function oauthError(error: string, detail: string): MagicError {
  return new MagicError("invalid_request", detail, { extra: { error } });
}
