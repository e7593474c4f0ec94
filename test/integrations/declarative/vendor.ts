// A stand-in for any vendor, made from the manifest: it finds the stream that a request is for, answers with records of the stream's own schema
// in two pages, and refuses a page that nobody was told of. What a page must say so that its templates go on, or end, is found by search.
import { createServer, type IncomingMessage, type Server } from "node:http";
import { text } from "node:stream/consumers";
import { XMLBuilder } from "fast-xml-parser";
import { createInterpolator } from "#daemon/integrations/connectors/declarative/jinja/interpolate.ts";
import { isRecord, list } from "#daemon/integrations/connectors/declarative/manifest/component.ts";
import { listen } from "#test/listen.ts";
import { type Json, recordOf } from "./example.ts";
import { pageOf } from "./pages.ts";

export interface Asked {
  readonly url: string;
  readonly body: string;
  /** The stream whose endpoint it is. */
  readonly stream: string;
  readonly page: number;
  readonly records: number;
  /** What was refused, and why. */
  readonly refused: string | null;
}

export interface Vendor {
  readonly origin: string;
  /** From now on answer for this stream and its parents, on this configuration. */
  serve(stream: Json, config: Json): void;
  readonly requests: Asked[];
  close(): Promise<void>;
}

/** Pages that have records. */
export const PAGES = 2;

interface Endpoint {
  readonly stream: Json;
  readonly method: string;
  readonly address: RegExp;
  /** Characters of the address that are no template: the more, the surer. */
  readonly literal: number;
  /** Fields that its children are made from. */
  readonly needed: readonly string[];
  /** Next-page values that answers gave, and the page that each stands for. */
  readonly tokens: Map<string, number>;
}

export async function startVendor(): Promise<Vendor> {
  const requests: Asked[] = [];
  let endpoints: Endpoint[] = [];
  let config: Json = {};
  const server: Server = createServer((request, response) => {
    void text(request).then((sent) => {
      const { status, headers, body } = answer(request, sent);
      response.writeHead(status, headers);
      response.end(body);
    });
  });

  function answer(
    request: IncomingMessage,
    sent: string,
  ): { status: number; headers: Record<string, string>; body: string } {
    const url = new URL(request.url ?? "/", `https://${request.headers.host}`);
    const known = endpoints.filter(({ method, address }) => method === request.method && address.test(url.pathname));
    const [endpoint] = known.sort((a, b) => likeness(b, url, sent) - likeness(a, url, sent));
    const json = { "content-type": "application/json" };
    if (!endpoint) return { status: 200, headers: json, body: JSON.stringify(loginAnswer) };
    const asked = { url: url.href, body: sent, stream: String(endpoint.stream["name"]) };
    const page = pageAsked(endpoint, url, sent, request, config);
    if (typeof page === "string") {
      requests.push({ ...asked, page: 0, records: 0, refused: page });
      return { status: 400, headers: json, body: JSON.stringify({ message: page }) };
    }
    const size = sizeOf(endpoint.stream, config);
    // Parents have two records on one page: their children are few.
    const own = endpoint === endpoints[0];
    const count = own ? (page > PAGES ? 0 : page === PAGES ? 1 : size) : page === 1 ? 2 : 0;
    const records = Array.from({ length: count }, (_, at) => recordOf(endpoint.stream, page * 100_000 + at, at));
    for (const record of records)
      for (const key of endpoint.needed)
        if (key && !key.includes("{") && !Object.hasOwn(record, key)) record[key] = String(record["id"]);
    requests.push({ ...asked, page, records: count, refused: null });
    const next = new URL(url);
    next.searchParams.set("mockpage", String(page + 1));
    const made = pageOf({
      stream: endpoint.stream,
      config,
      page,
      last: page >= PAGES || !own,
      records,
      nextUrl: next.href,
    });
    if (made.token !== null) endpoint.tokens.set(made.token, page + 1);
    if (decoderOf(endpoint.stream) === "XmlDecoder")
      return { status: 200, headers: { "content-type": "application/xml" }, body: xml.build(made.body) };
    return { status: 200, headers: { ...json, ...made.headers }, body: JSON.stringify(made.body) };
  }

  const { origin, close } = await listen(server);
  return {
    origin,
    requests,
    serve(stream, given) {
      requests.length = 0;
      config = given;
      endpoints = family(stream).map((each) => endpointOf(each, given));
    },
    close,
  };
}

const xml = new XMLBuilder({ ignoreAttributes: true });
// What token endpoints and logins commonly give, all at once.
const loginAnswer = {
  access_token: "t",
  expires_in: 3600,
  token: "t",
  id: "t",
  session_token: "t",
  data: { token: "t" },
};

const requesterOf = (stream: Json): Json => (retrieverOf(stream)["requester"] as Json | undefined) ?? {};
const decoderOf = (stream: Json): unknown => (retrieverOf(stream)["decoder"] as Json | undefined)?.["type"];
export const retrieverOf = (stream: Json): Json => (stream["retriever"] as Json | undefined) ?? {};
const paginatorOf = (stream: Json): Json => (retrieverOf(stream)["paginator"] as Json | undefined) ?? {};

interface Member {
  readonly stream: Json;
  readonly needed: readonly string[];
}

/** The stream and its parents, each with the fields that its children are made from. */
function family(stream: Json, needed: readonly string[] = []): Member[] {
  const routers = list(retrieverOf(stream)["partition_router"]).filter(isRecord);
  const parents = routers.flatMap((router) => list(router["parent_stream_configs"]).filter(isRecord));
  return [
    { stream, needed },
    ...parents.flatMap((parent) => family(parent["stream"] as Json, [String(parent["parent_key"] ?? "")])),
  ];
}

const jinja = createInterpolator();

