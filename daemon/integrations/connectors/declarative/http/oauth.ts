// OAuth 2.0 (RFC 6749): client credentials and refresh tokens, as vendors vary them.
import { MagicError } from "#contract/errors.ts";
import { isPassing, retryAfterSeconds } from "../../../retry-after.ts";
import { type Context, nested, text } from "../context.ts";
import { parseIso, strptime } from "../jinja/date-text.ts";
import {
  type Component,
  child,
  isRecord,
  list,
  optionalChild,
  optionalText,
  refuseCustom,
  typeOf,
} from "../manifest/component.ts";
import { fieldAt } from "../read/fields.ts";
import { type Authenticator, bearer } from "./authenticator.ts";
import type { HttpRequest, HttpResponse } from "./client.ts";
import { decoderOf } from "./decode.ts";
import { heldToken } from "./held.ts";
import { signedToken } from "./jwt.ts";
import { formBody } from "./options.ts";
import { responseVariables } from "./response.ts";
import { refreshInTurn } from "./rotation.ts";
import { sharedToken, type Token } from "./token.ts";

const TRIES = 4;
const MAX_WAIT_MS = 15_000;

export function oauth(context: Context, component: Component): Authenticator {
  const value = (field: string): string => fieldText(context, component, field);
  const given = value("access_token_value");
  const endpoint = value("token_refresh_endpoint");
  const expiry = value("token_expiry_date");
  const updater = optionalChild(component, "refresh_token_updater");
  if (asserts(component) && typeOf(child(component, "profile_assertion")) !== "JwtAuthenticator")
    refuseCustom(child(component, "profile_assertion"));
  const initial: Token | undefined =
    heldToken(context.config) ??
    configuredToken(context, updater) ??
    (given && (expiry || !endpoint)
      ? {
          value: given,
          expiresAt: expiry
            ? expiryOf(expiry, optionalText(component, "token_expiry_date_format"))
            : Number.POSITIVE_INFINITY,
        }
      : undefined);
  const refreshToken =
    (updater && stringAt(context.config, configPath(updater, "refresh_token"))) ?? value("refresh_token");
  const request = async (current: string): Promise<Token & { readonly refreshToken: string }> => {
    if (!endpoint)
      throw new MagicError(
        "credentials_rejected",
        "the access token was refused and there is no token_refresh_endpoint to get another",
      );
    const answer = await tokenAnswer(context, component, endpoint, current);
    const name = value("access_token_name") || "access_token";
    const token = findDeep(answer, name);
    if (typeof token !== "string")
      throw new MagicError("credentials_rejected", `the token endpoint answered without '${name}'`);
    const rotated = findDeep(answer, optionalText(updater ?? {}, "refresh_token_name") ?? "refresh_token");
    return {
      value: token,
      expiresAt: lifetime(context, component, findDeep(answer, value("expires_in_name") || "expires_in")),
      refreshToken: typeof rotated === "string" && rotated !== "" ? rotated : current,
    };
  };
  const tokens = sharedToken(context, component, initial, (last) => {
    if (!refreshToken || !endpoint || asserts(component)) return request("");
    const grant = { configured: refreshToken, of: [endpoint, ...clientOf(context, component)] };
    return refreshInTurn(context, grant, last, request);
  });
  return {
    async apply(parts) {
      const token = await tokens.get();
      bearer(parts, token);
      return token;
    },
    refresh: (used) => (endpoint ? tokens.renew(used) : Promise.resolve(false)),
  };
}

// Beside a refresh token that is good once stands the access token that came with it, as long as it lasts.
function configuredToken({ config }: Context, updater: Component | undefined): Token | undefined {
  if (!updater) return undefined;
  const [value, expiry] = ["access_token", "token_expiry_date"].map((field) =>
    stringAt(config, configPath(updater, field)),
  );
  return value && expiry ? { value, expiresAt: expiryOf(expiry, undefined) } : undefined;
}

// Where a configuration has the token that a vendor replaces, and what came with it.
const configPath = (updater: Component, field: string): string[] =>
  list(updater[`${field}_config_path`] ?? ["credentials", field]).map(String);

// What a configuration may lack is nothing: `{{ config.get('access_token') }}` writes None.
function fieldText(context: Context, component: Component, field: string): string {
  const written = text(context, component, component[field] ?? "");
  return written === "None" ? "" : written;
}

// Beside a refresh token that is good once may stand whose it is.
function clientOf(context: Context, component: Component): [id: string, secret: string] {
  const of = (field: string): string =>
    fieldText(context, component, field) ||
    (optionalChild(component, "refresh_token_updater") && stringAt(context.config, ["credentials", field])) ||
    "";
  return [of("client_id"), of("client_secret")];
}

// RFC 7523, section 2.1: a signed assertion in place of client and refresh token.
const JWT_BEARER = "urn:ietf:params:oauth:grant-type:jwt-bearer";
const asserts = (component: Component): boolean => String(component["use_profile_assertion"]).toLowerCase() === "true";

