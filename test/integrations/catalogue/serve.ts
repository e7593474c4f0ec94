// A mock vendor over HTTP: what the description says, and 4xx for everything else. `examine` names the collection that has three pages of
// records; the others have two records, so that their children are few.
import { createServer, type IncomingMessage } from "node:http";
import { text } from "node:stream/consumers";
import { listen } from "#test/listen.ts";
import { matches } from "./auth.ts";
import type { Answer, Ask, Collection, Filter, Item, PageOf, Rec, Vendor, Where } from "./vendor.ts";

export interface Served {
  readonly collection: string;
  readonly records: number;
  readonly continued: boolean;
  readonly status: number;
  /** What was wrong with the request. */
  readonly complaint?: string;
  readonly query: string;
}

export interface MockServer {
  readonly origin: string;
  /** Since the last `examine`. */
  readonly log: Served[];
  examine(collection: string): void;
  /** Five records more than there were: the first has the time of the last, the others are later. */
  grow(): void;
  /** The next request for the examined collection meets the rate limit. */
  limitOnce(): void;
  revoked: boolean;
  /** The records that there are, with the parent of each. */
  records(): { readonly record: Rec; readonly parent: Rec }[];
  close(): Promise<void>;
}

const BEGIN = Date.parse("2026-03-01T00:00:00Z");
const SPAN = 60 * 86_400_000;
const NEW = 5;

export async function serve(vendor: Vendor): Promise<MockServer> {
  const log: Served[] = [];
  const names = Object.keys(vendor.collections);
  let examined = "";
  let grown = 0;
  let limited = false;
  /** Records of the examined collection: as many as make three pages of the size that was asked for. */
  let count = 0;
  const mock: Omit<MockServer, "origin" | "close"> = {
    log,
    revoked: false,
    examine(collection) {
      examined = collection;
      count = 0;
      grown = 0;
      limited = false;
      log.length = 0;
    },
    grow: () => {
      grown = NEW;
    },
    limitOnce: () => {
      limited = true;
    },
    records: () =>
      parentsOf(examined).flatMap((parent, at) =>
        itemsOf(examined, parent, at).map((item) => ({ record: collectionOf(examined).record(item), parent })),
      ),
  };
  const collectionOf = (name: string): Collection => {
    const found = vendor.collections[name];
    if (!found) throw new Error(`the mock vendor has no collection '${name}'`);
    return found;
  };
  const parentsOf = (name: string): Rec[] => {
    const { parent } = collectionOf(name);
    if (!parent) return [{}];
    return parentsOf(parent.of).flatMap((each, at) => itemsOf(parent.of, each, at).map(collectionOf(parent.of).record));
  };
  const itemsOf = (name: string, parent: Rec, parentAt: number): Item[] => {
    const old = name === examined ? count : (collectionOf(name).parents ?? 2);
    const time = (n: number): number =>
      n <= old ? BEGIN + (n / old) * SPAN : BEGIN + SPAN + (n - old - 1) * 3_600_000;
    return Array.from({ length: old + (name === examined ? grown : 0) }, (_, at) => ({
      n: parentAt * 100_000 + at + 1,
      time: new Date(Math.floor(time(at + 1) / 1000) * 1000),
      parent,
    }));
  };

  const answer = (ask: Ask): Answer => {
    const token = vendor.auth.endpoint?.(ask);
    if (token) return token;
    if (mock.revoked || !vendor.auth.accepts(ask)) return vendor.unauthorized;
    const found = names
      .map((name) => ({ name, collection: collectionOf(name), ...addressOf(collectionOf(name), ask) }))
      .find(({ collection, path }) => path && (collection.when?.({ ...ask, path }) ?? true));
    if (!found?.path) throw new Refusal(404, `nothing is at ${ask.method} ${ask.url.origin}${ask.url.pathname}`);
    const { name, collection, path, following } = found;
    const here: Ask = { ...ask, path };
    if (!following) complain(vendor, collection, here);
    if (name === examined && limited) {
      limited = false;
      return vendor.limited;
    }
    return pageOf(name, collection, here, following ?? false);
  };

  const pageOf = (name: string, collection: Collection, ask: Ask, following: boolean): Answer => {
    const { pages } = collection;
    const size = pages.kind === "none" ? 0 : sizeOf(pages, ask);
    if (name === examined && count === 0)
      count = pages.kind === "none" ? 7 : 2 * size + Math.min(Math.ceil(size / 2), 10);
    const parents = parentsOf(name);
    const wanted = collection.parent ? valueAt(collection.parent.at, ask) : undefined;
    const parentAt = collection.parent ? parents.findIndex((parent) => collection.parent?.key(parent) === wanted) : 0;
    const parent = parents[parentAt];
    if (!parent) throw new Refusal(404, `there is no ${collection.parent?.of} '${wanted}'`);
    // Where pages live at another address, the cursor stands for the question too.
    const [token, memory] = following ? fromCursor(ask.path["cursor"] ?? "") : [undefined, undefined];
    const asked = memory ? { ...ask, query: new URLSearchParams(memory) } : ask;
    const items = itemsOf(name, parent, parentAt).filter(
      (item) => within(collection.since, asked, item, 1) && within(collection.until, asked, item, -1),
    );
    const ordered = collection.order === "newest first" ? items.reverse() : items;
    const offset = token ?? offsetOf(pages, ask, size, () => ordered.map(collection.record));
    const shown = pages.kind === "none" ? ordered : ordered.slice(offset, offset + size);
    const records = shown.map(collection.record);
    const more = pages.kind !== "none" && offset + size < ordered.length;
    const next = more ? nextOf(pages, offset, size, records, collection.more ? asked.query.toString() : "") : null;
    log.push({ collection: name, records: records.length, continued: offset > 0, status: 200, query: ask.url.search });
    const nextUrl = next === null || pages.kind === "none" ? null : urlWith(ask.url, pages.at, next);
    const page: PageOf = {
      ...{ records, next, nextUrl, total: ordered.length, offset, size, ask },
      number: size === 0 ? 1 : Math.floor(offset / size) + 1,
    };
    const given = collection.answer(page);
    return isAnswer(given) ? given : { body: given };
  };

  const server = createServer((request, response) => {
    void askOf(request).then((ask) => {
      let given: Answer;
      try {
        given = answer(ask);
        if ((given.status ?? 200) >= 400) log.push({ ...nothing, status: given.status ?? 0, query: ask.url.href });
      } catch (error) {
        const status = error instanceof Refusal ? error.status : 400;
        const complaint = (error as Error).message;
        log.push({ ...nothing, status, complaint, query: ask.url.href });
        given = { status, body: { message: complaint } };
      }
      const raw = typeof given.body === "string" || Buffer.isBuffer(given.body);
      response.writeHead(given.status ?? 200, { "content-type": "application/json", ...given.headers });
      response.end(raw ? given.body : JSON.stringify(given.body));
    });
  });
  const { origin, close } = await listen(server);
  return Object.assign(mock, { origin, close });
}

