// One slice of a stream, page after page.
import type { Context, Slice } from "../context.ts";
import { decoderOf } from "../http/decode.ts";
import { merge, type RequestParts } from "../http/options.ts";
import { requesterOf } from "../http/requester.ts";
import { type Component, child, isRecord, optionalChild, refuseCustom, typeOf } from "../manifest/component.ts";
import { asyncRetrieverOf } from "./async-job.ts";
import { loopGuard, type Page, paginatorOf } from "./paginate.ts";
import type { DataRecord, Selector } from "./records.ts";

export interface Retriever {
  /** The records of each page, as the selector gives them. `stop` is asked after every page. */
  pages(
    slice: Slice,
    parts: RequestParts,
    state: unknown,
    stop: (records: readonly DataRecord[]) => boolean,
  ): AsyncIterable<DataRecord[]>;
}

export function retrieverOf(context: Context, component: Component, selector: Selector): Retriever {
  if (typeOf(component) === "AsyncRetriever") return asyncRetrieverOf(context, component, selector);
  if (typeOf(component) !== "SimpleRetriever") return refuseCustom(component);
  const requester = requesterOf(context, child(component, "requester"));
  const decode = decoderOf(optionalChild(component, "decoder"));
  const paginator = paginatorOf(context, optionalChild(component, "paginator"));
  const onlyFirst = component["ignore_stream_slicer_parameters_on_paginated_requests"] === true;
  return {
    async *pages(slice, parts, state, stop) {
      const guard = loopGuard();
      let resets = 0;
      for (let token: unknown = paginator.first; ; ) {
        const paged = token !== null && token !== undefined;
        const exchange = {
          slice,
          path: paginator.path(token),
          parts: merge(
            onlyFirst && paged ? { params: {}, headers: {}, form: {}, json: {} } : parts,
            paginator.parts(token),
          ),
          variables: { next_page_token: paged ? { next_page_token: token } : null, stream_state: state ?? {} },
        };
        const outcome = await requester.send(exchange);
        if ("ignored" in outcome) {
          if (outcome.ignored) context.log("info", outcome.ignored);
          return;
        }
        if ("reset" in outcome) {
          if (++resets > 5) return;
          token = paginator.first;
          continue;
        }
        const raw = decode(outcome.response).flatMap((value) => selector.extract(value));
        const records = selector.select(raw, slice, state);
        yield records;
        const last = raw.at(-1);
        const page: Page = {
          response: outcome.response,
          size: raw.length,
          lastRecord: isRecord(last) ? last : undefined,
        };
        const next = stop(records) ? null : (paginator.next(page, token) ?? null);
        guard.check(page, raw, next);
        if (next === null) return;
        token = next;
      }
    },
  };
}
