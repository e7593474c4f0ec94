// Reports that the vendor prepares: create a job, ask until it is done, read what it made.
import { isMagicError, MagicError } from "#contract/errors.ts";
import { untilAborted } from "#shared/abort.ts";
import { type Context, native, type Slice } from "../context.ts";
import { decoderOf } from "../http/decode.ts";
import { filePartsOf, partsDecoderOf } from "../http/decode-parts.ts";
import type { Exchange, SentRequest } from "../http/request.ts";
import { type Requester, requesterOf } from "../http/requester.ts";
import { responseVariables } from "../http/response.ts";
import { str } from "../jinja/repr.ts";
import { type Component, child, isRecord, list, manifestError, optionalChild, typeOf } from "../manifest/component.ts";
import { createTally, loopGuard, type Page, paginatorOf } from "./paginate.ts";
import { type DataRecord, extractorOf, type Selector } from "./records.ts";

const POLL_MS = 1000;
const MAX_POLL_MS = 30_000;
const TRIES = 3;
/** Before a job that the vendor did not take is asked for again. */
const UNTAKEN_MS = 5000;
const TIMEOUT_MINUTES = 60;
/** For ending a job that nobody waits for any more. */
const PARTING_MS = 5000;

type Status = "running" | "completed" | "failed" | "timeout" | "skipped";

/** No job: what the vendor refuses it with may be that it makes others just now. */
interface Untaken {
  readonly status: "untaken";
  readonly error: MagicError;
}

interface Job {
  readonly status: Status;
  /** What templates see of it: `creation_response` and `polling_response`. */
  readonly variables: Readonly<Record<string, unknown>>;
  /** The address that began it. */
  readonly begun: string;
  readonly polled: unknown;
}

type Stop = (records: readonly DataRecord[]) => boolean;

export interface AsyncRetriever {
  pages(slice: Slice, parts: unknown, state: unknown, stop: Stop): AsyncIterable<DataRecord[]>;
}

/**
 * The records are what the download holds: of `selector` only the filter and what follows it count, as in the reference. What cursors and
 * routers put into requests goes into none here: jobs are told of their slice by the templates of what creates them.
 */
