// A series and a tally, which add to what prom-client keeps, against prom-client itself.
import { expect, test } from "vitest";
import { createMetrics } from "#daemon/telemetry/metrics.ts";
import { seriesOf, tallyOf } from "#daemon/telemetry/series.ts";

test("a series counts what the histogram itself would have counted", async () => {
  const [quick, plain] = [createMetrics(), createMetrics()];
  const names = ["route", "status"] as const;
  const [a, b] = [quick, plain].map((metrics) => metrics.histogram("seconds", "How long", names));
  if (!a || !b) throw new Error("no histograms");
  const labels = [
    { route: "/a", status: "200" },
    { route: "/a", status: "404" },
    { route: "/b", status: "200" },
  ];
  // Bounds themselves, what lies between them, below the first and beyond the last.
  const values = [0, 0.0004, 0.001, 0.0011, 0.25, 0.3, 120, 121, 1_000];
  a.observe(labels[0] as { route: string; status: string }, 0.5);
  b.observe(labels[0] as { route: string; status: string }, 0.5);
  const series = labels.map((one) => seriesOf(a, one));
  for (const value of values)
    for (const [index, one] of labels.entries()) {
      series[index]?.observe(value);
      b.observe(one, value);
    }
  expect((await quick.render()).text).toBe((await plain.render()).text);
});

test("a tally counts what the counter itself would have counted", async () => {
  const [quick, plain] = [createMetrics(), createMetrics()];
  const [a, b] = [quick, plain].map((metrics) => metrics.counter("calls_total", "How many", ["route", "status"]));
  if (!a || !b) throw new Error("no counters");
  for (const labels of [
    { route: "/a", status: "200" },
    { route: "/a|b", status: "404" },
  ]) {
    a.inc(labels, 2);
    b.inc(labels, 2);
    const tally = tallyOf(a, labels);
    for (const amount of [1, 0.5, 0]) {
      tally.add(amount);
      b.inc(labels, amount);
    }
  }
  expect((await quick.render()).text).toBe((await plain.render()).text);
});
