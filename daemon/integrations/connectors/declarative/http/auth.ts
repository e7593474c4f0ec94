// How a request proves who asks: keys, basic, OAuth, sessions, JWT. Tokens are shared by every partition and fetched once (single flight).
import { createHash } from "node:crypto";
import { importPKCS8, SignJWT } from "jose";
import { MagicError } from "#contract/errors.ts";
import { type Context, native, nested, text } from "../context.ts";
import { parseIso, strptime } from "../jinja/datetime.ts";
import {
  type Component,
  child,
  isRecord,
  list,
  manifestError,
  optionalChild,
  optionalText,
  refuseCustom,
  requiredText,
  typeOf,
} from "../manifest/component.ts";
import { dpathOne } from "../read/dpath.ts";
import { durationMs } from "./budget.ts";
import type { HttpResponse } from "./client.ts";
import { decoderOf } from "./decode.ts";
import { inject, type RequestParts } from "./options.ts";

export interface Authenticator {
  /** Adds the credentials to a request; the token that it used, where there is one. */
  apply(parts: RequestParts): Promise<string | undefined>;
  /** After a 401 for `used`: true when there is another token to try with. */
  refresh(used: string | undefined): Promise<boolean>;
}

/** Sends the login request of a session: the requester, passed in because it needs authenticators itself. */
export type Login = (component: Component) => Promise<HttpResponse | undefined>;

type Build = (context: Context, component: Component, login: Login) => Authenticator;

const fixed = (apply: (parts: RequestParts) => void): Authenticator => ({
  apply: async (parts) => {
    apply(parts);
    return undefined;
  },
  refresh: async () => false,
});

const builders: Readonly<Record<string, Build>> = {
  NoAuth: () => fixed(() => {}),
  BearerAuthenticator: (context, component) =>
    fixed((parts) => bearer(parts, text(context, component, component["api_token"]))),
  BasicHttpAuthenticator: (context, component) =>
    fixed((parts) => {
      const pair = `${text(context, component, component["username"])}:${text(context, component, component["password"])}`;
      parts.headers["Authorization"] = `Basic ${Buffer.from(pair, "utf8").toString("base64")}`;
    }),
  ApiKeyAuthenticator: apiKey,
  OAuthAuthenticator: oauth,
  SessionTokenAuthenticator: sessionToken,
  LegacySessionTokenAuthenticator: legacySession,
  JwtAuthenticator: jwt,
  SelectiveAuthenticator: selective,
};

export function authenticatorOf(context: Context, component: Component | undefined, login: Login): Authenticator {
  if (!component) return fixed(() => {});
  const type = typeOf(component) === "Bearer" ? "BearerAuthenticator" : typeOf(component);
  const build = Object.hasOwn(builders, type) ? builders[type] : undefined;
  return build ? build(context, component, login) : refuseCustom(component);
}

function bearer(parts: RequestParts, token: string): void {
  parts.headers["Authorization"] = `Bearer ${token}`;
}

function apiKey(context: Context, component: Component): Authenticator {
  const option = optionalChild(component, "inject_into") ?? {
    type: "RequestOption",
    inject_into: "header",
    field_name: requiredText(component, "header"),
  };
  const withParameters = { $parameters: component["$parameters"] ?? {}, ...option };
  return fixed((parts) =>
    inject(context, withParameters, text(context, component, component["api_token"] ?? ""), parts),
  );
}

// Chosen when the first request is made: a manifest can be looked at without a configuration.
function selective(context: Context, component: Component, login: Login): Authenticator {
  const path = list(component["authenticator_selection_path"]).map(String);
  const choices = isRecord(component["authenticators"]) ? component["authenticators"] : {};
  const all = new Map(
    Object.entries(choices)
      .filter(([, each]) => isRecord(each))
      .map(([name, each]) => [
        name,
        authenticatorOf(context, { $parameters: component["$parameters"] ?? {}, ...(each as Component) }, login),
      ]),
  );
  const chosen = (): Authenticator => {
    const name = path.reduce<unknown>(
      (value, key) => (isRecord(value) && Object.hasOwn(value, key) ? value[key] : undefined),
      context.config,
    );
    const found = all.get(String(name));
    if (!found)
      throw new MagicError(
        "validation_failed",
        `config.${path.join(".")} must be one of ${[...all.keys()].join(", ")}; it is ${name === undefined ? "missing" : `'${String(name)}'`}`,
      );
    return found;
  };
  return { apply: (parts) => chosen().apply(parts), refresh: (used) => chosen().refresh(used) };
}

interface Token {
  readonly value: string;
  /** On the wall clock, milliseconds; Infinity: until it is refused. */
  readonly expiresAt: number;
}

