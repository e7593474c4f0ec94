// An answer as templates see it: `response` is the decoded body, `headers` has the Link header parsed under `link`.
import { fromJson } from "../jinja/json.ts";
import { HeaderDict } from "../jinja/python.ts";
import type { HttpResponse } from "./client.ts";
import { decoderOf } from "./decode.ts";

const json = decoderOf(undefined);

/** Manifests write names as the vendor's documentation does: `X-RateLimit-Remaining`. */
function headerVariables(headers: Readonly<Record<string, string>>): HeaderDict {
  const all = new HeaderDict(Object.entries(headers));
  if (headers["link"] !== undefined) all.set("Link", headers["link"]);
  return all.set("link", fromJson(parseLink(headers["link"] ?? "")));
}

/** RFC 8288, as Python's requests reads it: `{next: {url, rel}}`. */
function parseLink(header: string): Record<string, Record<string, string>> {
  const links: Record<string, Record<string, string>> = {};
  for (const part of header.split(/,\s*(?=<)/)) {
    const [target = "", ...parameters] = part.split(";");
    const link: Record<string, string> = { url: target.trim().replace(/^<|>$/g, "") };
    if (!link["url"]) continue;
    for (const parameter of parameters) {
      const [name = "", value = ""] = parameter.split(/=(.*)/s);
      link[name.trim()] = value.trim().replace(/^["']|["']$/g, "");
    }
    links[link["rel"] ?? link["url"] ?? ""] = link;
  }
  return links;
}

// Every filter of the error handler asks, and the paginator: the body is parsed once for all of them.
const bodies = new WeakMap<HttpResponse, { readonly json: unknown }>();

/** The body, decoded; undefined where it is no JSON. */
export function jsonOf(response: HttpResponse): unknown {
  const found = bodies.get(response) ?? { json: decoded(response) };
  bodies.set(response, found);
  return found.json;
}

function decoded(response: HttpResponse): unknown {
  try {
    return json(response)[0];
  } catch {
    return undefined;
  }
}

const known = new WeakMap<HttpResponse, Record<string, unknown>>();

export function responseVariables(response: HttpResponse): Record<string, unknown> {
  const found = known.get(response) ?? variablesOf(response);
  known.set(response, found);
  return found;
}

function variablesOf(response: HttpResponse): Record<string, unknown> {
  const body = jsonOf(response);
  const { origin, pathname } = new URL(response.url);
  const request_url = origin + pathname;
  const headers = headerVariables(response.headers);
  return { response: body === undefined ? {} : body, headers, status_code: response.status, request_url };
}