const nothing = { collection: "", records: 0, continued: false };

class Refusal extends Error {
  readonly status: number;
  constructor(status: number, message: string) {
    super(message);
    this.status = status;
  }
}

async function askOf(request: IncomingMessage): Promise<Ask> {
  const sent = await text(request);
  const url = new URL(request.url ?? "/", `https://${request.headers.host}`);
  const type = request.headers["content-type"] ?? "";
  return {
    method: request.method ?? "",
    url,
    query: url.searchParams,
    path: {},
    headers: Object.fromEntries(Object.entries(request.headers).map(([name, value]) => [name, String(value)])),
    body: type.includes("json") && sent ? JSON.parse(sent) : undefined,
    form: new URLSearchParams(type.includes("x-www-form-urlencoded") ? sent : ""),
  };
}

function addressOf(
  collection: Collection,
  ask: Ask,
): { readonly path?: Readonly<Record<string, string>>; readonly following?: boolean } {
  const following = collection.more === undefined ? undefined : matchUrl(collection.more, ask.url);
  if (following) return { path: following, following: true };
  const path = ask.method === (collection.method ?? "GET") ? matchUrl(collection.url, ask.url) : undefined;
  return path ? { path } : {};
}

/** `:name` stands for one part of the path; undefined: another address. */
function matchUrl(pattern: string, url: URL): Record<string, string> | undefined {
  const [, scheme, host, path = ""] = /^(https?:)\/\/([^/]+)(.*)$/.exec(pattern) ?? [];
  if (!scheme || url.host !== host) return undefined;
  const wanted = path.split("/");
  const given = url.pathname.split("/");
  if (wanted.length !== given.length) return undefined;
  const found: Record<string, string> = {};
  for (const [at, part] of wanted.entries()) {
    const value = decodeURIComponent(given[at] ?? "");
    if (part.startsWith(":") && value) found[part.slice(1)] = value;
    else if (part !== value && part !== given[at]) return undefined;
  }
  return found;
}

