// The token and revocation endpoints: RFC 6749 sections 4.1.3 and 6, RFC 7636, RFC 7009. Everything goes through the egress guard.
import { setTimeout } from "node:timers/promises";
import { MagicError } from "#contract/errors.ts";
import { isObject } from "#contract/json-object.ts";
import type { Egress } from "#daemon/egress/egress.ts";
import type { EgressResponse } from "#daemon/egress/request.ts";
import { formsOf, redactor } from "#shared/redact.ts";
import { isPassing, retryAfterSeconds } from "../retry-after.ts";
import type { OAuthProvider } from "./provider.ts";

export interface Tokens {
  readonly access_token: string;
  readonly refresh_token: string | null;
  /** Milliseconds since the epoch; null: unknown. */
  readonly expires_at: number | null;
  readonly scope: string | null;
  /** The whole answer, which tells more with some vendors. */
  readonly answer: Readonly<Record<string, unknown>>;
}

/** The provider says that the grant is no longer good: it must be authorized anew. */
export class GrantRefused extends Error {}

/**
 * `tries`: at a token endpoint that is in a moment's trouble.
 *
 * @throws GrantRefused for `invalid_grant`, MagicError `upstream_error` and those of egress otherwise.
 */
export async function requestTokens(
  egress: Egress,
  provider: OAuthProvider,
  grant: Readonly<Record<string, string>>,
  now: number,
  tries = 1,
): Promise<Tokens> {
  const ask = () => post(egress, provider, provider.tokenUrl, grant);
  const { status, headers, body } = await patiently(ask, now, tries);
  const document = readObject(body, headers["content-type"]);
  // Its words go to logs, health and browsers; what it was sent it may quote.
  const secrets = [provider.clientSecret, grant["code"], grant["code_verifier"], grant["refresh_token"]];
  const clean = redactor(secrets.flatMap((secret) => formsOf(secret ?? "")));
  if (refusesGrant(document))
    throw new GrantRefused(clean(String(document?.["error_description"] ?? "invalid_grant")).slice(0, 300));
  const token = document?.["access_token"];
  if (status < 200 || status > 299 || typeof token !== "string" || token === "") {
    const reason =
      typeof document?.["error"] === "string" ? clean(document["error"]).slice(0, 200) : `answered ${status}`;
    throw new MagicError("upstream_error", `the provider's token endpoint refused: ${reason}`);
  }
  // Kept among the credentials, it would be taken for a reference to a secret of the project.
  if (JSON.stringify(document).includes("${"))
    throw new MagicError("upstream_error", "the provider's token endpoint answered with something that is no token");
  return {
    access_token: token,
    refresh_token: typeof document?.["refresh_token"] === "string" ? document["refresh_token"] : null,
    expires_at: endOf(document ?? {}, now),
    scope: typeof document?.["scope"] === "string" ? document["scope"] : null,
    answer: document ?? {},
  };
}

/** Others wait for the same token meanwhile. */
const PATIENCE_MS = 10_000;

async function patiently(ask: () => Promise<EgressResponse>, now: number, tries: number): Promise<EgressResponse> {
  const begun = performance.now();
  for (let made = 1; ; made++) {
    const answer = await ask();
    const askedMs = 1000 * (retryAfterSeconds(answer.headers["retry-after"], now) ?? 0);
    const pauseMs = Math.max(askedMs, 250 * 2 ** made);
    if (!isPassing(answer.status) || made >= tries || performance.now() - begun + pauseMs > PATIENCE_MS) return answer;
    await setTimeout(pauseMs);
  }
}

// Besides RFC 6749's: GitHub and Slack, with status 200; HubSpot, in a member of its own.
const refusals = new Set(["invalid_grant", "bad_refresh_token", "invalid_refresh_token"]);

function refusesGrant(document: Readonly<Record<string, unknown>> | undefined): boolean {
  return [document?.["error"], document?.["status"]].some((code) => refusals.has(String(code).toLowerCase()));
}

// Square tells the moment and not how long.
function endOf({ expires_in, expires_at }: Readonly<Record<string, unknown>>, now: number): number | null {
  const seconds = Number(expires_in);
  if (Number.isFinite(seconds) && seconds > 0) return now + seconds * 1000;
  const end = typeof expires_at === "string" ? Date.parse(expires_at) : Number.NaN;
  return end > now ? end : null;
}

export async function revokeToken(egress: Egress, provider: OAuthProvider, token: string): Promise<void> {
  if (provider.revokeUrl === null) return;
  await post(egress, provider, provider.revokeUrl, { token, token_type_hint: "refresh_token" });
}

function post(egress: Egress, provider: OAuthProvider, url: string, fields: Readonly<Record<string, string>>) {
  const { clientId, clientSecret, tokenAuth } = provider;
  const form = new URLSearchParams(fields);
  const headers: Record<string, string> = {
    "content-type": "application/x-www-form-urlencoded",
    accept: "application/json",
  };
  if (clientSecret !== null && tokenAuth === "basic") {
    const pair = [clientId, clientSecret].map(encodeURIComponent).join(":");
    headers["authorization"] = `Basic ${Buffer.from(pair).toString("base64")}`;
  } else {
    form.set("client_id", clientId);
    if (clientSecret !== null) form.set("client_secret", clientSecret);
  }
  return egress.request(url, {
    method: "POST",
    headers,
    body: form.toString(),
    timeoutMs: 20_000,
    maxBytes: 1024 * 1024,
  });
}

// A form where a server does so whatever it is asked for (GitHub Enterprise, older ones).
function readObject(body: Buffer, type: string | undefined): Record<string, unknown> | undefined {
  if (/^application\/x-www-form-urlencoded\b/i.test(type ?? ""))
    return Object.fromEntries(new URLSearchParams(body.toString("utf8")));
  try {
    const value: unknown = JSON.parse(body.toString("utf8"));
    return isObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

/** The members of a connection's credentials that hold them. A provider that does not rotate sends no new refresh token: the old one stays. */
export function grantedBy({ refresh_token, answer: _, ...tokens }: Tokens): Record<string, unknown> {
  return { oauth: true, ...tokens, ...(refresh_token ? { refresh_token } : {}) };
}
