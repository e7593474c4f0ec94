// One slice of a stream, page after page.
import { MagicError } from "#contract/errors.ts";
import { type Context, emptySlice, type Slice } from "../context.ts";
import type { HttpResponse } from "../http/client.ts";
import { decoderOf } from "../http/decode.ts";
import { emptyParts, merge, type RequestParts } from "../http/options.ts";
import { type Outcome, requesterOf } from "../http/requester.ts";
import {
  type Component,
  child,
  isRecord,
  manifestError,
  optionalChild,
  refuseCustom,
  typeOf,
} from "../manifest/component.ts";
import { asyncRetrieverOf } from "./async-job.ts";
import { pageSizeOf } from "./page-size.ts";
import { loopGuard, type Page, paginatorOf } from "./paginate.ts";
import { queryPropertiesOf } from "./query-properties.ts";
import { type DataRecord, type Selector, selectorOf } from "./records.ts";

/** What is asked for: a slice, and what it puts into requests. */
export interface Question {
  readonly slice: Slice;
  readonly parts: RequestParts;
}

export interface Retriever {
  /**
   * The records of each page, as the selector gives them. `stop` is asked after every page. `rest` is the slice from the latest record
   * on, for vendors that end their pages somewhere; undefined where that is the whole slice again.
   */
  pages<Taken extends TakenPage = never>(
    slice: Slice,
    parts: RequestParts,
    state: unknown,
    stop: (records: readonly DataRecord[]) => boolean,
    rest?: () => Question | undefined,
    /** The answer for the first page, where nobody needs to be asked for it. */
    embedded?: { readonly answer: unknown },
    /** Asked for pages whose records go out as they came: whatever it makes of one is that page. Null: as for other pages. */
    take?: (response: HttpResponse, path: readonly string[]) => Taken | null,
  ): AsyncIterable<DataRecord[] | Taken>;
}

/** A page of which nobody made records. */
export interface TakenPage {
  readonly count: number;
  readonly first: DataRecord;
  readonly last: DataRecord;
  records(): DataRecord[];
}

/** What a page took: one answer, or one for each group of fields that was asked for. */
type Answers =
  | { readonly responses: readonly HttpResponse[]; readonly asked: number | undefined }
  | Exclude<Outcome, { readonly response: HttpResponse }>;

/** A vendor may say so often in one slice that pages must begin anew. */
const MAX_RESETS = 5;

