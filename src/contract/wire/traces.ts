// GET /v1/traces/:request_id: the spans of one request, through gateway, controller and sync.
import Type, { type Static } from "typebox";

export const TraceSpan = Type.Object({
  span_id: Type.String(),
  parent_span_id: Type.Union([Type.String(), Type.Null()]),
  name: Type.String(),
  started_at: Type.String(),
  duration_ms: Type.Number(),
  status: Type.Enum(["ok", "error"]),
  attributes: Type.Record(
    Type.String(),
    Type.Union([Type.String(), Type.Number(), Type.Boolean(), Type.Null()], {
      description: "Names follow OpenTelemetry's semantic conventions where they have one.",
    }),
  ),
});
export type TraceSpan = Static<typeof TraceSpan>;

export const Trace = Type.Object({
  object: Type.Literal("trace"),
  request_id: Type.String(),
  trace_id: Type.String({ description: "W3C Trace Context." }),
  started_at: Type.String(),
  duration_ms: Type.Number(),
  spans: Type.Array(TraceSpan, { description: "Parents before children, in the order in which they began." }),
});
export type Trace = Static<typeof Trace>;
