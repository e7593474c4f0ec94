// Spans to an OpenTelemetry collector: OTLP over HTTP with JSON (opentelemetry-proto, "OTLP/HTTP": ids are hex, integers are strings).
// Best effort: what cannot be sent is dropped and counted, a request never waits for it.
import { percentDecoded } from "#shared/percent-encoding.ts";
import type { SpanRecord } from "./trace.ts";

export interface OtlpOptions {
  /** The collector's base URL; `/v1/traces` is appended (OTEL_EXPORTER_OTLP_ENDPOINT). */
  readonly endpoint: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly serviceVersion: string;
  /** Sends one request; rejects when it was not taken. */
  readonly post: (url: string, headers: Readonly<Record<string, string>>, body: string) => Promise<void>;
}

export function otlpExporter({ endpoint, headers, serviceVersion, post }: OtlpOptions) {
  const url = `${endpoint.replace(/\/+$/, "")}/v1/traces`;
  return (spans: readonly SpanRecord[]): Promise<void> =>
    post(url, { ...headers, "content-type": "application/json" }, JSON.stringify(otlpDocument(spans, serviceVersion)));
}

/** `OTEL_EXPORTER_OTLP_HEADERS`: `name=value` pairs, separated by commas, percent-encoded; a value that is not is taken as it stands. */
export function otlpHeaders(text: string | undefined): Record<string, string> {
  const headers: Record<string, string> = {};
  for (const pair of (text ?? "").split(",")) {
    const cut = pair.indexOf("=");
    if (cut > 0) headers[pair.slice(0, cut).trim().toLowerCase()] = percentDecoded(pair.slice(cut + 1).trim());
  }
  return headers;
}

export function otlpDocument(spans: readonly SpanRecord[], serviceVersion: string) {
  return {
    resourceSpans: [
      {
        resource: {
          attributes: [attributeOf("service.name", "magic"), attributeOf("service.version", serviceVersion)],
        },
        scopeSpans: [{ scope: { name: "magic" }, spans: spans.map(otlpSpan) }],
      },
    ],
  };
}

const CLIENT = 3;
const SERVER = 2;

function otlpSpan(span: SpanRecord) {
  const start = BigInt(Date.parse(span.started_at)) * 1_000_000n;
  const end = start + BigInt(Math.round(span.duration_ms * 1e6));
  return {
    traceId: span.trace_id,
    spanId: span.span_id,
    ...(span.parent_span_id !== null && { parentSpanId: span.parent_span_id }),
    name: span.name,
    kind: span.kind === "server" ? SERVER : CLIENT,
    startTimeUnixNano: String(start),
    endTimeUnixNano: String(end),
    attributes: [
      attributeOf("magic.request_id", span.request_id),
      ...Object.entries(span.attributes).flatMap(([key, value]) => (value === null ? [] : [attributeOf(key, value)])),
    ],
    status: span.status === "error" ? { code: 2 } : { code: 0 },
  };
}

/** Whole by chance: a collector's columns want one type for each name. */
const MEASURED = /_(?:ms|usd)$/;

function attributeOf(key: string, value: string | number | boolean) {
  if (typeof value === "string") return { key, value: { stringValue: value } };
  if (typeof value === "boolean") return { key, value: { boolValue: value } };
  const whole = Number.isInteger(value) && !MEASURED.test(key);
  return { key, value: whole ? { intValue: String(value) } : { doubleValue: value } };
}
