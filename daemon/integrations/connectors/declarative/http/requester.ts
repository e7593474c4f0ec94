// What a manifest's requester sends: each request with its authenticator and its error handler.
import { type Context, emptySlice } from "../context.ts";
import { type Component, optionalChild, refuseCustom, typeOf } from "../manifest/component.ts";
import type { Answers } from "./answers.ts";
import { attempt, type Outcome } from "./attempt.ts";
import { authenticatorOf } from "./auth.ts";
import type { Login } from "./authenticator.ts";
import { errorHandlerOf } from "./errors.ts";
import { type Built, buildRequest, type Exchange, methodOf } from "./request.ts";

export interface Requester {
  send(exchange: Exchange): Promise<Outcome>;
}

/** `answers`: a GET that is among them is not sent again, unless the manifest says so. */
export function requesterOf(context: Context, component: Component, answers?: Answers): Requester {
  if (typeOf(component) !== "HttpRequester") return refuseCustom(component);
  const login: Login = (request) => {
    const requester = requesterOf(context, request);
    return async () => {
      const outcome = await requester.send({ slice: emptySlice });
      return "response" in outcome ? outcome.response : undefined;
    };
  };
  const base = { url_base: component["url_base"] ?? component["url"] };
  const authentication = optionalChild(component, "authenticator");
  const authenticator = authenticatorOf(
    context,
    authentication && typeOf(authentication) === "LegacySessionTokenAuthenticator"
      ? { ...base, ...authentication }
      : authentication,
    login,
  );
  const errors = errorHandlerOf(context, optionalChild(component, "error_handler"));
  const repeats = component["use_cache"] === false || methodOf(component) !== "GET";
  return {
    send: (exchange) => {
      const build = (): Promise<Built> => buildRequest(context, component, authenticator, exchange);
      return attempt(context, build, authenticator, errors, repeats ? undefined : answers);
    },
  };
}
