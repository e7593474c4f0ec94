// One answer of the stand-in vendor: the records where the manifest looks for them, and around them whatever makes its templates go on, or end.
// The templates name the places (`response.meta.next`, `headers['x-next']`); which values do is found by trying.
import { createInterpolator } from "#daemon/integrations/connectors/declarative/jinja/interpolate.ts";
import { isRecord, list } from "#daemon/integrations/connectors/declarative/manifest/component.ts";
import { type Json, place, references } from "./example.ts";

export interface Wanted {
  readonly stream: Json;
  readonly config: Json;
  readonly page: number;
  readonly last: boolean;
  readonly records: readonly Json[];
  readonly nextUrl: string;
}

export interface Made {
  readonly body: unknown;
  readonly headers: Readonly<Record<string, string>>;
  /** What the manifest will send to get the next page; null: nothing. */
  readonly token: string | null;
}

const jinja = createInterpolator();
const ABSENT = Symbol("absent");
const MOST_TRIES = 1500;

interface Place {
  readonly root: "response" | "headers" | "last_record";
  readonly path: readonly string[];
}

export function pageOf(wanted: Wanted): Made {
  const { stream, records, last, nextUrl } = wanted;
  const retriever = stream["retriever"] as Json;
  const paginator = retriever["paginator"] as Json | undefined;
  const strategy = paginator?.["pagination_strategy"] as Json | undefined;
  if (strategy?.["type"] !== "CursorPagination" || (records.length === 0 && last))
    return { body: bodyOf(wanted, records, []), headers: {}, token: null };
  const value = String(strategy["cursor_value"] ?? "");
  const stop = String(strategy["stop_condition"] ?? "");
  const places = placesOf(value, stop);
  const wholeUrl = (paginator?.["page_token_option"] as Json | undefined)?.["type"] === "RequestPath";
  const token = `tok-${wanted.page + 1}`;
  const going: readonly unknown[] = wholeUrl
    ? [
        nextUrl,
        token,
        true,
        false,
        50,
        { next: nextUrl },
        [{ rel: "next", href: nextUrl, url: nextUrl, relation: "next", uri: nextUrl }],
        ABSENT,
        null,
      ]
    : [
        token,
        nextUrl,
        true,
        false,
        wanted.page,
        wanted.page + 1,
        50,
        `${nextUrl}&cursor=${token}&$skiptoken=${token}`,
        ABSENT,
        null,
        [{ rel: "next", href: nextUrl }],
      ];
  const ending: readonly unknown[] = [null, ABSENT, "", false, true, wanted.page, 0, {}, []];
  let tries = 0;
  let found: Made | undefined;
  const attempt = (chosen: readonly unknown[]): boolean => {
    tries++;
    const made = build(wanted, places, chosen);
    const goes = evaluate(wanted, strategy, made);
    if (last ? goes !== null : goes === null || !promising(goes, token, nextUrl, records)) return false;
    found = { ...made, token: goes };
    return true;
  };
  const values = last ? ending : going;
  const search = (chosen: readonly number[]): boolean => {
    if (tries > MOST_TRIES) return true;
    if (chosen.length < places.length) return values.some((_, at) => search([...chosen, at]));
    if (!attempt(chosen.map((at) => values[at]))) return false;
    remember(stream, last, chosen);
    return true;
  };
  // What did for another page of the stream will do for this one.
  const known = solutions.get(stream)?.get(last);
  if (!known || !attempt(known.map((at) => values[at]))) search([]);
  if (found) return found;
  // Nothing does: a page that cannot be the last by what it says leads to an empty one.
  const made = build(
    wanted,
    places,
    places.map(() => (last ? null : token)),
  );
  return { ...made, token: evaluate(wanted, strategy, made) };
}

const solutions = new WeakMap<Json, Map<boolean, readonly number[]>>();

function remember(stream: Json, last: boolean, chosen: readonly number[]): void {
  const known = solutions.get(stream) ?? new Map<boolean, readonly number[]>();
  solutions.set(stream, known.set(last, chosen));
}

// A next-page value that leads somewhere: our token, the next URL, or something of the last record.
function promising(value: string, token: string, nextUrl: string, records: readonly Json[]): boolean {
  if (value.includes(token) || value.includes(nextUrl) || value.includes("mockpage=")) return true;
  return JSON.stringify(records.at(-1) ?? {}).includes(JSON.stringify(value).slice(1, -1)) || /^\d+$/.test(value);
}

function placesOf(value: string, stop: string): Place[] {
  const both = `${value} ${stop}`;
  const of = (root: Place["root"]): Place[] => references(both, root).map((path) => ({ root, path }));
  const all = [...of("response"), ...of("headers"), ...of("last_record")];
  // A place above another is there by itself.
  return all.filter(
    (each) =>
      !all.some(
        (other) =>
          other.root === each.root &&
          other.path.length > each.path.length &&
          each.path.every((part, at) => part === other.path[at]),
      ),
  );
}