function endpointOf({ stream, needed }: Member, config: Json): Endpoint {
  const requester = requesterOf(stream);
  const parameters = requester["$parameters"] ?? {};
  const base = jinja.text(String(requester["url_base"] ?? requester["url"] ?? ""), { config, parameters });
  const path = String(requester["path"] ?? "");
  const known =
    path.includes("stream_") || path.includes("next_page") ? path : jinja.text(path, { config, parameters });
  const whole = /^https?:/.test(known) ? known : `${base.replace(/\/$/, "")}/${known.replace(/^\/+/, "")}`;
  const afterHost = whole
    .replace(/^https?:\/\/[^/{]*/, "")
    .replace(/\?.*$/, "")
    .replace(/\/{2,}/g, "/");
  const parts = afterHost.split(/\{\{.*?\}\}/);
  const pattern = parts.map((part) => part.replace(/[.*+?^${}()|[\]\\]/g, "\\$&")).join(".*");
  return {
    stream,
    method: String(requester["http_method"] ?? "GET").toUpperCase(),
    address: new RegExp(`^${pattern.replace(/\/+$/, "")}/*$`),
    literal: parts.join("").length,
    needed,
    tokens: new Map(),
  };
}

/** How well a request fits: the address, then the parameters and texts of the body that are written out. */
function likeness({ stream, literal }: Endpoint, url: URL, sent: string): number {
  const requester = requesterOf(stream);
  const params = isRecord(requester["request_parameters"]) ? Object.entries(requester["request_parameters"]) : [];
  const fixed = params.filter(([, value]) => typeof value === "string" && !value.includes("{{"));
  const fitting = fixed.filter(([name, value]) => url.searchParams.get(name) === value).length;
  const body = JSON.stringify(requester["request_body_json"] ?? requester["request_body"] ?? "");
  const [, query = ""] = String(requester["path"] ?? "").split("?");
  const [start = ""] = query.split("{{");
  // A path that is made whole by a template: the texts that stand in it.
  const quoted = [...String(requester["path"] ?? "").matchAll(/'([^']+)'|"([^"]+)"/g)].map(
    (each) => each[1] ?? each[2] ?? "",
  );
  const hints = quoted.filter((hint) => hint.includes("/") && url.pathname.includes(hint)).join("").length;
  const asked = start !== "" && decodeURIComponent(url.search).includes(start) ? start.length * 1000 : 0;
  const words = new Set(body.match(/[A-Za-z]{4,}/g) ?? []);
  return (
    asked +
    hints * 10 +
    literal * 1000 +
    (fitting - (fixed.length - fitting)) * 50 +
    [...words].filter((word) => sent.includes(word)).length
  );
}

/** The number of the page from 1, or what is wrong with how it was asked for. */
function pageAsked(
  { stream, tokens }: Endpoint,
  url: URL,
  sent: string,
  request: IncomingMessage,
  config: Json,
): number | string {
  const paginator = paginatorOf(stream);
  if (paginator["type"] !== "DefaultPaginator") return 1;
  const strategy = paginator["pagination_strategy"] as Json;
  const option = paginator["page_token_option"] as Json | undefined;
  if (url.searchParams.has("mockpage")) return Number(url.searchParams.get("mockpage"));
  const given = option ? optionValue(option, url, sent, request, config) : tokenWithin(tokens, url, sent);
  if (given === undefined) {
    const followed = [...tokens].find(([token]) => token !== "" && url.href.includes(token));
    return followed?.[1] ?? 1;
  }
  if (strategy["type"] === "CursorPagination") return tokens.get(given) ?? `the cursor '${given}' was never given`;
  const number = Number(given);
  if (!Number.isInteger(number)) return `'${given}' is no number`;
  if (strategy["type"] === "PageIncrement") return number - Number(strategy["start_from_page"] ?? 0) + 1;
  const size = sizeOf(stream, config);
  return number <= size
    ? number === size || number === 0
      ? number / size + 1
      : `the offset ${number} skips records`
    : 3;
}

function optionValue(option: Json, url: URL, sent: string, request: IncomingMessage, config: Json): string | undefined {
  const parameters = option["$parameters"] ?? {};
  const name = jinja.text(String(option["field_name"] ?? ""), { config, parameters });
  switch (option["inject_into"]) {
    case "request_parameter":
      return url.searchParams.get(name) ?? undefined;
    case "header":
      return request.headers[name.toLowerCase()]?.toString();
    case "body_data":
      return new URLSearchParams(sent).get(name) ?? undefined;
    case "body_json": {
      const path = list(option["field_path"]).map(String);
      let value: unknown = sent ? JSON.parse(sent) : {};
      for (const key of path.length > 0 ? path : [name]) value = isRecord(value) ? value[key] : undefined;
      return value === undefined ? undefined : typeof value === "object" ? JSON.stringify(value) : String(value);
    }
    default:
      return undefined;
  }
}

// Where the token is put by a template of the requester: it is somewhere in the request.
function tokenWithin(tokens: Endpoint["tokens"], url: URL, sent: string): string | undefined {
  const whole = `${decodeURIComponent(url.href.replace(/%(?![0-9a-f]{2})/gi, "%25"))} ${sent}`;
  return [...tokens.keys()].findLast((token) => whole.includes(token));
}

/** Records of a full page. */
function sizeOf(stream: Json, config: Json): number {
  const strategy = paginatorOf(stream)["pagination_strategy"] as Json | undefined;
  const parameters = strategy?.["$parameters"] ?? {};
  const size = strategy?.["page_size"];
  const number = Number(typeof size === "string" ? jinja.evaluate(size, { config, parameters }, "") : size);
  return number > 0 ? Math.min(number, 20_000) : 3;
}
