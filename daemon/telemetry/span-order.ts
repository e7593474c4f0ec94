// Spans as a tree, written down: every parent before its children, siblings in the order in which they began.
import type { SpanRecord } from "./trace.ts";

export function sortSpans(spans: readonly SpanRecord[]): SpanRecord[] {
  const ids = new Set(spans.map(({ span_id }) => span_id));
  const children = Map.groupBy(spans.toSorted(byStart), ({ parent_span_id }) =>
    parent_span_id !== null && ids.has(parent_span_id) ? parent_span_id : null,
  );
  const order: SpanRecord[] = [];
  const stack = (children.get(null) ?? []).toReversed();
  const seen = new Set<string>();
  for (let span = stack.pop(); span; span = stack.pop()) {
    if (seen.has(span.span_id)) continue;
    seen.add(span.span_id);
    order.push(span);
    stack.push(...(children.get(span.span_id) ?? []).toReversed());
  }
  return order;
}

function byStart(a: SpanRecord, b: SpanRecord): number {
  if (a.started_at !== b.started_at) return a.started_at < b.started_at ? -1 : 1;
  return b.duration_ms - a.duration_ms;
}
