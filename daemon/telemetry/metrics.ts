// Metrics of one app, in Prometheus' text format at /metrics. Each app has a registry of its own, so that tests do not share counts.
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from "prom-client";

export interface Metrics {
  readonly registry: Registry;
  counter<L extends string = never>(name: string, help: string, labels?: readonly L[]): Counter<L>;
  /** @param collect sets it whenever the figures are asked for. */
  gauge<L extends string = never>(
    name: string,
    help: string,
    labels?: readonly L[],
    collect?: (gauge: Gauge<L>) => void,
  ): Gauge<L>;
  histogram<L extends string = never>(
    name: string,
    help: string,
    labels?: readonly L[],
    buckets?: readonly number[],
  ): Histogram<L>;
  /** The exposition, and its Content-Type. */
  render(): Promise<{ readonly text: string; readonly contentType: string }>;
}

/** Seconds; from a cell's round trip to a slow completion. */
const DURATION_BUCKETS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120];

/** @param options.process also report the process's own figures (memory, event loop lag); off for tests. */
export function createMetrics(options: { readonly process?: boolean } = {}): Metrics {
  const registry = new Registry();
  if (options.process) {
    collectDefaultMetrics({ register: registry });
    // Gauges that are called `_total`, which linters of the format refuse; each is there once more by type, and rightly named.
    for (const kind of ["resources", "handles", "requests"]) registry.removeSingleMetric(`nodejs_active_${kind}_total`);
  }
  const registers = [registry];
  return {
    registry,
    counter: (name, help, labels = []) => new Counter({ name, help, labelNames: [...labels], registers }),
    gauge: (name, help, labels = [], collect = undefined) =>
      new Gauge({
        name,
        help,
        labelNames: [...labels],
        registers,
        ...(collect && {
          collect() {
            collect(this);
          },
        }),
      }),
    histogram: (name, help, labels = [], buckets = DURATION_BUCKETS) =>
      new Histogram({ name, help, labelNames: [...labels], buckets: [...buckets], registers }),
    render: async () => ({ text: await registry.metrics(), contentType: registry.contentType }),
  };
}
