// A stand-in for any vendor: answers a stream's requests with records of the stream's own schema, in two pages, told apart by how often the
// same question was asked. It knows the manifest's words for pages, not the engine.
import { createServer, type IncomingMessage, type Server } from "node:http";
import { text } from "node:stream/consumers";
import { isRecord, list } from "#daemon/integrations/connectors/declarative/manifest/component.ts";

type Json = Record<string, unknown>;

export interface Vendor {
  readonly origin: string;
  /** From now on answer for this stream. */
  serve(stream: Json): void;
  readonly requests: { readonly method: string; readonly url: string; readonly body: string; readonly page: number }[];
  close(): Promise<void>;
}

export async function startVendor(): Promise<Vendor> {
  const requests: Vendor["requests"] = [];
  let streams: Json[] = [];
  const asked = new Map<string, number>();
  const server: Server = createServer((request, response) => {
    void answer(request).then(({ body, headers }) => {
      response.writeHead(200, { "content-type": "application/json", ...headers });
      response.end(body);
    });
  });
  async function answer(request: IncomingMessage): Promise<{ body: string; headers: Record<string, string> }> {
    const sent = await text(request);
    const url = new URL(request.url ?? "/", "http://vendor.test");
    if (
      /token|oauth|login|session|auth/i.test(url.pathname) &&
      request.method === "POST" &&
      /grant_type|username|password|client_id/.test(sent)
    )
      return { body: JSON.stringify({ access_token: "t", expires_in: 3600, token: "t", id: "t" }), headers: {} };
    const key = question(request.method ?? "", url, sent, streams);
    const page = (asked.get(key) ?? 0) + 1;
    asked.set(key, page);
    requests.push({ method: request.method ?? "", url: url.href, body: sent, page });
    const next = page < 2 ? `tok-${page + 1}` : null;
    const headers: Record<string, string> = {};
    const nextUrl = new URL(url);
    nextUrl.searchParams.set("mockpage", String(page + 1));
    nextUrl.host = request.headers.host ?? nextUrl.host;
    if (next) headers["link"] = `<${nextUrl.href}>; rel="next"`;
    if (next) for (const name of ["x-next-page", "x-continuation-token"]) headers[name] = next;
    const body = streams.reduceRight<unknown>(
      (all, stream) => merge(all, bodyOf(stream, page, next, nextUrl.href)),
      undefined,
    );
    return { body: JSON.stringify(body ?? {}), headers };
  }
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  return {
    origin: `http://127.0.0.1:${typeof address === "object" && address ? address.port : 0}`,
    requests,
    serve(stream) {
      asked.clear();
      requests.length = 0;
      streams = family(stream);
    },
    close: () => new Promise((resolve) => server.close(() => resolve())),
  };
}

/** The stream and its parents. */
function family(stream: Json): Json[] {
  const routers = list((stream["retriever"] as Json | undefined)?.["partition_router"]).filter(isRecord);
  const parents = routers
    .flatMap((router) => list(router["parent_stream_configs"]).filter(isRecord))
    .map((config) => config["stream"] as Json);
  return [stream, ...parents.flatMap(family)];
}

// The same request but for what says which page: two pages are two answers to one question.
function question(method: string, url: URL, body: string, streams: readonly Json[]): string {
  const names = new Set(["mockpage"]);
  for (const stream of streams) {
    const option = (retrieverOf(stream)["paginator"] as Json | undefined)?.["page_token_option"] as Json | undefined;
    if (option) names.add(String(option["field_name"] ?? ""));
  }
  const query = [...url.searchParams].filter(([name]) => !names.has(name)).map((pair) => pair.join("="));
  return [
    method,
    url.pathname.replace(/tok-\d+/, ""),
    ...query.sort(),
    body.replace(/tok-\d+/g, "").replace(/"?(?:page|offset|skip|start|cursor|after|limit)\w*"?\s*[:=]\s*"?\d*"?/gi, ""),
  ].join("\n");
}

const retrieverOf = (stream: Json): Json => (stream["retriever"] as Json | undefined) ?? {};

function bodyOf(stream: Json, page: number, next: string | null, nextUrl: string): unknown {
  const retriever = retrieverOf(stream);
  const extractor = ((retriever["record_selector"] as Json | undefined)?.["extractor"] as Json | undefined) ?? {};
  const paginator = retriever["paginator"] as Json | undefined;
  const strategy = paginator?.["pagination_strategy"] as Json | undefined;
  const size = Math.min(Number(strategy?.["page_size"]) || 3, 2000);
  const records = Array.from({ length: page === 1 ? size : 1 }, (_, at) => recordOf(stream, page * 1000 + at, at));
  const path = list(extractor["field_path"])
    .map(String)
    .filter(Boolean)
    .map((part) => (part.includes("{{") ? "data" : part));
  const cursor = String(strategy?.["cursor_value"] ?? "");
  const isPath = (paginator?.["page_token_option"] as Json | undefined)?.["type"] === "RequestPath";
  if (!path.length && !/response/.test(cursor)) return records;
  const body: Json = {};
  for (const [at, reference] of [
    ...references(cursor),
    ...references(String(strategy?.["stop_condition"] ?? "")),
  ].entries()) {
    const value =
      at === 0 || references(cursor).some((each) => each.join() === reference.join())
        ? isPath || /url|link|href/i.test(reference.at(-1) ?? "")
          ? next && nextUrl
          : next
        : stopValue(reference, String(strategy?.["stop_condition"]), next);
    place(body, reference, value);
  }
  place(body, path, records);
  return body;
}

