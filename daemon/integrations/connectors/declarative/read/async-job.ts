// Reports that the vendor prepares: create a job, ask until it is done, read what it made.
import { MagicError } from "#contract/errors.ts";
import { type Context, native, type Slice } from "../context.ts";
import { decoderOf } from "../http/decode.ts";
import type { RequestParts } from "../http/options.ts";
import { type Requester, requesterOf } from "../http/requester.ts";
import { responseVariables } from "../http/response.ts";
import {
  type Component,
  child,
  list,
  optionalChild,
  optionalText,
  refuseCustom,
  typeOf,
} from "../manifest/component.ts";
import { dpath, dpathOne } from "./dpath.ts";
import { loopGuard, type Page, paginatorOf } from "./paginate.ts";
import type { DataRecord, Selector } from "./records.ts";

const POLL_MS = 1000;
const MAX_POLL_MS = 30_000;
const TRIES = 3;

type Status = "running" | "completed" | "failed" | "timeout" | "skipped";

export interface AsyncRetriever {
  pages(
    slice: Slice,
    parts: RequestParts,
    state: unknown,
    stop: (records: readonly DataRecord[]) => boolean,
  ): AsyncIterable<DataRecord[]>;
}

export function asyncRetrieverOf(context: Context, component: Component, selector: Selector): AsyncRetriever {
  const create = requesterOf(context, child(component, "creation_requester"));
  const poll = requesterOf(context, child(component, "polling_requester"));
  const download = requesterOf(context, child(component, "download_requester"));
  const remove = optionalRequester(context, component, "delete_requester");
  const abort = optionalRequester(context, component, "abort_requester");
  const askTargets = optionalRequester(context, component, "download_target_requester");
  const decode = decoderOf(optionalChild(component, "decoder"));
  const extractor = optionalChild(component, "download_extractor");
  const fileDecoder = optionalChild(component, "download_decoder");
  const decodeFile = decoderOf(
    fileDecoder ?? (extractor && typeOf(extractor) === "ResponseToFileExtractor" ? { type: "CsvDecoder" } : undefined),
  );
  const minutes = Number(native(context, component, component["polling_job_timeout"] ?? 30));
  const statuses = statusesOf(child(component, "status_mapping"));
  const statusPath = pathOf(child(component, "status_extractor"));
  const targets = optionalChild(component, "download_target_extractor");
  const paginator = paginatorOf(context, optionalChild(component, "download_paginator"));

  const runJob = async (
    slice: Slice,
    parts: RequestParts,
  ): Promise<{ status: Status; variables: Record<string, unknown>; polled: unknown }> => {
    const created = await create.send({ slice, parts });
    if (!("response" in created)) return { status: "skipped", variables: {}, polled: null };
    const creation = responseVariables(created.response);
    const started = context.clock.monotonic();
    for (let wait = POLL_MS; ; wait = Math.min(wait * 1.5, MAX_POLL_MS)) {
      const variables = { creation_response: { ...(creation["response"] as object), headers: creation["headers"] } };
      const answer = await poll.send({ slice, variables });
      if (!("response" in answer)) return { status: "skipped", variables, polled: null };
      const polled = decode(answer.response)[0];
      const word = String(dpathOne(polled, statusPath) ?? "");
      const status = statuses.get(word);
      if (!status) throw new MagicError("upstream_error", `the job's status '${word}' is not in the status_mapping`);
      if (status !== "running") {
        const { headers } = responseVariables(answer.response);
        const polling_response = { ...(polled as object), headers };
        return { status, variables: { ...variables, polling_response }, polled };
      }
      if (context.clock.monotonic() - started > minutes * 60_000) {
        await abort?.send({ slice, variables });
        return { status: "timeout", variables, polled };
      }
      await context.sleep(wait);
    }
  };

  return {
    async *pages(slice, parts, _state, stop) {
      let job = await runJob(slice, parts);
      for (let tries = 1; (job.status === "failed" || job.status === "timeout") && tries < TRIES; tries++)
        job = await runJob(slice, parts);
      if (job.status === "skipped") return;
      if (job.status !== "completed")
        throw new MagicError("upstream_error", `the job ended as '${job.status}' ${TRIES} times`);
      let source = job.polled;
      if (askTargets) {
        const answer = await askTargets.send({ slice, variables: job.variables });
        if (!("response" in answer)) return;
        source = decode(answer.response)[0];
      }
      const urls = targets ? dpath(source, pathOf(targets)).flatMap(list).map(String) : [""];
      for (const target of urls) {
        const guard = loopGuard();
        for (let token: unknown = paginator.first; ; ) {
          const outcome = await download.send({
            slice,
            parts: paginator.parts(token),
            path: paginator.path(token),
            variables: { ...job.variables, download_target: target },
          });
          if (!("response" in outcome)) break;
          const decoded = decodeFile(outcome.response);
          const raw =
            extractor && typeOf(extractor) !== "ResponseToFileExtractor"
              ? decoded.flatMap((value) => dpath(value, pathOf(extractor)).flatMap(list))
              : decoded;
          const records = selector.select(
            raw.flatMap((value) => selector.extract(value)),
            slice,
            undefined,
          );
          yield records;
          const page: Page = { response: outcome.response, size: raw.length, lastRecord: records.at(-1) };
          const next = stop(records) ? null : (paginator.next(page, token) ?? null);
          guard.check(page, { size: raw.length, first: raw[0], all: () => raw }, next);
          if (next === null) break;
          token = next;
        }
      }
      await remove?.send({ slice, variables: job.variables });
    },
  };
}

function optionalRequester(context: Context, component: Component, field: string): Requester | undefined {
  const inner = optionalChild(component, field);
  return inner && requesterOf(context, inner);
}

function pathOf(extractor: Component): string[] {
  if (typeOf(extractor) !== "DpathExtractor") return refuseCustom(extractor);
  return list(extractor["field_path"]).map(String);
}

function statusesOf(mapping: Component): ReadonlyMap<string, Status> {
  const names = ["running", "completed", "failed", "timeout", "skipped"] as const;
  return new Map(
    names.flatMap((name) =>
      optionalText(mapping, name)
        ? [[String(mapping[name]), name] as const]
        : list(mapping[name]).map((word) => [String(word), name] as const),
    ),
  );
}