async function tokenAnswer(
  context: Context,
  component: Component,
  endpoint: string,
  refreshToken: string,
): Promise<unknown> {
  const response = await sendPatiently(
    context,
    await tokenRequest(context, component, endpoint, refreshToken),
    // A refresh that is cut off when a run is cancelled would lose the token that the vendor has made meanwhile.
    refreshToken ? new AbortController().signal : context.signal,
  );
  // RFC 6749, section 5.2: the error code says what is wrong; nothing else of the answer is shown.
  if (response.status < 400) return decoderOf(undefined)(response)[0];
  const { response: answer } = responseVariables(response);
  const code = isRecord(answer) && typeof answer["error"] === "string" ? answer["error"] : "";
  throw new MagicError(
    isPassing(response.status) ? "upstream_error" : "credentials_rejected",
    `the token endpoint answered ${response.status}${code ? ` ${code}` : ""}`,
  );
}

async function tokenRequest(
  context: Context,
  component: Component,
  endpoint: string,
  refreshToken: string,
): Promise<HttpRequest> {
  const value = (field: string): string => fieldText(context, component, field);
  const asserted = asserts(component);
  const grant = asserted ? JWT_BEARER : value("grant_type") || "refresh_token";
  const body: Record<string, unknown> = { [value("grant_type_name") || "grant_type"]: grant };
  if (asserted) body["assertion"] = await signedToken(context, child(component, "profile_assertion"));
  const [clientId, clientSecret] = asserted ? ["", ""] : clientOf(context, component);
  if (clientId) body[value("client_id_name") || "client_id"] = clientId;
  if (clientSecret) body[value("client_secret_name") || "client_secret"] = clientSecret;
  // A name that the updater gives it is its name in both directions, as in the reference.
  const updated = optionalText(optionalChild(component, "refresh_token_updater") ?? {}, "refresh_token_name");
  if (refreshToken) body[value("refresh_token_name") || (updated ?? "refresh_token")] = refreshToken;
  const scopes = list(component["scopes"]).map((scope) => text(context, component, scope));
  if (scopes.length) body["scopes"] = scopes;
  const more = nested(context, component, component["refresh_request_body"] ?? {});
  for (const [key, each] of Object.entries(isRecord(more) ? more : {})) if (!Object.hasOwn(body, key)) body[key] = each;
  const headers = nested(context, component, component["refresh_request_headers"] ?? {});
  const sent = Object.fromEntries(
    Object.entries(isRecord(headers) ? headers : {}).map(([name, each]) => [name.toLowerCase(), String(each)]),
  );
  // Credentials that go in the Authorization header must not stand in the body too.
  if (sent["authorization"])
    for (const name of ["client_id", "client_secret"]) delete body[value(`${name}_name`) || name];
  const json = sent["content-type"]?.includes("json") ?? false;
  const asQuery = component["send_refresh_request_as_query_params"] === true;
  const form = formBody(body);
  return {
    method: "POST",
    url: asQuery ? `${endpoint}${endpoint.includes("?") ? "&" : "?"}${form}` : endpoint,
    headers: {
      accept: "application/json",
      ...(asQuery ? {} : { "content-type": json ? "application/json" : "application/x-www-form-urlencoded" }),
      ...sent,
    },
    ...(asQuery ? {} : { body: json ? JSON.stringify(body) : form }),
  };
}

// A moment's trouble at the token endpoint must not end a run of hours. Others wait for the same token meanwhile: not for long.
async function sendPatiently(context: Context, request: HttpRequest, signal: AbortSignal): Promise<HttpResponse> {
  for (let tries = 1; ; tries++) {
    const response = await context.http.send(request, signal);
    if (!isPassing(response.status) || tries >= TRIES) return response;
    const asked = retryAfterSeconds(response.headers["retry-after"], context.clock.now()) ?? 0;
    // Who is told to stop does not wait: nothing is under way meanwhile.
    await context.sleep(Math.min(MAX_WAIT_MS, Math.max(asked * 1000, 500 * 2 ** tries)));
  }
}

function lifetime(context: Context, component: Component, value: unknown): number {
  const format = optionalText(component, "token_expiry_date_format");
  const seconds = Number(value);
  if (format && (typeof value === "string" || typeof value === "number")) {
    const moment = expiryOf(String(value), format);
    // No token ended in 1970: 3600 is a duration all the same.
    if (moment > 1e12 || Number.isNaN(seconds)) return moment;
  }
  if (value === undefined || value === null || Number.isNaN(seconds)) return context.clock.now() + 3_600_000;
  return context.clock.now() + seconds * 1000;
}

// Whatever the format says, digits alone are seconds since the epoch, as in the reference, or milliseconds. What cannot be read is over:
// a token that was issued, with a refresh token that is good once, must not be lost for that.
function expiryOf(date: string, format: string | undefined): number {
  const parsed = format ? strptime(date, format) : undefined;
  if (parsed) return Number(parsed.us / 1000n);
  if (/^\d+(\.\d+)?$/.test(date)) return Number(date) * (Number(date) > 1e11 ? 1 : 1000);
  try {
    return Number(parseIso(date).us / 1000n);
  } catch (error) {
    if (format === undefined) throw error;
    return 0;
  }
}

function stringAt(value: unknown, path: readonly string[]): string | undefined {
  const found = fieldAt(value, path);
  return typeof found === "string" ? found : undefined;
}

function findDeep(value: unknown, name: string, depth = 0): unknown {
  if (depth > 10 || typeof value !== "object" || value === null) return undefined;
  if (isRecord(value) && Object.hasOwn(value, name)) return value[name];
  for (const each of Object.values(value)) {
    const found = findDeep(each, name, depth + 1);
    if (found !== undefined) return found;
  }
  return undefined;
}