// A flag named in the stop condition: true or false as it takes to go on.
function stopValue(reference: readonly string[], stop: string, next: string | null): unknown {
  const negated = new RegExp(
    `not\\s+response[^a-z]*${reference.at(-1)}|${reference.at(-1)}[^a-z]*\\)?\\s*(is false|== *false|is not true)|not response`,
    "i",
  ).test(stop);
  if (/more|has|next/i.test(reference.at(-1) ?? "")) return next !== null;
  return negated ? next !== null : next === null;
}

/** response.a.b, response['a'].get('b', {}): the paths that a template reads. */
function references(template: string): string[][] {
  return [
    ...template.matchAll(
      /response((?:\.get\(\s*["'][^"']+["'][^)]*\)|\[["'][^"']+["']\]|\.(?!get\()[A-Za-z_$@][\w$@]*)+)/g,
    ),
  ].map(([, chain = ""]) =>
    [...chain.matchAll(/\.get\(\s*["']([^"']+)["']|\[["']([^"']+)["']\]|\.([A-Za-z_$@][\w$@]*)/g)].map(
      (part) => part[1] ?? part[2] ?? part[3] ?? "",
    ),
  );
}

function place(target: Json, path: readonly string[], value: unknown): void {
  let at = target;
  for (const [index, raw] of path.entries()) {
    const key = raw === "*" ? "0" : raw;
    if (index === path.length - 1) at[key] = isRecord(at[key]) && value === null ? at[key] : value;
    else {
      const inner: Json = isRecord(at[key]) ? at[key] : {};
      at[key] = inner;
      at = inner;
    }
  }
}

function merge(left: unknown, right: unknown): unknown {
  if (isRecord(left) && isRecord(right)) {
    const out: Json = { ...left };
    for (const [key, value] of Object.entries(right)) out[key] = key in out ? merge(out[key], value) : value;
    return out;
  }
  return right ?? left;
}

/** A record of the stream's schema, with its key, its cursor field, and whatever children ask of it. */
export function recordOf(stream: Json, id: number, at: number): Json {
  const loader = list(stream["schema_loader"]).filter(isRecord)[0];
  const record = recordLike(exampleOf(loader?.["schema"], 0));
  for (const key of list(stream["primary_key"]).flat().map(String))
    if (key && !key.includes(".")) record[key] = typeof record[key] === "number" ? id : `${id}`;
  if (!("id" in record)) record["id"] = `${id}`;
  const sync = stream["incremental_sync"] as Json | undefined;
  if (sync) {
    const format = String(list(sync["cursor_datetime_formats"])[0] ?? sync["datetime_format"] ?? "");
    const field = String(sync["cursor_field"] ?? "").replace(/\{\{[^}]*\}\}/g, "updated_at");
    const day = new Date(Math.floor(Date.now() / 86_400_000) * 86_400_000 - (1 + (at % 5)) * 86_400_000);
    place(record, field.includes(".") && !(field in record) ? field.split(".") : [field], dateText(day, format));
  }
  return record;
}

const recordLike = (value: unknown): Json => (isRecord(value) ? value : {});

function dateText(day: Date, format: string): unknown {
  const iso = day.toISOString();
  if (format === "%s") return Math.floor(day.getTime() / 1000);
  if (format === "%ms") return day.getTime();
  if (format === "%Y-%m-%d") return iso.slice(0, 10);
  if (!/%/.test(format)) return iso;
  return format
    .replace(
      /%([A-Za-z])/g,
      (_whole, code: string) =>
        ({
          Y: iso.slice(0, 4),
          m: iso.slice(5, 7),
          d: iso.slice(8, 10),
          H: "00",
          M: "00",
          S: "00",
          f: "000000",
          z: "+0000",
          Z: "UTC",
          y: iso.slice(2, 4),
          p: "AM",
          I: "12",
          b: "Jun",
          B: "June",
          a: "Sat",
          T: "00:00:00",
        })[code] ?? "0",
    )
    .replace("%_ms", "000");
}

function exampleOf(schema: unknown, depth: number): unknown {
  if (!isRecord(schema) || depth > 4) return "text";
  const types = list(schema["type"])
    .map(String)
    .filter((type) => type !== "null");
  const type = types[0];
  if (type === "object" || (!type && isRecord(schema["properties"])))
    return Object.fromEntries(
      Object.entries(isRecord(schema["properties"]) ? schema["properties"] : {}).map(([name, each]) => [
        name,
        exampleOf(each, depth + 1),
      ]),
    );
  if (type === "array") return [exampleOf(schema["items"], depth + 1)];
  if (type === "integer" || type === "number") return 7;
  if (type === "boolean") return true;
  if (schema["format"] === "date-time") return "2024-06-01T00:00:00Z";
  if (schema["format"] === "date") return "2024-06-01";
  return Array.isArray(schema["enum"]) ? schema["enum"][0] : "text";
}
