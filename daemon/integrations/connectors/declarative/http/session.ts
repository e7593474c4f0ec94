// Sessions: a login request gives a token, which the other requests then carry.
import { MagicError } from "#contract/errors.ts";
import { type Context, text } from "../context.ts";
import { type Component, child, isRecord, list, optionalChild, optionalText, typeOf } from "../manifest/component.ts";
import { dpathOne } from "../read/dpath.ts";
import { type Authenticator, bearer, type Login } from "./authenticator.ts";
import { durationMs } from "./budget.ts";
import { decoderOf } from "./decode.ts";
import { inject } from "./options.ts";
import { sharedToken } from "./token.ts";

export function sessionToken(context: Context, component: Component, login: Login): Authenticator {
  const path = list(component["session_token_path"]).map(String);
  const duration = optionalText(component, "expiration_duration");
  const decode = decoderOf(optionalChild(component, "decoder"));
  const logIn = login(child(component, "login_requester"));
  const tokens = sharedToken(context, component, undefined, async () => {
    const response = await logIn();
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

export function legacySession(context: Context, component: Component): Authenticator {
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
          // Below the requester's base, as it is written there.
          url: /^https?:/i.test(value("login_url")) ? value("login_url") : value("url_base") + value("login_url"),
          headers: { "content-type": "application/json" },
          body: JSON.stringify({ username: value("username"), password: value("password") }),
        },
        context.signal,
      );
      if (response.status >= 400) throw new MagicError("credentials_rejected", `the login answered ${response.status}`);
      const answer = decoderOf(undefined)(response)[0];
      const key = value("session_token_response_key");
      const token = isRecord(answer) ? answer[key] : undefined;
      if (typeof token !== "string")
        throw new MagicError("credentials_rejected", `the login answer has no token at ${key}`);
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