/** A token that every user of the same credentials shares: fetched once however many ask, again when it is about to end. */
function sharedToken(
  context: Context,
  component: Component,
  initial: Token | undefined,
  fetchToken: () => Promise<Token>,
): { get(): Promise<string>; renew(used: string | undefined): Promise<boolean> } {
  const key = `token ${createHash("sha256").update(JSON.stringify(component)).digest("hex")}`;
  interface State {
    token: Token | undefined;
    flight: Promise<Token> | undefined;
  }
  const known = context.shared.get(key) as State | undefined;
  const state: State = known ?? { token: initial, flight: undefined };
  context.shared.set(key, state);
  const fresh = (): Promise<Token> => {
    state.flight ??= fetchToken()
      .then((token) => {
        state.token = token;
        return token;
      })
      .finally(() => {
        state.flight = undefined;
      });
    return state.flight;
  };
  return {
    async get() {
      const { token } = state;
      return token && token.expiresAt - 5000 > context.clock.now() ? token.value : (await fresh()).value;
    },
    // When another request has renewed it meanwhile, there is nothing to renew.
    async renew(used) {
      if (state.token === undefined || state.token.value === used) await fresh();
      return true;
    },
  };
}

function oauth(context: Context, component: Component): Authenticator {
  const value = (field: string): string => text(context, component, component[field] ?? "");
  const given = value("access_token_value");
  const endpoint = value("token_refresh_endpoint");
  const expiry = component["token_expiry_date"] ? value("token_expiry_date") : "";
  const updater = optionalChild(component, "refresh_token_updater");
  const initial = given
    ? {
        value: given,
        expiresAt: expiry
          ? expiryOf(expiry, optionalText(component, "token_expiry_date_format"))
          : endpoint
            ? context.clock.now() + 60_000
            : Number.POSITIVE_INFINITY,
      }
    : undefined;
  let refreshToken = updater
    ? (stringAt(context.config, list(updater["refresh_token_config_path"]).map(String)) ?? value("refresh_token"))
    : value("refresh_token");
  const tokens = sharedToken(context, component, initial, async () => {
    if (!endpoint)
      throw new MagicError(
        "credentials_rejected",
        "the access token was refused and there is no token_refresh_endpoint to get another",
      );
    const answer = await tokenAnswer(context, component, endpoint, refreshToken);
    const name = value("access_token_name") || "access_token";
    const token = findDeep(answer, name);
    if (typeof token !== "string")
      throw new MagicError("credentials_rejected", `the token endpoint answered without '${name}'`);
    const rotated = findDeep(answer, optionalText(updater ?? {}, "refresh_token_name") ?? "refresh_token");
    if (typeof rotated === "string") refreshToken = rotated;
    return {
      value: token,
      expiresAt: lifetime(context, component, findDeep(answer, value("expires_in_name") || "expires_in")),
    };
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

async function tokenAnswer(
  context: Context,
  component: Component,
  endpoint: string,
  refreshToken: string,
): Promise<unknown> {
  const value = (field: string): string => text(context, component, component[field] ?? "");
  const grant = value("grant_type") || "refresh_token";
  const body: Record<string, unknown> = { [value("grant_type_name") || "grant_type"]: grant };
  const clientId = value("client_id");
  const clientSecret = value("client_secret");
  if (clientId) body[value("client_id_name") || "client_id"] = clientId;
  if (clientSecret) body[value("client_secret_name") || "client_secret"] = clientSecret;
  if (refreshToken) body[value("refresh_token_name") || "refresh_token"] = refreshToken;
  const scopes = list(component["scopes"]).map((scope) => text(context, component, scope));
  if (scopes.length) body["scopes"] = scopes.join(" ");
  const more = nested(context, component, component["refresh_request_body"] ?? {});
  for (const [key, each] of Object.entries(isRecord(more) ? more : {})) if (!Object.hasOwn(body, key)) body[key] = each;
  const headers = nested(context, component, component["refresh_request_headers"] ?? {});
  const sent = Object.fromEntries(
    Object.entries(isRecord(headers) ? headers : {}).map(([name, each]) => [name.toLowerCase(), String(each)]),
  );
  // Credentials that go in the Authorization header must not stand in the body too.
  if (sent["authorization"]) for (const name of ["client_id", "client_secret"]) delete body[name];
  const json = sent["content-type"]?.includes("json") ?? false;
  const asQuery = component["send_refresh_request_as_query_params"] === true;
  const form = new URLSearchParams(Object.entries(body).map(([key, each]) => [key, String(each)])).toString();
  const response = await context.http.send(
    {
      method: "POST",
      url: asQuery ? `${endpoint}${endpoint.includes("?") ? "&" : "?"}${form}` : endpoint,
      headers: {
        accept: "application/json",
        "content-type": json ? "application/json" : "application/x-www-form-urlencoded",
        ...sent,
      },
      ...(asQuery ? {} : { body: json ? JSON.stringify(body) : form }),
    },
    context.signal,
  );
  // RFC 6749, section 5.2: the error code says what is wrong; nothing else of the answer is shown.
  const answer = decoderOf(undefined)(response)[0];
  if (response.status >= 400) {
    const code = isRecord(answer) && typeof answer["error"] === "string" ? answer["error"] : "";
    throw new MagicError(
      response.status >= 500 ? "upstream_error" : "credentials_rejected",
      `the token endpoint answered ${response.status}${code ? ` ${code}` : ""}`,
    );
  }
  return answer;
}

function lifetime(context: Context, component: Component, value: unknown): number {
  const format = optionalText(component, "token_expiry_date_format");
  if (format && typeof value === "string") return expiryOf(value, format);
  const seconds = Number(value);
  if (value === undefined || value === null || Number.isNaN(seconds)) return context.clock.now() + 3_600_000;
  return context.clock.now() + seconds * 1000;
}

function expiryOf(date: string, format: string | undefined): number {
  const parsed = format ? strptime(date, format) : parseIso(date);
  return parsed ? Number(parsed.us / 1000n) : 0;
}

function stringAt(value: unknown, path: readonly string[]): string | undefined {
  const found = path.reduce<unknown>(
    (at, key) => (isRecord(at) && Object.hasOwn(at, key) ? at[key] : undefined),
    value,
  );
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

function sessionToken(context: Context, component: Component, login: Login): Authenticator {
  const path = list(component["session_token_path"]).map(String);
  const duration = optionalText(component, "expiration_duration");
  const decode = decoderOf(optionalChild(component, "decoder"));
  const tokens = sharedToken(context, component, undefined, async () => {
    const response = await login(child(component, "login_requester"));
    if (!response) throw new MagicError("credentials_rejected", "the login request gave no session");
    const token = dpathOne(decode(response)[0], path);
    if (typeof token !== "string" && typeof token !== "number")
      throw new MagicError("credentials_rejected", `the login answer has no token at ${path.join(".")}`);
    return {
      value: String(token),
      expiresAt: duration ? context.clock.now() + durationMs(duration) : Number.POSITIVE_INFINITY,
    };
  });
  const how = child(component, "request_authentication");
  return {
    async apply(parts) {
      const token = await tokens.get();
      if (typeOf(how) === "ApiKey") {
        const template = optionalText(how, "api_token");
        inject(
          context,
          child(how, "inject_into"),
          template ? text(context, how, template, { session_token: token }) : token,
          parts,
        );
      } else bearer(parts, token);
      return token;
    },
    refresh: (used) => tokens.renew(used),
  };
}

function legacySession(context: Context, component: Component): Authenticator {
  const value = (field: string): string => text(context, component, component[field] ?? "");
  const given = value("session_token");
  const tokens = sharedToken(
    context,
    component,
    given ? { value: given, expiresAt: Number.POSITIVE_INFINITY } : undefined,
    async () => {
      const response = await context.http.send(
        {
          method: "POST",
          url: value("login_url"),
          headers: { "content-type": "application/json" },
          body: JSON.stringify({ username: value("username"), password: value("password") }),
        },
        context.signal,
      );
      const answer = decoderOf(undefined)(response)[0];
      const token = isRecord(answer) ? answer[value("session_token_response_key")] : undefined;
      if (response.status >= 400 || typeof token !== "string")
        throw new MagicError("credentials_rejected", `the login answered ${response.status}`);
      return { value: token, expiresAt: Number.POSITIVE_INFINITY };
    },
  );
  return {
    apply: async (parts) => {
      const token = await tokens.get();
      parts.headers[value("header")] = token;
      return token;
    },
    refresh: (used) => tokens.renew(used),
  };
}

function jwt(context: Context, component: Component): Authenticator {
  const algorithm = requiredText(component, "algorithm");
  const seconds = Number(native(context, component, component["token_duration"] ?? 1200));
  const tokens = sharedToken(context, component, undefined, async () => {
    const now = Math.floor(context.clock.now() / 1000);
    const part = (field: string): Record<string, unknown> => {
      const evaluated = nested(context, component, component[field] ?? {});
      return isRecord(evaluated) ? evaluated : {};
    };
    const header = { ...part("additional_jwt_headers"), ...part("jwt_headers"), alg: algorithm };
    const payload = {
      ...part("additional_jwt_payload"),
      ...part("jwt_payload"),
      iat: now,
      exp: now + seconds,
      nbf: now,
    };
    const token = await new SignJWT(payload)
      .setProtectedHeader(header as { alg: string })
      .sign(await signingKey(context, component, algorithm));
    return { value: token, expiresAt: (now + seconds) * 1000 };
  });
  const option = optionalChild(component, "request_option");
  const prefix =
    component["header_prefix"] === undefined ? "Bearer" : text(context, component, component["header_prefix"]);
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
