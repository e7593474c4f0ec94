// What every way to authenticate offers to a request.
import type { Component } from "../manifest/component.ts";
import type { HttpResponse } from "./client.ts";
import type { RequestParts } from "./options.ts";

/** What a request is for. */
export interface Destination {
  readonly method: string;
  readonly url: URL;
}

export interface Authenticator {
  /** Adds the credentials to a request; the token that it used, where there is one. */
  apply(parts: RequestParts, to: Destination): Promise<string | undefined>;
  /** After a 401 for `used`: true when there is another token to try with. */
  refresh(used: string | undefined): Promise<boolean>;
  /** Takes what an answer says about the token's calls: true when it has none left and another one has. */
  learn?(used: string | undefined, to: Destination, response: HttpResponse): boolean;
}

/** Makes what sends the login request of a session: of requesters, passed in because they need authenticators themselves. */
export type Login = (component: Component) => () => Promise<HttpResponse | undefined>;

export function bearer(parts: RequestParts, token: string): void {
  parts.headers["Authorization"] = `Bearer ${token}`;
}
