// From one page to the next: cursors, pages, offsets, and where their values go in the request. Loops are noticed.
import { createHash } from "node:crypto";
import { MagicError } from "#contract/errors.ts";
import { type Context, condition, native, type Slice, sliceVariables, text, type Variables } from "../context.ts";
import type { HttpResponse } from "../http/client.ts";
import { emptyParts, inject, type RequestParts, written } from "../http/options.ts";
import { responseVariables } from "../http/response.ts";
import { type Component, child, optionalChild, refuseCustom, typeOf } from "../manifest/component.ts";

export interface Page {
  readonly response: HttpResponse;
  /** Records extracted from it, before any filter. */
  readonly size: number;
  readonly lastRecord: Record<string, unknown> | undefined;
  /** What templates see as `response`, where it is not the JSON of the body. */
  readonly decoded?: unknown;
  /** How many records were asked for, where that is not what the manifest says. */
  readonly asked?: number | undefined;
  readonly slice?: Slice;
}

export interface Paginator {
  /** The token of the first page; null: none. */
  readonly first: unknown;
  /** The token after this page, or null at the end. */
  next(page: Page, token: unknown): unknown;
  /** True: pages may be of any size, and go on from where the last one ended. */
  readonly resizes: boolean;
  /** How many records a page is to have; undefined: the manifest does not say. */
  readonly pageSize: unknown;
  /** Where token and page size go; `size`: another one than the manifest's. */
  parts(token: unknown, size?: number): RequestParts;
  /** The path or URL that the token is, where it is one. */
  path(token: unknown): string | undefined;
}

interface Strategy {
  readonly first: unknown;
  readonly pageSize: unknown;
  next(page: Page, token: unknown): unknown;
}

export function paginatorOf(context: Context, component: Component | undefined): Paginator {
  if (!component || typeOf(component) === "NoPagination")
    return {
      first: null,
      next: () => null,
      resizes: false,
      pageSize: undefined,
      parts: () => emptyParts(),
      path: () => undefined,
    };
  if (typeOf(component) !== "DefaultPaginator") return refuseCustom(component);
  const strategy = strategyOf(context, child(component, "pagination_strategy"));
  const sizeOption = optionalChild(component, "page_size_option");
  const tokenOption = optionalChild(component, "page_token_option");
  const asPath =
    tokenOption !== undefined && (typeOf(tokenOption) === "RequestPath" || tokenOption["inject_into"] === "path");
  return {
    first: strategy.first,
    next: strategy.next,
    resizes: sizeOption !== undefined && !asPath && typeOf(child(component, "pagination_strategy")) !== "PageIncrement",
    pageSize: strategy.pageSize,
    parts(token, size) {
      const parts = emptyParts();
      const wanted = size ?? strategy.pageSize;
      if (sizeOption && wanted !== undefined && wanted !== null && wanted !== "")
        inject(context, sizeOption, wanted, parts);
      if (tokenOption && !asPath && token !== null && token !== undefined) inject(context, tokenOption, token, parts);
      return parts;
    },
    path: (token) => (asPath && token !== null && token !== undefined && token !== "" ? written(token) : undefined),
  };
}

function strategyOf(context: Context, component: Component): Strategy {
  const type = typeOf(component);
  const size =
    component["page_size"] === undefined || component["page_size"] === null
      ? undefined
      : native(context, component, component["page_size"]);
  const onFirst = component["inject_on_first_request"] === true;
  // Some vendors say how long their pages are.
  const said = typeof component["page_size"] === "string" && component["page_size"].includes("response");
  const sizeOf = (page: Page): unknown =>
    page.asked ?? (said ? native(context, component, component["page_size"], variablesOf(page, size)) : size);
  const short = (page: Page): boolean => page.size === 0 || page.size < (Number(sizeOf(page)) || 0);
  if (type === "PageIncrement") {
    const start = Number(component["start_from_page"] ?? 0);
    return {
      first: onFirst ? start : null,
      pageSize: size,
      next: (page, token) => (short(page) ? null : typeof token === "number" ? token + 1 : start + 1),
    };
  }
  if (type === "OffsetIncrement")
    return {
      first: onFirst ? 0 : null,
      pageSize: size,
      next: (page, token) => (short(page) ? null : (typeof token === "number" ? token : 0) + page.size),
    };
  if (type !== "CursorPagination") return refuseCustom(component);
  return {
    first: null,
    pageSize: size,
    next(page) {
      const variables = variablesOf(page, size);
      const stop = component["stop_condition"];
      if (stop !== undefined && stop !== null && stop !== "" && condition(context, component, stop, variables))
        return null;
      let token = native(context, component, component["cursor_value"], variables);
      // An id such as 6488e12 is no number, though it reads like one.
      if (typeof token === "number") {
        const asText = text(context, component, component["cursor_value"], variables);
        if (String(token) !== asText.trim()) token = asText;
      }
      const empty =
        token === "" ||
        token === null ||
        token === undefined ||
        token === false ||
        token === 0 ||
        (typeof token === "object" && Object.keys(token).length === 0);
      return empty ? null : token;
    },
  };
}

