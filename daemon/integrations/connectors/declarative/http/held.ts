// The access token of a connection that was authorized in a browser. The daemon keeps it and gives one that is fresh; it also gets another
// one, as only it knows where: a refresh token that is good once must not be used up here. Templates find it in the configuration.
import type { Context } from "../context.ts";
import type { Token } from "./token.ts";

/** Undefined: the connection was not authorized in a browser. */
export function heldToken({ oauth: authorized, access_token, expires_at }: Context["config"]): Token | undefined {
  if (authorized !== true || typeof access_token !== "string") return undefined;
  return { value: access_token, expiresAt: typeof expires_at === "number" ? expires_at : Number.POSITIVE_INFINITY };
}

/** As `heldToken`, one that has not ended where there is such a one. */
export async function lastingToken(context: Context): Promise<string | undefined> {
  const held = heldToken(context.config);
  if (held && held.expiresAt - 5000 <= context.clock.now()) await renewHeld(context, held.value);
  return heldToken(context.config)?.value;
}

/** True when there is another one than `used`: it stands in the configuration from now on. */
export async function renewHeld(context: Context, used: string | undefined): Promise<boolean> {
  const held = heldToken(context.config);
  if (!held) return false;
  if (held.value !== used) return true;
  const { kept, release } = await context.tokens.hold("authorized", used);
  release();
  if (!kept || kept.access_token === used) return false;
  Object.assign(context.config, kept);
  return true;
}
