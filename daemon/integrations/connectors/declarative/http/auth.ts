// How a request proves who asks: the ways that need no token, the choice between ways, and the table of all.
import { MagicError } from "#contract/errors.ts";
import { type Context, text } from "../context.ts";
import { str } from "../jinja/repr.ts";
import {
  type Component,
  isRecord,
  list,
  optionalChild,
  refuseCustom,
  requiredText,
  typeOf,
} from "../manifest/component.ts";
import { fieldAt } from "../read/fields.ts";
import { type Authenticator, bearer, type Login } from "./authenticator.ts";
import { lastingToken, renewHeld } from "./held.ts";
import { jwt } from "./jwt.ts";
import { oauth } from "./oauth.ts";
import { inject, type RequestParts } from "./options.ts";
import { legacySession, sessionToken } from "./session.ts";
import { tokenPool } from "./token-pool.ts";

type Build = (context: Context, component: Component, login: Login) => Authenticator;

// What the configuration holds, as it is.
const fixed = (context: Context, apply: (parts: RequestParts) => void): Authenticator => ({
  apply: async (parts) => {
    const token = await lastingToken(context);
    apply(parts);
    return token;
  },
  refresh: (used) => renewHeld(context, used),
});

const builders: Readonly<Record<string, Build>> = {
  NoAuth: (context) => fixed(context, () => {}),
  BearerAuthenticator: (context, component) =>
    fixed(context, (parts) => bearer(parts, text(context, component, component["api_token"]))),
  BasicHttpAuthenticator: (context, component) =>
    fixed(context, (parts) => {
      const pair = `${text(context, component, component["username"])}:${text(context, component, component["password"])}`;
      parts.headers["Authorization"] = `Basic ${Buffer.from(pair, "utf8").toString("base64")}`;
    }),
  ApiKeyAuthenticator: apiKey,
  OAuthAuthenticator: oauth,
  SessionTokenAuthenticator: sessionToken,
  LegacySessionTokenAuthenticator: legacySession,
  JwtAuthenticator: jwt,
  RateLimitedMultipleTokenAuthenticator: tokenPool,
  SelectiveAuthenticator: selective,
};

export function authenticatorOf(context: Context, component: Component | undefined, login: Login): Authenticator {
  if (!component) return fixed(context, () => {});
  const type = typeOf(component) === "Bearer" ? "BearerAuthenticator" : typeOf(component);
  const build = Object.hasOwn(builders, type) ? builders[type] : undefined;
  return build ? build(context, component, login) : refuseCustom(component);
}

function apiKey(context: Context, component: Component): Authenticator {
  const option = optionalChild(component, "inject_into") ?? {
    type: "RequestOption",
    inject_into: "header",
    field_name: requiredText(component, "header"),
  };
  const withParameters = { $parameters: component["$parameters"] ?? {}, ...option };
  return fixed(context, (parts) =>
    inject(context, withParameters, text(context, component, component["api_token"] ?? ""), parts),
  );
}

// Chosen when the first request is made: a manifest can be looked at without a configuration. A way that cannot run is refused where it is
// chosen, or where there is no other.
function selective(context: Context, component: Component, login: Login): Authenticator {
  const path = list(component["authenticator_selection_path"]).map(String);
  const choices = isRecord(component["authenticators"]) ? component["authenticators"] : {};
  const all = new Map<string, Authenticator>();
  const refused = new Map<string, unknown>();
  for (const [name, each] of Object.entries(choices)) {
    if (!isRecord(each)) continue;
    try {
      all.set(name, authenticatorOf(context, { $parameters: component["$parameters"] ?? {}, ...each }, login));
    } catch (error) {
      refused.set(name, error);
    }
  }
  if (all.size === 0) for (const error of refused.values()) throw error;
  const chosen = (): Authenticator => {
    const name = fieldAt(context.config, path);
    // To the reference true is `True`; in YAML the choice may stand as a boolean.
    const forms = name === undefined ? [] : [str(name), String(name)];
    const written = forms.find((each) => all.has(each) || refused.has(each));
    const found = written === undefined ? undefined : all.get(written);
    if (found) return found;
    if (written !== undefined) throw refused.get(written);
    throw new MagicError(
      "validation_failed",
      `config.${path.join(".")} must be one of ${[...all.keys()].join(", ")}; it is ${name === undefined ? "missing" : `'${String(name)}'`}`,
    );
  };
  return {
    apply: (parts, to) => chosen().apply(parts, to),
    refresh: (used) => chosen().refresh(used),
    learn: (...told) => chosen().learn?.(...told) ?? false,
  };
}
