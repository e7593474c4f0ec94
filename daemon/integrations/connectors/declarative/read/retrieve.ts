// One slice of a stream, page after page.
import { MagicError } from "#contract/errors.ts";
import { type Context, emptySlice, type Slice } from "../context.ts";
import type { Outcome } from "../http/attempt.ts";
import type { HttpResponse } from "../http/client.ts";
import { decoderOf } from "../http/decode.ts";
import { type DecodeParts, rowsDecoderOf } from "../http/decode-parts.ts";
import { emptyParts, merge, type RequestParts } from "../http/options.ts";
import { requesterOf } from "../http/requester.ts";
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
import { createTally, loopGuard, type Page, paginatorOf } from "./paginate.ts";
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
    take?: Take<Taken>,
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
interface Answered {
  readonly responses: readonly HttpResponse[];
  /** Records a page that were asked for, where that is not what the manifest says. */
  readonly asked: number | undefined;
}

type Answers = Answered | Exclude<Outcome, { readonly response: HttpResponse }>;

/** What is known of a page before its records are looked at. */
type About = Pick<Page, "response" | "asked"> & { readonly slice: Slice };

type Take<Taken> = (response: HttpResponse, path: readonly string[]) => Taken | null;

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
  // Fields that come in several answers, and pages that begin anew, are put together of whole ones.
  const inRows = properties || reset ? null : rowsDecoderOf(decoder);
  const isJson = !decoder || typeOf(decoder) === "JsonDecoder";
  const plain = isJson && !properties && !reset ? selector.plain : null;
  const most = Number((reset && optionalChild(reset, "limits")?.["number_of_records"]) ?? Number.POSITIVE_INFINITY);

  async function ask(
    { slice, parts }: Question,
    token: unknown,
    asked: Answered["asked"],
    state: unknown,
  ): Promise<Answers> {
    const paged = token !== null && token !== undefined;
    const responses: HttpResponse[] = [];
    for (const names of properties ? await properties.chunks() : [undefined]) {
      const outcome = await requester.send({
        slice: names ? { ...slice, extra: { ...slice.extra, query_properties: names } } : slice,
        path: paginator.path(token),
        parts: merge(onlyFirst && paged ? emptyParts() : parts, paginator.parts(token, asked)),
        variables: { next_page_token: paged ? { next_page_token: token } : null, stream_state: state ?? {} },
      });
      if (!("response" in outcome)) return outcome;
      responses.push(outcome.response);
    }
    return { responses, asked };
  }

  // A page that goes out as it came.
  function taken<Taken extends TakenPage>(about: About, take: Take<Taken>, path: readonly string[]) {
    const given = take(about.response, path);
    if (!given) return null;
    const { count: size, first, last: lastRecord } = given;
    return { page: { ...about, size, lastRecord }, given, came: { size, first, all: given.records } };
  }

  // All parts of a page but the last, which is told with what the page was.
  async function* readInRows(about: About, decodeRows: DecodeParts, state: unknown) {
    const tally = createTally();
    let given: DataRecord[] | undefined;
    let decoded: unknown;
    let lastRecord: Page["lastRecord"];
    for await (const values of decodeRows(about.response)) {
      if (given) yield given;
      decoded ??= values[0];
      const raw = values.flatMap((value) => selector.extract(value));
      tally.add(raw);
      given = selector.select(raw, about.slice, state);
      if (raw.length > 0) lastRecord = lastOf(raw, given);
    }
    const came = tally.came(about.response);
    const page: Page = { ...about, size: came.size, lastRecord, decoded: decoded ?? {} };
    return { page, given: given ?? [], came };
  }

  /** @param border the records that another page began with. */
  function selected(about: About, answered: Answered, state: unknown, border: ReadonlySet<string>) {
    const decoded = answered.responses.map(decode);
    const extracted = decoded.map((values) => values.flatMap((value) => selector.extract(value)));
    const came = extracted.length === 1 ? (extracted[0] ?? []) : extracted.flat();
    const unread = border.size ? came.filter((record) => !border.has(JSON.stringify(record))) : came;
    const wanted = selector.select(unread, about.slice, state);
    const given = properties ? properties.join(wanted) : wanted;
    const page: Page = {
      ...about,
      size: Math.max(...extracted.map(({ length }) => length)),
      lastRecord: lastOf(came, given),
      ...(isJson ? {} : { decoded: decoded.at(-1)?.[0] ?? {} }),
    };
    return { page, given, came: { size: came.length, first: came[0], all: () => came } };
  }

  return {
    async *pages(slice, parts, state, stop, rest, embedded, take) {
      let question: Question = { slice, parts };
      let guard = loopGuard();
      let resets = 0;
      let count = 0;
      /** The page before pages began anew: the first one after it begins with the same records. */
      let border: ReadonlySet<string> = new Set();
      const size = pageSizeOf(context, reduction, paginator.pageSize);
      let ahead: Promise<Answers> | undefined =
        embedded && Promise.resolve({ responses: [inRecord(embedded.answer)], asked: undefined });
      // Who has taken a page and asks for the second will want the third: it is fetched while this one is worked on.
      const goOn = (next: unknown, pages: number): void => {
        if (next === null || pages === 1 || reset || !context.readsAhead) return;
        ahead = ask(question, next, size.now, state);
        ahead.catch(() => {});
      };
      for (let token: unknown = paginator.first, pages = 1; ; pages++) {
        const answers: Answers = await (ahead ?? ask(question, token, size.now, state));
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
        if ("reset" in answers) question = again(split ? rest : undefined, question);
        else {
          size.succeeded();
          const response = answers.responses.at(-1) as HttpResponse;
          const about = { slice: question.slice, asked: answers.asked, response };
          const { page, given, came } = inRows
            ? yield* readInRows(about, inRows, state)
            : (plain && take && taken(about, take, plain)) || selected(about, answers, state, border);
          const next = Array.isArray(given) && stop(given) ? null : (paginator.next(page, token) ?? null);
          goOn(next, pages);
          yield given;
          guard.check(page, came, next);
          if (next === null) return;
          token = next;
          border = new Set();
          count += came.size;
          if (count < most) continue;
          // As many as the manifest trusts the vendor's pages to hold; where all have one cursor, only pages lead on.
          const left = split ? rest?.() : question;
          if (!left) continue;
          question = left;
          border = new Set(came.all().map((record) => JSON.stringify(record)));
        }
        if (!split && ++resets > MAX_RESETS)
          throw new MagicError("upstream_error", `pages had to begin anew more than ${MAX_RESETS} times`);
        guard = loopGuard();
        count = 0;
        token = paginator.first;
      }
    },
  };
}

// Templates see the last record as it came out, and what was in it before.
function lastOf(came: readonly unknown[], given: readonly DataRecord[]): Page["lastRecord"] {
  const last = came.at(-1);
  const shown = given.length === came.length ? given.at(-1) : undefined;
  if (!isRecord(last)) return undefined;
  return shown && shown !== last ? { ...last, ...shown } : last;
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
