// How vendors know who asks. Every credential of a mock vendor begins with `secret-`: the examination looks for it in messages.
import type { Answer, Ask, Auth } from "./vendor.ts";

export const bearer = (token: string): Auth => header("authorization", `Bearer ${token}`);

export const header = (name: string, value: string): Auth => ({
  accepts: (ask) => ask.headers[name.toLowerCase()] === value,
});

export const query = (name: string, value: string): Auth => ({
  accepts: (ask) => ask.query.get(name) === value,
  params: [name],
});

export const basic = (user: string, password: string): Auth =>
  header("authorization", `Basic ${Buffer.from(`${user}:${password}`).toString("base64")}`);

/** All of them: a key and an account id, say. */
export const all = (...auths: readonly Auth[]): Auth => ({
  accepts: (ask) => auths.every((auth) => auth.accepts(ask)),
  params: auths.flatMap((auth) => auth.params ?? []),
});

export interface OAuth {
  /** The token endpoint. */
  readonly url: string;
  /** The form that it must get, every field of it: grant_type, client_id, scope... */
  readonly form: Readonly<Record<string, string | RegExp>>;
  /** Where client id and secret go in a Basic header instead. */
  readonly basic?: readonly [string, string];
  /** A JSON body instead of a form. */
  readonly json?: boolean;
  /** Members of the answer besides access_token, expires_in, token_type. */
  readonly more?: Readonly<Record<string, unknown>>;
  /** How API requests carry the token; a Bearer header unless told otherwise. */
  readonly use?: (token: string) => Auth;
}

/** OAuth 2.0 (RFC 6749): a token endpoint, and requests that carry what it gave. */
export function oauth({ url, form, basic: client, json = false, more = {}, use = bearer }: OAuth): Auth {
  const token = "secret-issued-token";
  const complaint = (ask: Ask): string | undefined => {
    const sent = json ? new Map(Object.entries((ask.body ?? {}) as object)) : ask.form;
    for (const [name, wanted] of Object.entries(form))
      if (!matches(String(sent.get(name) ?? ""), wanted)) return `${name} is missing or wrong`;
    const extra = [...sent.keys()].find((name) => !Object.hasOwn(form, name));
    if (extra !== undefined) return `${extra} is not known`;
    return client && !basic(...client).accepts(ask) ? "client authentication failed" : undefined;
  };
  return {
    accepts: (ask) => use(token).accepts(ask),
    endpoint(ask): Answer | undefined {
      if (ask.url.origin + ask.url.pathname !== url) return undefined;
      const wrong = ask.method === "POST" ? complaint(ask) : "use POST";
      if (wrong) return { status: 400, body: { error: "invalid_request", error_description: wrong } };
      return { body: { access_token: token, token_type: "Bearer", expires_in: 3600, ...more } };
    },
  };
}

export interface Login {
  readonly url: string;
  /** The JSON body that it must get. */
  readonly body: Readonly<Record<string, unknown>>;
  readonly answer: (token: string) => unknown;
  readonly use: (token: string) => Auth;
}

/** A session: a login gives a token, which other requests carry. */
export function login({ url, body, answer, use }: Login): Auth {
  const token = "secret-session";
  return {
    accepts: (ask) => use(token).accepts(ask),
    endpoint(ask) {
      if (ask.url.origin + ask.url.pathname !== url) return undefined;
      const good = ask.method === "POST" && JSON.stringify(ask.body) === JSON.stringify(body);
      return good ? { body: answer(token) } : { status: 401, body: { message: "wrong user name or password" } };
    },
  };
}

/** Text that is the one wanted, or that fits the pattern. */
export const matches = (text: string, wanted: string | RegExp): boolean =>
  typeof wanted === "string" ? text === wanted : wanted.test(text);