export function retrieverOf(context: Context, component: Component, selector: Selector): Retriever {
  if (typeOf(component) === "AsyncRetriever") return asyncRetrieverOf(context, component, selector);
  if (typeOf(component) !== "SimpleRetriever") return refuseCustom(component);
  const requester = requesterOf(context, child(component, "requester"), context.answers);
  const properties = queryPropertiesOf(context, child(component, "requester"), (inner) =>
    retrieverOf(
      context,
      inner,
      selectorOf(context, child(inner, "record_selector"), [], () => undefined),
    ).pages<never>(emptySlice, emptyParts(), undefined, () => false),
  );
  const decoder = optionalChild(component, "decoder");
  const decode = decoderOf(decoder);
  const paginator = paginatorOf(context, optionalChild(component, "paginator"));
  const onlyFirst = component["ignore_stream_slicer_parameters_on_paginated_requests"] === true;
  const reset = optionalChild(component, "pagination_reset");
  const reduction = optionalChild(component, "page_size_reduction");
  if (reduction && !paginator.resizes)
    throw manifestError("page_size_reduction is for offsets and cursors, by page_size_option");
  const split = reset?.["action"] === "SPLIT_USING_CURSOR";
  const isJson = !decoder || typeOf(decoder) === "JsonDecoder";
  const plain = isJson && !properties && !reset ? selector.plain : null;
  const most = Number((reset && optionalChild(reset, "limits")?.["number_of_records"]) ?? Number.POSITIVE_INFINITY);
  return {
    async *pages(slice, parts, state, stop, rest, embedded, take) {
      let asked: Question = { slice, parts };
      let guard = loopGuard();
      let resets = 0;
      let count = 0;
      /** The page before pages began anew: the first one after it begins with the same records. */
      let border: ReadonlySet<string> = new Set();
      const size = pageSizeOf(context, reduction, paginator.pageSize);
      const send = async (token: unknown): Promise<Answers> => {
        const responses: HttpResponse[] = [];
        const asked = size.now;
        for (const names of properties ? await properties.chunks() : [undefined]) {
          const outcome = await sendFor(names, token);
          if (!("response" in outcome)) return outcome;
          responses.push(outcome.response);
        }
        return { responses, asked };
      };
      const sendFor = (names: readonly string[] | undefined, token: unknown): Promise<Outcome> => {
        const paged = token !== null && token !== undefined;
        const { slice } = asked;
        return requester.send({
          slice: names ? { ...slice, extra: { ...slice.extra, query_properties: names } } : slice,
          path: paginator.path(token),
          parts: merge(
            onlyFirst && paged ? { params: {}, headers: {}, form: {}, json: {} } : asked.parts,
            paginator.parts(token, size.now),
          ),
          variables: { next_page_token: paged ? { next_page_token: token } : null, stream_state: state ?? {} },
        });
      };
      let ahead: Promise<Answers> | undefined =
        embedded && Promise.resolve({ responses: [inRecord(embedded.answer)], asked: undefined });
      // Who has taken a page and asks for the second will want the third: it is fetched while this one is worked on.
      const goOn = (next: unknown, pages: number): void => {
        if (next === null || pages === 1 || reset || !context.readsAhead) return;
        ahead = send(next);
        ahead.catch(() => {});
      };
      for (let token: unknown = paginator.first, pages = 1; ; pages++) {
        const answers = await (ahead ?? send(token));
        ahead = undefined;
        if ("ignored" in answers) {
          if (answers.ignored) context.log("info", answers.ignored);
          return;
        }
        if ("tooMuch" in answers) {
          await size.reduce(answers.tooMuch);
          pages--;
          continue;
        }
        if (!("reset" in answers)) {
          size.succeeded();
          const about = { slice: asked.slice, asked: answers.asked };
          const response = answers.responses.at(-1) as HttpResponse;
          const taken = plain && take ? take(response, plain) : null;
          if (taken) {
            const { count, first, last: lastRecord } = taken;
            const page: Page = { ...about, response, size: count, lastRecord };
            const next = paginator.next(page, token) ?? null;
            goOn(next, pages);
            yield taken;
            guard.check(page, { size: count, first, all: taken.records }, next);
            if (next === null) return;
            token = next;
            continue;
          }
          const decoded = answers.responses.map(decode);
          const parts = decoded.map((values) => values.flatMap((value) => selector.extract(value)));
          const raw = parts.length === 1 ? (parts[0] ?? []) : parts.flat();
          const unread = border.size ? raw.filter((record) => !border.has(JSON.stringify(record))) : raw;
          const selected = selector.select(unread, asked.slice, state);
          const records = properties ? properties.join(selected) : selected;
          // Templates see the last record as it came out, and what was in it before.
          const last = raw.at(-1);
          const shown = records.length === raw.length ? records.at(-1) : undefined;
          const page: Page = {
            ...about,
            response,
            size: Math.max(...parts.map(({ length }) => length)),
            lastRecord: isRecord(last) ? (shown && shown !== last ? { ...last, ...shown } : last) : undefined,
            ...(isJson ? {} : { decoded: decoded.at(-1)?.[0] ?? {} }),
          };
          const next = stop(records) ? null : (paginator.next(page, token) ?? null);
          goOn(next, pages);
          yield records;
          guard.check(page, { size: raw.length, first: raw[0], all: () => raw }, next);
          if (next === null) return;
          token = next;
          border = new Set();
          count += raw.length;
          if (count < most) continue;
          // As many as the manifest trusts the vendor's pages to hold; where all have one cursor, only pages lead on.
          const left = split ? rest?.() : asked;
          if (!left) continue;
          asked = left;
          border = new Set(raw.map((record) => JSON.stringify(record)));
        } else asked = again(split ? rest : undefined, asked);
        if (!split && ++resets > MAX_RESETS)
          throw new MagicError("upstream_error", `pages had to begin anew more than ${MAX_RESETS} times`);
        guard = loopGuard();
        count = 0;
        token = paginator.first;
      }
    },
  };
}

// An answer that stands in a parent's record, as if the vendor had just given it.
function inRecord(answer: unknown): HttpResponse {
  const body = Buffer.from(JSON.stringify(answer));
  return { status: 200, headers: { "content-type": "application/json" }, body, url: "https://record.invalid/" };
}

// The vendor has no more pages for this slice: what is left of it is asked for, or, where it is not to be split, the whole again.
function again(rest: (() => Question | undefined) | undefined, asked: Question): Question {
  if (!rest) return asked;
  const left = rest();
  if (left) return left;
  throw new MagicError(
    "upstream_error",
    "the vendor's pages end before the slice does, and all records so far have the same cursor: there is no way on",
  );
}
