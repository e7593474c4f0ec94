// Access tokens: JWTs by RFC 9068 (typ at+jwt, EdDSA). Verification takes exactly what we sign and nothing else: no algorithm
// but one, no header member but three, no key but our own by its id, one spelling of each part.
import { randomUUID } from "node:crypto";
import { decodeJwt, errors as joseErrors, jwtVerify, SignJWT } from "jose";
import { MagicError } from "#contract/errors.ts";
import type { Scope } from "#contract/identity.ts";
import type { Environment } from "#contract/protocol.ts";
import type { Clock } from "#shared/clock.ts";
import type { SigningKeys } from "./signing-keys.ts";

/** The audience of every access token: this API. Not an address, so that a token survives a change of port. */
export const AUDIENCE = "urn:magic:api";

export interface AccessClaims {
  readonly clientId: string;
  readonly scopes: readonly string[];
  /** Milliseconds since the epoch. */
  readonly expiresAt: number;
}

export interface AccessTokens {
  /** A token for a client of the environment; `ttlS` seconds from now. */
  issue(clientId: string, environment: Environment, scopes: readonly Scope[], ttlS: number): Promise<string>;
  /** The claims of a valid token. Throws `expired`, or `invalid_key` for whatever else is wrong with it. */
  verify(token: string): Promise<AccessClaims>;
}

export interface AccessTokenOptions {
  readonly keys: SigningKeys;
  readonly clock: Clock;
  /** The issuer (RFC 8414) that new tokens name. */
  readonly issuer: () => Promise<string>;
  /** True for this issuer and the account's others: those before, at other ports, and those of other daemons over its database. */
  readonly isIssuer: (issuer: string) => Promise<boolean>;
}

/** Tokens longer than this are not ours. */
const MAX_LENGTH = 8_192;

export function accessTokens({ keys, clock, issuer, isIssuer }: AccessTokenOptions): AccessTokens {
  return {
    async issue(clientId, environment, scopes, ttlS) {
      await keys.renew();
      const { kid, key } = keys.current();
      const now = Math.floor(clock.now() / 1_000);
      return new SignJWT({ client_id: clientId, scope: scopes.join(" "), environment })
        .setProtectedHeader({ alg: "EdDSA", typ: "at+jwt", kid })
        .setIssuer(await issuer())
        .setAudience(AUDIENCE)
        .setSubject(clientId)
        .setJti(randomUUID())
        .setIssuedAt(now)
        .setExpirationTime(now + ttlS)
        .sign(key);
    },
    async verify(token) {
      requireOneSpelling(token);
      try {
        const { payload } = await jwtVerify(
          token,
          async (header) => {
            const names = Object.keys(header).sort().join();
            if (names !== "alg,kid,typ" || header.typ !== "at+jwt") throw invalid("its header is not one of ours");
            const key = await keys.verifier(String(header.kid));
            if (!key) throw invalid("its key is not known");
            return key;
          },
          {
            algorithms: ["EdDSA"],
            typ: "at+jwt",
            audience: AUDIENCE,
            requiredClaims: ["iss", "sub", "exp", "iat", "jti", "client_id", "scope"],
            currentDate: new Date(clock.now()),
          },
        );
        const { iss, sub, exp, iat, client_id: clientId, scope } = payload;
        if (typeof iss !== "string" || !(await isIssuer(iss))) throw invalid("its issuer is another");
        if (typeof clientId !== "string" || sub !== clientId) throw invalid("its subject is not its client");
        if (typeof scope !== "string") throw invalid("its scope is no text");
        if (typeof exp !== "number" || typeof iat !== "number") throw invalid("its times are missing");
        if (iat * 1_000 > clock.now() + 60_000) throw invalid("it was issued in the future");
        return { clientId, scopes: scope.split(" ").filter(Boolean), expiresAt: exp * 1_000 };
      } catch (error) {
        if (error instanceof joseErrors.JWTExpired)
          throw new MagicError("expired", "The access token has expired.", { cause: error });
        if (error instanceof MagicError) throw error;
        throw invalid("it does not verify", error);
      }
    },
  };
}

/** What a token says of its environment, unproven: by which the refusal of one is entered in the audit log. */
export function claimsLive(token: string): boolean {
  try {
    return decodeJwt(token)["environment"] === "live";
  } catch {
    return false;
  }
}

// base64url has several spellings of the same bytes (unused bits, characters that decoders skip): only the canonical one is taken.
function requireOneSpelling(token: string): void {
  const parts = token.split(".");
  const canonical = (part: string) => Buffer.from(part, "base64url").toString("base64url") === part;
  if (token.length > MAX_LENGTH || parts.length !== 3 || !parts.every(canonical)) throw invalid("it is malformed");
}

function invalid(why: string, cause?: unknown): MagicError {
  return new MagicError("invalid_key", `The access token is not valid: ${why}.`, { cause });
}
