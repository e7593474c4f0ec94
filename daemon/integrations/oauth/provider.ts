// What is needed to authorize with a provider: from its definition in the catalogue, else from the connection's own settings.
import { MagicError } from "#contract/errors.ts";
import { sameCompany } from "../same-company.ts";

export interface OAuthProvider {
  readonly authorizeUrl: string;
  readonly tokenUrl: string;
  readonly revokeUrl: string | null;
  /** What `iss` of its answers must be (RFC 9207); null: anything of the authorize URL's site. */
  readonly issuer: string | null;
  readonly scopes: readonly string[];
  /** A space but where the provider asks for another. */
  readonly scopeSeparator: string;
  readonly clientId: string;
  readonly clientSecret: string | null;
  /** Where the client's secret goes: RFC 6749 section 2.3.1 knows both. */
  readonly tokenAuth: "basic" | "post";
  /** More parameters of the authorization URL, such as `access_type=offline`. */
  readonly authorizeParameters: Readonly<Record<string, string>>;
  readonly learned: Readonly<Record<string, string>>;
}

/** `metadata.magic.oauth` of a manifest. `{name}` in a URL is the config's member of that name, `{name|text}` the text where there is none. */
export interface OAuthDefinition {
  readonly authorize_url?: string;
  readonly token_url?: string;
  readonly revoke_url?: string;
  readonly scopes?: readonly string[];
  readonly scope_separator?: string;
  readonly token_auth?: "basic" | "post";
  readonly authorize_parameters?: Readonly<Record<string, string>>;
  /** Settings that the vendor tells: `token.NAME` is a member of its token endpoint's answer, `callback.NAME` a parameter of its redirect. */
  readonly learned?: Readonly<Record<string, string>>;
}

type Settings = Readonly<Record<string, unknown>>;

/** @throws MagicError `validation_failed` that names every setting that is missing. */
export function oauthProvider(definition: OAuthDefinition, config: Settings, credentials: Settings): OAuthProvider {
  const { setting, url } = readers(definition, config, credentials);
  const found = { authorize_url: url("authorize_url"), token_url: url("token_url"), client_id: setting("client_id") };
  const problems = Object.entries(found).flatMap(([name, value]) => {
    const pointer = `/config/${name}`;
    if (value === null) return [{ pointer, code: "required", detail: "is needed for OAuth with this provider" }];
    if (!name.endsWith("_url") || isWeb(value)) return [];
    return [{ pointer, code: "format", detail: "must be an http or https URL without credentials" }];
  });
  if (problems.length > 0) throw new MagicError("validation_failed", undefined, { problems });
  return {
    authorizeUrl: found.authorize_url ?? "",
    tokenUrl: found.token_url ?? "",
    revokeUrl: url("revoke_url"),
    issuer: setting("issuer"),
    scopes: definition.scopes ?? [],
    scopeSeparator: definition.scope_separator ?? " ",
    clientId: found.client_id ?? "",
    clientSecret: setting("client_secret"),
    tokenAuth: definition.token_auth ?? "post",
    authorizeParameters: definition.authorize_parameters ?? {},
    learned: definition.learned ?? {},
  };
}

/** What the vendor has told of the account. */
export function learnedSettings(
  { learned }: OAuthProvider,
  { callback, token }: { readonly callback: Settings; readonly token: Settings },
): Record<string, string> {
  const found: Record<string, string> = {};
  for (const [name, place] of Object.entries(learned)) {
    const [from, member = ""] = place.split(".");
    const value = (from === "callback" ? callback : token)[member];
    if (typeof value !== "string" || value.length > 2048) continue;
    // A redirect comes by the browser, and its word becomes a part of addresses.
    if (from === "callback" && !/^\w[\w-]*$/.test(value)) continue;
    found[name] = value;
  }
  return found;
}

/** Where tokens and the client's secret go; null: nowhere. */
export function tokenUrls(
  definition: OAuthDefinition,
  { config, credentials }: { readonly config: Settings; readonly credentials: Settings },
): readonly (string | null)[] {
  const { url } = readers(definition, config, credentials);
  return [url("token_url"), url("revoke_url")];
}

function readers(definition: OAuthDefinition, config: Settings, credentials: Settings) {
  const setting = (name: string): string | null => {
    const value = credentials[name] ?? config[name];
    return typeof value === "string" && value !== "" ? value : null;
  };
  const url = (name: "authorize_url" | "token_url" | "revoke_url"): string | null =>
    setting(name) ??
    definition[name]?.replace(/\{(\w+)(?:\|([^}]*))?\}/g, (_, key: string, otherwise = "") =>
      encodeURIComponent(setting(key) ?? otherwise),
    ) ??
    null;
  return { setting, url };
}

/** False for an answer that names another server than the one that was asked: a mix-up attack (RFC 9207, section 2.4). */
export async function mayHaveAnswered(
  { authorizeUrl, issuer }: OAuthProvider,
  iss: string | undefined,
): Promise<boolean> {
  if (issuer !== null) return iss === issuer;
  if (iss === undefined) return true;
  const [from, asked] = [URL.parse(iss), new URL(authorizeUrl)];
  if (from === null || from.origin === asked.origin) return from !== null;
  return from.protocol === "https:" && sameCompany(from.hostname, asked.hostname);
}

export function isWeb(address: string): boolean {
  const url = URL.parse(address);
  return url !== null && /^https?:$/.test(url.protocol) && url.username === "" && url.password === "";
}
