// Refresh tokens that a vendor replaces when they are used (RFC 6749, section 6; RFC 9700, section 4.14): one refresh at a time for a
// connection, in however many processes, and the new token is durable before the access token that came with it is used.
import { createHash } from "node:crypto";
import { isMagicError } from "#contract/errors.ts";
import type { HeldTokens, KeptToken } from "#contract/tokens.ts";
import type { Context } from "../context.ts";
import type { Token } from "./token.ts";

const SAVES = 3;

export interface Grant {
  /** The refresh token of the configuration. */
  readonly configured: string;
  /** What else makes it this grant and no other: where it is used, by which client. */
  readonly of: readonly string[];
}

/** `last`: the access token that ended or was refused. */
export async function refreshInTurn(
  context: Context,
  { configured, of }: Grant,
  last: Token | undefined,
  request: (refreshToken: string) => Promise<Token & { readonly refreshToken: string }>,
): Promise<Token> {
  const digest = createHash("sha256").update(JSON.stringify(["refresh", configured, ...of]));
  const turn = await context.tokens.hold(digest.digest("hex"), last?.value);
  try {
    // It may have been a long wait: a run that was ended meanwhile must begin nothing.
    context.signal.throwIfAborted();
    const { kept } = turn;
    // Another process has refreshed it meanwhile, or an earlier run.
    if (kept && kept.access_token !== last?.value && (kept.expires_at ?? Infinity) - 5000 > context.clock.now())
      return tokenOf(kept);
    const current = kept?.refresh_token ?? configured;
    const { value, expiresAt, refreshToken } = await request(current).catch((error: unknown) => {
      // The kept one has ended: the one of the configuration may be good yet, or again.
      if (current === configured || !isMagicError(error) || error.code !== "credentials_rejected") throw error;
      return request(configured);
    });
    const expires_at = Number.isFinite(expiresAt) ? expiresAt : null;
    const next: KeptToken = { refresh_token: refreshToken, access_token: value, expires_at };
    if (kept || refreshToken !== configured) await save(turn, next);
    return tokenOf(next);
  } finally {
    turn.release();
  }
}

// The vendor knows only the new token now: a moment's trouble at home must not lose it.
async function save(turn: HeldTokens, token: KeptToken): Promise<void> {
  for (let left = SAVES; ; left--) {
    try {
      return await turn.save(token);
    } catch (error) {
      if (left <= 1) throw error;
      await new Promise((resolve) => setTimeout(resolve, 300));
    }
  }
}

const tokenOf = ({ access_token, expires_at }: KeptToken): Token => ({
  value: access_token,
  expiresAt: expires_at ?? Number.POSITIVE_INFINITY,
});
