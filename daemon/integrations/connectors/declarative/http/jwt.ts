// JSON Web Tokens that the connector signs itself (RFC 7519).
import { importPKCS8, SignJWT } from "jose";
import { type Context, native, nested, text } from "../context.ts";
import {
  type Component,
  isRecord,
  manifestError,
  optionalChild,
  optionalText,
  requiredText,
} from "../manifest/component.ts";
import type { Authenticator } from "./authenticator.ts";
import { inject } from "./options.ts";
import { sharedToken } from "./token.ts";

export function jwt(context: Context, component: Component): Authenticator {
  const tokens = sharedToken(context, component, undefined, async () => ({
    expiresAt: context.clock.now() + secondsOf(context, component) * 1000,
    value: await signedToken(context, component),
  }));
  const option = optionalChild(component, "request_option");
  const prefix = text(context, component, component["header_prefix"] ?? "");
  return {
    async apply(parts) {
      const token = await tokens.get();
      const value = prefix ? `${prefix} ${token}` : token;
      if (option) inject(context, option, value, parts);
      else parts.headers["Authorization"] = value;
      return token;
    },
    refresh: (used) => tokens.renew(used),
  };
}

const secondsOf = (context: Context, component: Component): number =>
  Number(native(context, component, component["token_duration"] ?? 1200));

/** A token that is good from now on. */
export async function signedToken(context: Context, component: Component): Promise<string> {
  const algorithm = requiredText(component, "algorithm");
  const now = Math.floor(context.clock.now() / 1000);
  const part = (field: string): Record<string, unknown> => {
    const evaluated = nested(context, component, component[field] ?? {});
    return isRecord(evaluated) ? evaluated : {};
  };
  const header = { typ: "JWT", ...part("additional_jwt_headers"), ...part("jwt_headers"), alg: algorithm };
  const payload = {
    ...part("additional_jwt_payload"),
    ...part("jwt_payload"),
    iat: now,
    exp: now + secondsOf(context, component),
    nbf: now,
  };
  // In the reference's order: the same token for the same second.
  const sorted = Object.fromEntries(Object.entries(header).sort(([a], [b]) => (a < b ? -1 : 1)));
  return new SignJWT(payload)
    .setProtectedHeader(sorted as { alg: string })
    .sign(await signingKey(context, component, algorithm));
}

async function signingKey(context: Context, component: Component, algorithm: string): Promise<Uint8Array | CryptoKey> {
  const raw = text(context, component, component["secret_key"]);
  const secret = component["base64_encode_secret_key"] === true ? Buffer.from(raw).toString("base64") : raw;
  if (algorithm.startsWith("HS")) return new TextEncoder().encode(secret);
  try {
    const { createPrivateKey } = await import("node:crypto");
    const passphrase = optionalText(component, "passphrase");
    const key = createPrivateKey({
      key: secret.replaceAll("\\n", "\n"),
      ...(passphrase ? { passphrase: text(context, component, passphrase) } : {}),
    });
    return await importPKCS8(key.export({ type: "pkcs8", format: "pem" }).toString(), algorithm);
  } catch {
    throw manifestError(`JwtAuthenticator.secret_key is no private key for ${algorithm}`);
  }
}
