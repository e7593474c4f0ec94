// Which spans are held for GET /v1/traces/:request_id: all of a quiet second, and under load those in which something failed.
import { expect, test } from "vitest";
import { createTracer } from "#daemon/telemetry/trace.ts";

const still = { now: () => 1_700_000_000_000, monotonic: () => 0 };

function crowded() {
  const tracer = createTracer({ clock: { ...still } as never });
  for (let n = 0; n < 1_000; n++) tracer.start("earlier", { requestId: `req_${n}` }).end();
  return tracer;
}

test("the spans of a request are held with what is known when they end", () => {
  const tracer = createTracer({ clock: { ...still } as never });
  const call = tracer.start("call", { requestId: "req_1", attributes: { a: 1 } });
  call.child("attempt").end("ok", { b: 2 });
  call.end("ok", () => ({ c: 3 }));
  const spans = tracer.spansOf("req_1");
  expect(spans.map(({ name }) => name).sort()).toEqual(["attempt", "call"]);
  expect(spans.find(({ name }) => name === "call")?.attributes).toEqual({ a: 1, c: 3 });
  expect(spans.find(({ name }) => name === "attempt")?.parent_span_id).toBe(call.spanId);
});

test("under load a request is held only if a span of it fails, and then with those that ended before", () => {
  const tracer = crowded();
  const well = tracer.start("call", { requestId: "well" });
  well.child("attempt").end();
  well.end();
  expect(tracer.spansOf("well")).toEqual([]);
  const failing = tracer.start("call", { requestId: "failing" });
  failing.child("first").end();
  failing.child("second").end("ok", () => ({ seen: true }));
  failing.child("third").end("error");
  failing.child("fourth").end();
  failing.end();
  const spans = tracer.spansOf("failing");
  expect(spans.map(({ name }) => name).sort()).toEqual(["call", "first", "fourth", "second", "third"]);
  expect(spans.find(({ name }) => name === "second")?.attributes).toEqual({ seen: true });
});