function complain(vendor: Vendor, collection: Collection, ask: Ask): void {
  const { params = {}, optional = [], headers = {}, pages, since, until, parent, body } = collection;
  for (const [name, wanted] of Object.entries(params))
    if (!matches(ask.query.get(name) ?? "", wanted)) throw new Refusal(400, `parameter ${name} is missing or wrong`);
  for (const [name, wanted] of Object.entries(headers))
    if (!matches(ask.headers[name.toLowerCase()] ?? "", wanted))
      throw new Refusal(400, `header ${name} is missing or wrong`);
  const places = [since?.at, until?.at, parent?.at, ...(pages.kind === "none" ? [] : [pages.at, pages.size])];
  const known = new Set([
    ...Object.keys(params),
    ...optional,
    ...(vendor.auth.params ?? []),
    ...places.filter((place) => typeof place === "string"),
  ]);
  const unknown = [...ask.query.keys()].find((name) => !known.has(name));
  if (unknown !== undefined) throw new Refusal(400, `parameter ${unknown} is not known`);
  const wrong = body?.((ask.body ?? {}) as Record<string, unknown>, ask);
  if (wrong) throw new Refusal(400, wrong);
}

function valueAt(where: Where | undefined, ask: Ask): string | undefined {
  if (where === undefined) return undefined;
  if (typeof where === "string") return ask.query.get(where) ?? undefined;
  if (typeof where === "function") return where(ask);
  if ("header" in where) return ask.headers[where.header.toLowerCase()];
  if ("form" in where) return ask.form.get(where.form) ?? undefined;
  if ("path" in where) return ask.path[where.path];
  let value: unknown = ask.body;
  for (const key of where.body.split(".")) value = (value as Record<string, unknown> | null | undefined)?.[key];
  return value === undefined || value === null ? undefined : String(value);
}

type Paged = Exclude<Collection["pages"], { kind: "none" }>;

function sizeOf(pages: Paged, ask: Ask): number {
  const asked = valueAt(pages.size, ask);
  if (asked === undefined) return pages.default;
  const most = pages.max ?? pages.default;
  if (!/^\d+$/.test(asked) || Number(asked) < 1 || Number(asked) > most)
    throw new Refusal(400, `a page has 1 to ${most} records, not ${asked}`);
  return Number(asked);
}

function offsetOf(pages: Collection["pages"], ask: Ask, size: number, all: () => readonly Rec[]): number {
  const token = pages.kind === "none" ? undefined : valueAt(pages.at, ask);
  if (token === undefined || pages.kind === "none") return 0;
  if (pages.kind === "cursor") return fromCursor(token)[0];
  if (pages.kind === "after") {
    const at = all().findIndex((record) => pages.key(record) === token);
    if (at < 0) throw new Refusal(400, `there is no '${token}' to go on after`);
    return at + 1;
  }
  if (!/^\d+$/.test(token)) throw new Refusal(400, `'${token}' is no number`);
  if (pages.kind === "offset") return Number(token);
  const page = Number(token) - (pages.first ?? 1);
  if (page < 0) throw new Refusal(400, `there is no page ${token}`);
  return page * size;
}

function nextOf(pages: Paged, offset: number, size: number, records: readonly Rec[], memory: string): string {
  if (pages.kind === "offset") return String(offset + size);
  if (pages.kind === "number") return String(offset / size + 1 + (pages.first ?? 1));
  if (pages.kind === "after") return pages.key(records.at(-1) ?? {});
  return Buffer.from(`cursor ${offset + size} ${memory}`).toString("base64url");
}

function fromCursor(token: string): [number, string] {
  const [, offset, memory = ""] = /^cursor (\d+) (.*)$/.exec(Buffer.from(token, "base64url").toString()) ?? [];
  if (offset === undefined) throw new Refusal(400, `'${token}' is no cursor of ours`);
  return [Number(offset), memory];
}

function within(filter: Filter | undefined, ask: Ask, item: Item, sign: 1 | -1): boolean {
  const asked = valueAt(filter?.at, ask);
  if (!filter || asked === undefined || asked === "") return true;
  const difference = ((filter.by?.(item) ?? item.time.getTime()) - filter.read(asked)) * sign;
  return filter.inclusive === false ? difference > 0 : difference >= 0;
}

function urlWith(url: URL, at: Where, value: string): string | null {
  if (typeof at !== "string") return null;
  const next = new URL(url);
  next.searchParams.set(at, value);
  return next.href;
}

function isAnswer(given: Answer | Rec | readonly unknown[]): given is Answer {
  if (Array.isArray(given)) return false;
  const keys = Object.keys(given);
  return keys.includes("body") && keys.every((key) => ["status", "headers", "body"].includes(key));
}