function build(wanted: Wanted, places: readonly Place[], chosen: readonly unknown[]): Omit<Made, "token"> {
  const { records, nextUrl } = wanted;
  const headers: Record<string, string> = {};
  const copies = records.map((record, at) => (at === records.length - 1 ? { ...record } : record));
  const inBody: { path: readonly string[]; value: unknown }[] = [];
  for (const [at, { root, path }] of places.entries()) {
    const value = chosen[at];
    if (root === "response") inBody.push({ path, value });
    else if (root === "headers") {
      if (/^link$/i.test(path[0] ?? "")) {
        if (value === nextUrl) headers["link"] = `<${nextUrl}>; rel="next"`;
      } else if (value !== ABSENT && value !== null) headers[path.join("-").toLowerCase()] = String(value);
    } else {
      const record = copies.at(-1);
      if (record && value !== ABSENT && !(path.join(".") in record)) place(record, path, value);
    }
  }
  return { body: bodyOf(wanted, copies, inBody), headers };
}

function bodyOf(
  { stream, config }: Pick<Wanted, "stream" | "config">,
  records: readonly Json[],
  more: readonly { path: readonly string[]; value: unknown }[],
): unknown {
  const selector = (stream["retriever"] as Json)["record_selector"] as Json | undefined;
  const extractor = (selector?.["extractor"] as Json | undefined) ?? {};
  const path = list(extractor["field_path"])
    .map(String)
    .filter(Boolean)
    .map((part) => jinja.text(part, { config, parameters: extractor["$parameters"] ?? {} }))
    .filter(Boolean);
  // An answer that is the record, and says where to go on besides.
  const wrapped = path.length === 0 && more.length > 0 && records.length > 0 ? { ...records[0] } : wrap(path, records);
  if (more.length === 0) return wrapped;
  if (!isRecord(wrapped)) return wrapped;
  for (const { path: where, value } of more) {
    // What the records themselves say stays as it is.
    if (value === ABSENT || where.join(".") === path.join(".") || path.join(".").startsWith(`${where.join(".")}.`))
      continue;
    if (where.length > path.length && path.length > 0 && path.every((part, at) => part === where[at])) continue;
    place(wrapped, where, value);
  }
  return wrapped;
}

/** Records at a path: beyond a "*" each stands by itself, in a list. */
function wrap(path: readonly string[], records: readonly Json[]): unknown {
  const star = path.indexOf("*");
  if (path.length === 0) return records;
  const before = star < 0 ? path : path.slice(0, star);
  const inner =
    star < 0
      ? records
      : records.map((record) =>
          path.slice(star + 1).reduceRight<unknown>((value, key) => (key === "*" ? [value] : { [key]: value }), record),
        );
  return before.reduceRight<unknown>((value, key) => ({ [key]: value }), inner);
}

/** What the next request will carry, as text; null: there is none. */
function evaluate(
  { stream, config, records }: Wanted,
  strategy: Json,
  { body, headers }: Omit<Made, "token">,
): string | null {
  const link = /<([^>]+)>/.exec(headers["link"] ?? "")?.[1];
  const lastRecord = recordsIn(stream, body) ?? records;
  const variables = {
    config,
    parameters: strategy["$parameters"] ?? {},
    response: body,
    headers: { ...headers, ...titled(headers), link: link ? { next: { url: link, rel: "next" } } : {} },
    last_record: lastRecord.at(-1) ?? {},
    last_page_size: records.length,
  };
  try {
    const stop = strategy["stop_condition"];
    if (typeof stop === "string" && stop !== "" && truthy(jinja.evaluate(stop, variables, ""))) return null;
    const value = jinja.evaluate(String(strategy["cursor_value"] ?? ""), variables, "");
    if (!truthy(value)) return null;
    return typeof value === "object" ? JSON.stringify(value) : String(value);
  } catch {
    // A page on which the templates fail is none that the vendor would send.
    return strategy === undefined ? null : "";
  }
}

function recordsIn(stream: Json, body: unknown): readonly Json[] | undefined {
  const selector = (stream["retriever"] as Json)["record_selector"] as Json | undefined;
  let value = body;
  for (const key of list((selector?.["extractor"] as Json | undefined)?.["field_path"]).map(String))
    value = isRecord(value) ? value[key] : undefined;
  return Array.isArray(value) ? value : undefined;
}

const titled = (headers: Readonly<Record<string, string>>): Record<string, string> =>
  Object.fromEntries(
    Object.entries(headers).map(([name, value]) => [
      name.replace(/(^|-)([a-z])/g, (each) => each.toUpperCase()),
      value,
    ]),
  );

const truthy = (value: unknown): boolean =>
  !(
    value === null ||
    value === undefined ||
    value === false ||
    value === "" ||
    value === 0 ||
    (typeof value === "string" && /^(false|none)$/i.test(value)) ||
    (typeof value === "object" && Object.keys(value).length === 0)
  );
