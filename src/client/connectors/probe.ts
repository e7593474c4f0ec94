// Tries a draft against the vendor: the first page as it comes, and whether a way of paging brings more.
import { runConnectorWorker } from "#client/connectors/worker.ts";
import { MagicError } from "#contract/errors.ts";
import { type Draft, manifestText } from "./draft.ts";
import { type Json, type Page, type Pagination, recordsAt } from "./findings.ts";

export type Config = Readonly<Record<string, unknown>>;

/** How the vendor is asked. */
export interface Asking {
  readonly config: Config;
  readonly allow_private: readonly string[];
  readonly signal: AbortSignal;
}

/** Throws what the request failed with: credentials_rejected, not_found, upstream_error... */
export async function firstPage(draft: Draft, { signal, ...asking }: Asking): Promise<Page> {
  let page: Page | undefined;
  // What a manifest can be written for by hand is said where it is found out.
  const explained = (error: unknown): never => {
    if (!(error instanceof MagicError) || !error.message.includes("is not JSON")) throw error;
    const advice = "only JSON is looked at here; for CSV, XML or lines of JSON, write a manifest with a decoder";
    throw new MagicError("upstream_error", `${error.message.split("\n")[0]}: ${advice} (docs/connectors.md).`);
  };
  const manifest = manifestText({ ...draft, recordsPath: [], pagination: { type: "none" }, cursor: null });
  await runConnectorWorker(
    { type: "probe", manifest, ...asking },
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
  asking: Asking,
): Promise<{ readonly pagination: Pagination; readonly records: readonly Json[] } | null> {
  const identity = (record: Json): string =>
    JSON.stringify(draft.primaryKey.length > 0 ? draft.primaryKey.map((field) => record[field]) : record);
  const first = new Set(recordsAt(page.body, draft.recordsPath).map(identity));
  for (const pagination of ways) {
    const records = await read({ ...draft, pagination, cursor: null }, asking, first.size * 2).catch(
      (error: unknown) => {
        // A way that the vendor refuses is none; who interrupts wants no other.
        if (asking.signal.aborted) throw error;
        return [];
      },
    );
    const came = new Set(records.map(identity));
    // A way that begins at another page than the first would leave its records out.
    if (came.size > first.size && [...first].every((each) => came.has(each))) return { pagination, records };
  }
  return null;
}

async function read(draft: Draft, { signal, ...asking }: Asking, limit: number): Promise<Json[]> {
  const records: Json[] = [];
  await runConnectorWorker(
    { type: "read", manifest: manifestText(draft), ...asking, stream: draft.stream, limit },
    {
      signal,
      onReply: (reply) => {
        if (reply.type === "records") records.push(...reply.records);
      },
    },
  );
  return records;
}
