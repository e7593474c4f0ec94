// Spans of a request: kept per request_id for GET /v1/traces/:request_id and handed to a sink in batches, to be stored.
// Ids and the traceparent header follow W3C Trace Context (level 1, section 3.2).

import { type Clock, rfc3339, systemClock } from "#shared/clock.ts";
import { randomHex } from "#shared/ids.ts";

export type Attributes = Readonly<Record<string, string | number | boolean | null>>;

/** A finished span, as stored and as answered. */
export interface SpanRecord {
  readonly request_id: string;
  readonly trace_id: string;
  readonly span_id: string;
  readonly parent_span_id: string | null;
  readonly name: string;
  readonly started_at: string;
  readonly duration_ms: number;
  readonly status: "ok" | "error";
  readonly attributes: Attributes;
}

export interface Span {
  readonly requestId: string;
  readonly traceId: string;
  readonly spanId: string;
  /** The header value by which a call made inside this span names it as its parent. */
  readonly traceparent: string;
  set(attributes: Attributes): void;
  child(name: string, attributes?: Attributes): Span;
  /** Ends the span; a second call does nothing. */
  end(status?: "ok" | "error", attributes?: Attributes): void;
}

export interface SpanStart {
  readonly requestId: string;
  /** An incoming traceparent header; ignored when malformed. */
  readonly traceparent?: string | undefined;
  readonly parent?: Span | undefined;
  readonly attributes?: Attributes;
}

export interface Tracer {
  start(name: string, options: SpanStart): Span;
  /** The finished spans of a request that are still held in memory, in the order in which they began. */
  spansOf(requestId: string): readonly SpanRecord[];
  /** Hands finished spans on in batches, about once a second; replaces an earlier sink. */
  onBatch(sink: (spans: readonly SpanRecord[]) => Promise<void>): void;
  flush(): Promise<void>;
}

const MAX_REQUESTS = 2_000;
const MAX_SPANS_PER_REQUEST = 200;
const MAX_BATCH = 5_000;

export function createTracer(options: { readonly clock?: Clock; readonly intervalMs?: number } = {}): Tracer {
  const { clock = systemClock, intervalMs = 1_000 } = options;
  const byRequest = new Map<string, SpanRecord[]>();
  let batch: SpanRecord[] = [];
  let sink: ((spans: readonly SpanRecord[]) => Promise<void>) | undefined;
  let timer: NodeJS.Timeout | undefined;

  const keep = (span: SpanRecord) => {
    let spans = byRequest.get(span.request_id);
    if (!spans) {
      spans = [];
      byRequest.set(span.request_id, spans);
      if (byRequest.size > MAX_REQUESTS) byRequest.delete(byRequest.keys().next().value as string);
    }
    if (spans.length >= MAX_SPANS_PER_REQUEST) return;
    spans.push(span);
    if (!sink || batch.length >= MAX_BATCH) return;
    batch.push(span);
    timer ??= setTimeout(() => void flush(), intervalMs).unref();
  };

  const flush = async (): Promise<void> => {
    clearTimeout(timer);
    timer = undefined;
    const spans = batch;
    batch = [];
    // A batch that cannot be stored is given up: traces must not fill the memory of a daemon whose disk is full.
    if (spans.length > 0) await sink?.(spans).catch(() => undefined);
  };

  const start = (name: string, from: SpanStart): Span => {
    const incoming = from.parent ? undefined : parseTraceparent(from.traceparent);
    const traceId = from.parent?.traceId ?? incoming?.traceId ?? randomHex(16);
    const parentId = from.parent?.spanId ?? incoming?.spanId ?? null;
    const spanId = randomHex(8);
    const wall = clock.now();
    const began = clock.monotonic();
    let attributes: Record<string, string | number | boolean | null> = { ...from.attributes };
    let ended = false;
    const span: Span = {
      requestId: from.requestId,
      traceId,
      spanId,
      traceparent: `00-${traceId}-${spanId}-01`,
      set(more) {
        attributes = { ...attributes, ...more };
      },
      child: (childName, childAttributes = {}) =>
        start(childName, { requestId: from.requestId, parent: span, attributes: childAttributes }),
      end(status = "ok", more = {}) {
        if (ended) return;
        ended = true;
        keep({
          request_id: from.requestId,
          trace_id: traceId,
          span_id: spanId,
          parent_span_id: parentId,
          name,
          started_at: rfc3339(wall),
          duration_ms: Math.round((clock.monotonic() - began) * 1000) / 1000,
          status,
          attributes: { ...attributes, ...more },
        });
      },
    };
    return span;
  };

  return {
    start,
    spansOf: (requestId) =>
      [...(byRequest.get(requestId) ?? [])].sort((a, b) =>
        a.started_at < b.started_at ? -1 : a.started_at > b.started_at ? 1 : b.duration_ms - a.duration_ms,
      ),
    onBatch(next) {
      sink = next;
    },
    flush,
  };
}

/** The ids in a traceparent header, or undefined when it is not well-formed. */
export function parseTraceparent(value: string | undefined): { traceId: string; spanId: string } | undefined {
  const match = /^(?!ff)[0-9a-f]{2}-([0-9a-f]{32})-([0-9a-f]{16})-[0-9a-f]{2}(?:-.*)?$/.exec(value ?? "");
  const [, traceId, spanId] = match ?? [];
  if (!traceId || !spanId || /^0+$/.test(traceId) || /^0+$/.test(spanId)) return undefined;
  return { traceId, spanId };
}