function variablesOf({ response, decoded, lastRecord, size, asked, slice }: Page, page_size: unknown): Variables {
  return {
    ...(slice && sliceVariables(slice)),
    ...responseVariables(response),
    ...(decoded === undefined ? {} : { response: decoded }),
    last_record: lastRecord ?? null,
    last_page_size: size,
    ...((asked ?? page_size) === undefined ? {} : { page_size: asked ?? page_size }),
  };
}

/** Pages with the same records in a row: of numbered pages so many are a server that goes on for ever. */
const SAME_PAGES = 3;
/** Where each page names the next, records may be alike by chance. */
const SAME_CURSOR_PAGES = 10;
const EMPTY_PAGES = 1000;

export interface LoopGuard {
  /** Throws upstream_error where reading would never end. */
  check(page: Page, records: PageRecords, next: unknown): void;
}

/** A page's records as they came. */
export interface PageRecords {
  readonly size: number;
  readonly first: unknown;
  all(): readonly unknown[];
}

/** The records of a page that comes in parts. */
export interface Tally {
  add(part: readonly unknown[]): void;
  readonly last: unknown;
  /** Of several parts only what they came in is kept. */
  came(response: HttpResponse): PageRecords;
}

export function createTally(): Tally {
  let [parts, size] = [0, 0];
  let first: unknown;
  let latest: readonly unknown[] = [];
  return {
    add(part) {
      if (part.length === 0) return;
      if (parts === 0) first = part[0];
      parts++;
      size += part.length;
      latest = part;
    },
    get last() {
      return latest.at(-1);
    },
    came: ({ body }) => {
      const records = latest;
      return { size, first, all: parts > 1 ? () => [digest(body.toString("latin1"))] : () => records };
    },
  };
}

export function loopGuard(): LoopGuard {
  const tokens = new Set<string>();
  /** Pages whose token was known: a scroll keeps its token, and its pages go on all the same. */
  const again = new Set<string>();
  let last: PageRecords | undefined;
  let lastBody: Buffer | undefined;
  let same = 1;
  let empty = 0;
  return {
    check({ response }, records, next) {
      if (next === null) return;
      const url = new URL(response.url);
      const loops = (how: string): MagicError =>
        new MagicError("upstream_error", `pagination of ${url.origin}${url.pathname} loops: ${how}`);
      if (typeof next !== "number") {
        const token = digest(next);
        if (tokens.has(token)) {
          const seen = digest([next, records.all()]);
          if (again.has(seen)) throw loops("the next-page token repeats");
          again.add(seen);
        }
        tokens.add(token);
      }
      empty = records.size === 0 ? empty + 1 : 0;
      if (empty >= EMPTY_PAGES) throw loops(`${EMPTY_PAGES} pages in a row are empty`);
      if (records.size === 0) return;
      same = last && alike(last, records) ? same + 1 : 1;
      const most = typeof next === "number" || lastBody?.equals(response.body) ? SAME_PAGES : SAME_CURSOR_PAGES;
      last = records;
      lastBody = response.body;
      if (same >= most) throw loops(`${same} pages in a row are the same`);
    },
  };
}

const digest = (value: unknown): string => createHash("sha256").update(JSON.stringify(value)).digest("base64");

// Pages that differ do so in their first record: only those that do not are compared wholly.
function alike(a: PageRecords, b: PageRecords): boolean {
  if (a.size !== b.size || JSON.stringify(a.first) !== JSON.stringify(b.first)) return false;
  const others = b.all();
  return a.all().every((each, at) => JSON.stringify(each) === JSON.stringify(others[at]));
}
