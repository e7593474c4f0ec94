// Tries a draft against the vendor: the first page as it comes, and whether a way of paging brings more.
import { runConnectorWorker } from "#client/connectors/worker.ts";
import { MagicError } from "#contract/errors.ts";
import { type Draft, manifestText } from "./draft.ts";
import { type Json, type Page, type Pagination, recordsAt } from "./findings.ts";

export type Config = Readonly<Record<string, unknown>>;

/** Throws what the request failed with: credentials_rejected, not_found, upstream_error... */
export async function firstPage(draft: Draft, config: Config, signal: AbortSignal): Promise<Page> {
  let page: Page | undefined;
  // What a manifest can be written for by hand is said where it is found out.
  const explained = (error: unknown): never => {
    if (!(error instanceof MagicError) || !error.message.includes("is not JSON")) throw error;
    const advice = "only JSON is looked at here; for CSV, XML or lines of JSON, write a manifest with a decoder";
    throw new MagicError("upstream_error", `${error.message.split("\n")[0]}: ${advice} (docs/connectors.md).`);
  };
  const manifest = manifestText({ ...draft, recordsPath: [], pagination: { type: "none" }, cursor: null });
  await runConnectorWorker(
    { type: "probe", manifest, config },
    {
      signal,
      onReply: (reply) => {
        if (reply.type === "page") page = reply;
      },
    },
  ).catch(explained);
  if (page === undefined) throw new MagicError("internal", "the connector's process told no page");
  return page;
}

/** The records of two pages by the first way that brings more than one page has; null where none does. */
export async function morePages(
  draft: Draft,
  ways: readonly Pagination[],
  page: Page,
  config: Config,
  signal: AbortSignal,
): Promise<{ readonly pagination: Pagination; readonly records: readonly Json[] } | null> {
  const identity = (record: Json): string =>
    JSON.stringify(draft.primaryKey.length > 0 ? draft.primaryKey.map((field) => record[field]) : record);
  const first = new Set(recordsAt(page.body, draft.recordsPath).map(identity));
  for (const pagination of ways) {
    const records = await read({ ...draft, pagination, cursor: null }, config, first.size * 2, signal).catch(
      (error: unknown) => {
        // A way that the vendor refuses is none; who interrupts wants no other.
        if (signal.aborted) throw error;
        return [];
      },
    );
    const came = new Set(records.map(identity));
    // A way that begins at another page than the first would leave its records out.
    if (came.size > first.size && [...first].every((each) => came.has(each))) return { pagination, records };
  }
  return null;
}

async function read(draft: Draft, config: Config, limit: number, signal: AbortSignal): Promise<Json[]> {
  const records: Json[] = [];
  await runConnectorWorker(
    { type: "read", manifest: manifestText(draft), config, stream: draft.stream, limit },
    {
      signal,
      onReply: (reply) => {
        if (reply.type === "records") records.push(...reply.records);
      },
    },
  );
  return records;
}