export function asyncRetrieverOf(context: Context, component: Component, selector: Selector): AsyncRetriever {
  const create = requesterOf(context, child(component, "creation_requester"));
  const poll = requesterOf(context, child(component, "polling_requester"));
  const download = requesterOf(context, child(component, "download_requester"));
  const remove = optionalRequester(context, component, "delete_requester");
  const abort = optionalRequester(context, component, "abort_requester");
  const askTargets = optionalRequester(context, component, "download_target_requester");
  const decode = decoderOf(optionalChild(component, "decoder"));
  const inFile = optionalChild(component, "download_extractor");
  const isFile = inFile !== undefined && typeOf(inFile) === "ResponseToFileExtractor";
  const decodeFile = isFile
    ? filePartsOf(inFile)
    : partsDecoderOf(optionalChild(component, "download_decoder"), (message) => context.log("warn", message));
  const { extract } = extractorOf(context, (!isFile && inFile) || { type: "DpathExtractor", field_path: [] });
  const number = (field: string): number => Number(native(context, component, component[field] ?? 0)) || 0;
  const statuses = statusesOf(child(component, "status_mapping"));
  const statusOf = extractorOf(context, child(component, "status_extractor")).extract;
  const targets = optionalChild(component, "download_target_extractor");
  const targetsIn = targets && extractorOf(context, targets).extract;
  if (askTargets && !targetsIn) throw manifestError("AsyncRetriever.download_target_extractor is missing");
  const paginator = paginatorOf(context, optionalChild(component, "download_paginator"));

  // Templates see the job in the slice as well: `stream_slice.extra_fields['creation_response']`.
  const about = (
    slice: Slice,
    { variables, begun }: Pick<Job, "variables" | "begun">,
    more: Job["variables"] = {},
  ): Exchange => ({
    slice: { ...slice, extra: { ...slice.extra, ...variables, ...more } },
    variables: { ...variables, ...more },
    begun,
  });

  // What is in the way of tidying up must not cost the records.
  const tidy = async (requester: Requester | undefined, slice: Slice, job: Job): Promise<void> => {
    try {
      await requester?.send(about(slice, job));
    } catch (error) {
      context.signal.throwIfAborted();
      context.log("warn", `the job stays with the vendor: ${(error as Error).message}`);
    }
  };

  const runJob = async (slice: Slice, signal: AbortSignal): Promise<Job | Untaken> => {
    const created = await create.send({ slice }).catch(untaken);
    if ("status" in created) return created;
    if (!("response" in created)) return { status: "skipped", variables: {}, begun: "", polled: null };
    const answer = responseVariables(created.response);
    const begun = created.request().url;
    const variables = { creation_response: seen(answer["response"], answer["headers"], created.request) };
    try {
      return await untilAborted(ended(slice, begun, variables, signal), signal);
    } catch (error) {
      // Its run may be one that was told to stop, or another partition has failed.
      const parting = { ...context, signal: AbortSignal.timeout(PARTING_MS), sleep: () => Promise.reject(error) };
      const job: Job = { status: "timeout", variables, begun, polled: null };
      await tidy(optionalRequester(parting, component, "abort_requester"), slice, job);
      throw error;
    }
  };

  const ended = async (slice: Slice, begun: string, variables: Job["variables"], signal: AbortSignal): Promise<Job> => {
    const started = context.clock.monotonic();
    for (let wait = POLL_MS; ; wait = Math.min(wait * 1.5, MAX_POLL_MS)) {
      signal.throwIfAborted();
      const outcome = await poll.send(about(slice, { variables, begun }));
      if ("reset" in outcome || "tooMuch" in outcome)
        throw new MagicError("upstream_error", "a job has no pages that could begin anew, or be smaller");
      // An error that is ignored says no more than that it is not known yet how the job stands.
      const known = "response" in outcome;
      const response = known ? outcome.response : outcome.answer;
      const polled = known ? decode(response)[0] : responseVariables(response)["response"];
      const word = str(statusOf(polled)[0] ?? null);
      const status = statuses.get(word) ?? (known ? undefined : "running");
      if (!status) throw new MagicError("upstream_error", `the job's status '${word}' is not in the status_mapping`);
      const late = context.clock.monotonic() - started > (number("polling_job_timeout") || TIMEOUT_MINUTES) * 60_000;
      if (status === "running" && !late) {
        await context.sleep(wait);
        continue;
      }
      const { headers } = responseVariables(response);
      const polling_response = seen(polled, headers, known ? outcome.request : undefined);
      const end = status === "running" ? "timeout" : status;
      const job: Job = { status: end, variables: { ...variables, polling_response }, begun, polled };
      if (end === "timeout") await tidy(abort, slice, job);
      return job;
    }
  };

  // Begun anew where it failed, took too long, or was not taken. Undefined: there is nothing to read.
  const completed = async (slice: Slice): Promise<Job | undefined> => {
    for (let tries = 1; ; tries++) {
      const job = await context.jobs.run((signal) => runJob(slice, signal));
      if (job.status === "completed") return job;
      if (job.status === "skipped") return undefined;
      if (tries >= TRIES)
        throw job.status === "untaken"
          ? job.error
          : new MagicError("upstream_error", `the job ended as '${job.status}' ${TRIES} times`);
      if (job.status === "untaken") await context.sleep(UNTAKEN_MS);
      if (job.status === "failed") await context.sleep(number("failed_retry_wait_time_in_seconds") * 1000);
    }
  };

  /** Where the job's records are; undefined: the vendor's refusal to say is to be ignored. */
  const targetsOf = async (slice: Slice, job: Job): Promise<string[] | undefined> => {
    const answer = await askTargets?.send(about(slice, job));
    if (answer && !("response" in answer)) return undefined;
    return targetsIn ? targetsIn(answer ? decode(answer.response)[0] : job.polled).map(String) : [""];
  };

  async function* downloads(slice: Slice, job: Job, target: string, stop: Stop): AsyncGenerator<DataRecord[]> {
    const guard = loopGuard();
    for (let token: unknown = paginator.first; ; ) {
      const outcome = await download.send({
        ...about(slice, job, { download_target: target }),
        parts: paginator.parts(token),
        path: paginator.path(token),
      });
      if (!("response" in outcome)) return;
      const { response } = outcome;
      const tally = createTally();
      let records: DataRecord[] = [];
      for await (const values of decodeFile(response)) {
        const raw = values.flatMap(extract);
        tally.add(raw);
        records = selector.select(raw, slice, undefined);
        yield records;
      }
      const came = tally.came(response);
      const lastRecord = isRecord(tally.last) ? tally.last : undefined;
      const page: Page = { response, size: came.size, lastRecord };
      const next = stop(records) ? null : (paginator.next(page, token) ?? null);
      guard.check(page, came, next);
      if (next === null) return;
      token = next;
    }
  }

  return {
    async *pages(slice, _parts, _state, stop) {
      const job = await completed(slice);
      const targets = job && (await targetsOf(slice, job));
      if (!job || !targets) return;
      for (const target of targets) yield* downloads(slice, job, target, stop);
      await tidy(remove, slice, job);
    },
  };
}

function untaken(error: unknown): Untaken {
  if (isMagicError(error) && (error.code === "upstream_error" || error.code === "not_found"))
    return { status: "untaken", error };
  throw error;
}

// An answer as the templates of later requests see it: what it holds, and how it came.
function seen(value: unknown, headers: unknown, request: (() => SentRequest) | undefined): Record<string, unknown> {
  return { headers, ...(request && { request: request() }), ...(isRecord(value) ? value : {}) };
}

function optionalRequester(context: Context, component: Component, field: string): Requester | undefined {
  const inner = optionalChild(component, field);
  return inner && requesterOf(context, inner);
}

function statusesOf(mapping: Component): ReadonlyMap<string, Status> {
  const names = ["running", "completed", "failed", "timeout", "skipped"] as const;
  const words = names.flatMap((name) => list(mapping[name]).map((word) => [str(word), name] as const));
  const statuses = new Map(words);
  for (const [word, name] of words)
    if (statuses.get(word) !== name) throw manifestError(`AsyncRetriever.status_mapping has '${word}' twice`);
  return statuses;
}
