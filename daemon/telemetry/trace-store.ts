// Finished spans, stored in batches and found again by their request.
import type { Environment } from "#contract/protocol.ts";
import { sortSpans } from "./span-order.ts";
import type { EndedSpan, SpanRecord, Tracer } from "./trace.ts";

/** daemon/storage/repositories/trace.ts satisfies it. */
export interface TraceUnits {
  /** Rows of request id, time and spans, as JSON. */
  append(args: { readonly rows: string }): Promise<void>;
  find(args: { readonly requestId: string }): Promise<readonly string[]>;
}

export interface TraceStore {
  /** Stores a batch; a row for each request in it. */
  store(spans: readonly EndedSpan[]): Promise<void>;
  /** Every span of a request, stored or still in memory, parents first; empty for an unknown one. With an environment only those of its callers. */
  find(requestId: string, environment?: Environment): Promise<readonly SpanRecord[]>;
}

/** Requests of one batch (a second) whose spans are stored; under more load the others are found in memory alone, while held there. */
const MAX_STORED = 250;

export function createTraceStore(units: TraceUnits, tracer: Pick<Tracer, "spansOf">): TraceStore {
  return {
    async store(spans) {
      const all = [...Map.groupBy(spans, ({ requestId }) => requestId)];
      const failed =
        all.length > MAX_STORED ? all.filter(([, own]) => own.some(({ status }) => status === "error")) : [];
      const rows = [...new Map([...failed, ...all].slice(0, MAX_STORED))].map(([requestId, own]) => {
        const records = own.map((span) => span.record());
        return [requestId, records[0]?.started_at ?? "", JSON.stringify(records)];
      });
      await units.append({ rows: JSON.stringify(rows) });
    },
    async find(requestId, environment) {
      const stored = (await units.find({ requestId })).flatMap((text) => JSON.parse(text) as SpanRecord[]);
      const found = new Map(stored.map((span) => [span.span_id, span]));
      for (const span of tracer.spansOf(requestId)) found.set(span.span_id, span);
      const sorted = sortSpans([...found.values()]);
      return environment === undefined ? sorted : ofEnvironment(sorted, environment);
    },
  };
}

// Callers choose request ids: two environments may have the same one. The span that a request began with says whose it is, those
// below it are its own, and while it has not ended nobody's. Parents stand before children.
function ofEnvironment(sorted: readonly SpanRecord[], environment: Environment): SpanRecord[] {
  const visible = new Set<string>();
  return sorted.filter(({ span_id, parent_span_id, attributes }) => {
    const own = attributes["environment"];
    const seen = own === undefined ? parent_span_id !== null && visible.has(parent_span_id) : own === environment;
    if (seen) visible.add(span_id);
    return seen;
  });
}
