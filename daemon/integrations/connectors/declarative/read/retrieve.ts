// One slice of a stream, page after page.
import { MagicError } from "#contract/errors.ts";
import { type Context, emptySlice, type Slice } from "../context.ts";
import type { Outcome } from "../http/attempt.ts";
import type { HttpResponse } from "../http/client.ts";
import { emptyParts, merge, type RequestParts } from "../http/options.ts";
import { requesterOf } from "../http/requester.ts";
import { type Component, child, manifestError, optionalChild, refuseCustom, typeOf } from "../manifest/component.ts";
import { asyncRetrieverOf } from "./async-job.ts";
import { pageReaderOf, type Take, type TakenPage } from "./page-reader.ts";
import { pageSizeOf } from "./page-size.ts";
import { loopGuard, paginatorOf } from "./paginate.ts";
import { queryPropertiesOf } from "./query-properties.ts";
import { type DataRecord, type LoadSchema, type Selector, selectorOf } from "./records.ts";

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

/** What a page took: one answer, or one for each group of fields that was asked for. */
interface Answered {
  readonly responses: readonly HttpResponse[];
  /** Records a page that were asked for, where that is not what the manifest says. */
  readonly asked: number | undefined;
}

type Answers = Answered | Exclude<Outcome, { readonly response: HttpResponse }>;

/** A vendor may say so often in one slice that pages must begin anew. */
const MAX_RESETS = 5;

/** @param schema of the stream whose retriever it is. */
export function retrieverOf(
  context: Context,
  component: Component,
  selector: Selector,
  schema: LoadSchema = async () => undefined,
): Retriever {
  if (typeOf(component) === "AsyncRetriever") return asyncRetrieverOf(context, component, selector);
  if (typeOf(component) !== "SimpleRetriever") return refuseCustom(component);
  const requester = requesterOf(context, child(component, "requester"), context.answers);
  const properties = queryPropertiesOf(
    context,
    child(component, "requester"),
    (inner) => lookupOf(context, inner).pages<never>(emptySlice, emptyParts(), undefined, () => false),
    schema,
  );
  const paginator = paginatorOf(context, optionalChild(component, "paginator"));
  const onlyFirst = component["ignore_stream_slicer_parameters_on_paginated_requests"] === true;
  const reset = optionalChild(component, "pagination_reset");
  const reduction = optionalChild(component, "page_size_reduction");
  if (reduction && !paginator.resizes)
    throw manifestError("page_size_reduction is for offsets and cursors, by page_size_option");
  const split = reset?.["action"] === "SPLIT_USING_CURSOR";
  const lost = (message: string): void => context.log("warn", message);
  const reader = pageReaderOf(optionalChild(component, "decoder"), selector, properties, reset !== undefined, lost);
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
          const { page, given, came } = yield* reader.read(about, answers.responses, state, border, take);
          const stopped = Array.isArray(given) && stop(given);
          const next = stopped ? null : (paginator.next(page, token) ?? null);
          goOn(next, pages);
          yield given;
          guard.check(page, came, next);
          count += came.size;
          // As many as the manifest trusts the vendor's pages to hold: their end need not be the slice's. Where all have one cursor, only
          // pages lead on.
          const full = count >= most && !stopped;
          const whole = next === null ? undefined : question;
          const left = full ? (split ? rest?.() : whole) : undefined;
          if (!left && next === null) return;
          token = next;
          border = new Set();
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

/** The retriever of what is no stream's: names, schemas, values for templates. Its records go through its selector alone. */
export function lookupOf(context: Context, component: Component): Retriever {
  return retrieverOf(
    context,
    component,
    selectorOf(context, child(component, "record_selector"), [], () => undefined),
  );
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
