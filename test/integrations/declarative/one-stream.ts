// A vendor of one's own, a manifest with one stream `items`, and reading it.
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { text } from "node:stream/consumers";
import { Agent } from "undici";
import { onTestFinished } from "vitest";
import { createConnector } from "#daemon/integrations/connectors/declarative/connector.ts";
import type { Clock } from "#shared/clock.ts";
import { listen } from "#test/listen.ts";

type Handler = (request: IncomingMessage & { body: string; at: URL }, response: ServerResponse) => void;

export async function vendor(handler: Handler): Promise<string> {
  const server = createServer((request, response) => {
    void text(request).then((body) =>
      handler(Object.assign(request, { body, at: new URL(request.url ?? "/", "http://vendor") }), response),
    );
  });
  const { origin, close } = await listen(server);
  onTestFinished(close);
  return origin;
}

export const json = (
  response: ServerResponse,
  body: unknown,
  status = 200,
  headers: Record<string, string> = {},
): void => {
  response.writeHead(status, { "content-type": "application/json", ...headers });
  response.end(JSON.stringify(body));
};

/** Midnight of a date. */
export const day = (date: string): string => `${date}T00:00:00Z`;
/** An incremental stream of January and February 2026. */
export const cursor = {
  type: "DatetimeBasedCursor",
  cursor_field: "at",
  datetime_format: "%Y-%m-%dT%H:%M:%SZ",
  start_datetime: day("2026-01-01"),
  end_datetime: day("2026-03-01"),
  start_time_option: { type: "RequestOption", inject_into: "request_parameter", field_name: "since" },
};

export interface StreamOptions {
  readonly retriever?: Record<string, unknown>;
  readonly requester?: Record<string, unknown>;
  readonly paginator?: Record<string, unknown>;
  readonly sync?: Record<string, unknown>;
  /** Of the stream's schema. */
  readonly properties?: Record<string, unknown>;
  readonly transformations?: readonly Record<string, unknown>[];
  /** What the configuration becomes, and must be. */
  readonly rules?: Record<string, unknown>;
}

export function manifest(
  origin: string,
  { retriever = {}, requester = {}, paginator, sync, properties = {}, transformations = [], rules }: StreamOptions = {},
): string {
  return JSON.stringify({
    version: "6.0.0",
    type: "DeclarativeSource",
    check: { type: "CheckStream", stream_names: ["items"] },
    streams: [
      {
        type: "DeclarativeStream",
        name: "items",
        primary_key: ["id"],
        retriever: {
          type: "SimpleRetriever",
          requester: { type: "HttpRequester", url_base: origin, path: "/items", http_method: "GET", ...requester },
          record_selector: { type: "RecordSelector", extractor: { type: "DpathExtractor", field_path: ["items"] } },
          ...(paginator ? { paginator: { type: "DefaultPaginator", ...paginator } } : {}),
          ...retriever,
        },
        ...(sync ? { incremental_sync: sync } : {}),
        transformations,
        schema_loader: { type: "InlineSchemaLoader", schema: { type: "object", properties } },
      },
    ],
    spec: {
      type: "Spec",
      connection_specification: { type: "object", properties: {} },
      ...(rules ? { config_normalization_rules: { type: "ConfigNormalizationRules", ...rules } } : {}),
    },
  });
}

export async function read(
  source: string,
  options: {
    /** Which one, where it is not `items`. */
    stream?: string;
    state?: unknown;
    config?: Record<string, unknown>;
    timeoutMs?: number;
    concurrency?: number;
    waits?: number[];
    onState?: (state: unknown) => void;
    onRecords?: (records: Record<string, unknown>[]) => void;
    rewrite?: string;
    /** Warnings. */
    told?: string[];
  } = {},
): Promise<{ records: Record<string, unknown>[]; state: unknown }> {
  const dispatcher = new Agent();
  onTestFinished(() => dispatcher.close());
  const connector = createConnector(source, {
    config: options.config ?? {},
    dispatcher,
    ...(options.rewrite === undefined ? {} : { rewrite: options.rewrite }),
    ...(options.timeoutMs === undefined ? {} : { timeoutMs: options.timeoutMs }),
    ...(options.concurrency === undefined ? {} : { concurrency: options.concurrency }),
    // Who counts waits does not sit them through.
    ...(options.waits ? skipping(options.waits) : {}),
    log: (level, message) => void (level === "warn" && options.told?.push(message)),
    signal: AbortSignal.timeout(60_000),
  });
  const records: Record<string, unknown>[] = [];
  let state: unknown;
  for await (const event of (await connector.stream(options.stream ?? "items")).read(options.state)) {
    if (event.type === "records") {
      records.push(...event.records);
      options.onRecords?.(event.records);
    } else {
      state = event.state;
      options.onState?.(state);
    }
  }
  return { records, state };
}

function skipping(waits: number[]): { clock: Clock; sleep: (ms: number) => Promise<void> } {
  let skipped = 0;
  return {
    clock: { now: () => Date.now() + skipped, monotonic: () => performance.now() + skipped },
    sleep: async (ms) => {
      skipped += ms;
      waits.push(ms / 1000);
    },
  };
}
