// The runtime's Prometheus series.
import { readFileSync } from "node:fs";
import type { Metrics } from "#daemon/telemetry/metrics.ts";
import { type Series, seriesOf } from "#daemon/telemetry/series.ts";
import type { InstanceResult } from "./serving/instance.ts";

export interface RuntimeMetrics {
  invocation(controller: string, outcome: string, totalMs: number, phases: InstanceResult | null): void;
  broker(controller: string, operation: string, seconds: number, failed: boolean): void;
  death(controller: string, reason: string): void;
  reload(controller: string, ms: number): void;
}

type Phase = "total" | "queue" | "cold_start" | "run" | "cpu";

/** A cell that holds a controller. */
export interface CellProcess {
  readonly controller: string;
  readonly pid: number;
}

export function runtimeMetrics(metrics: Metrics, cells: () => readonly CellProcess[]): RuntimeMetrics {
  const invocations = metrics.counter("magic_controller_invocations_total", "Invocations by outcome.", [
    "controller",
    "outcome",
  ]);
  const phases = metrics.histogram("magic_controller_seconds", "Seconds of an invocation, by phase.", [
    "controller",
    "phase",
  ]);
  const broker = metrics.histogram("magic_controller_broker_seconds", "Seconds of broker calls.", [
    "controller",
    "operation",
    "outcome",
  ]);
  const deaths = metrics.counter("magic_controller_cell_deaths_total", "Cells that ended before they were asked to.", [
    "controller",
    "reason",
  ]);
  const known = new Map<string, Series>();
  const phase = (controller: string, name: Phase): Series => {
    const key = `${name} ${controller}`;
    let found = known.get(key);
    if (!found) {
      found = seriesOf(phases, { controller, phase: name });
      known.set(key, found);
    }
    return found;
  };
  const reloads = metrics.histogram("magic_controller_reload_seconds", "Seconds from save to live.", ["controller"]);
  metrics.gauge("magic_controller_cells", "Cells that hold a controller.", [], (gauge) => gauge.set(cells().length));
  metrics.gauge(
    "magic_controller_memory_bytes",
    "Resident memory of a controller's cells.",
    ["controller"],
    (gauge) => {
      gauge.reset();
      for (const { controller, pid } of cells()) gauge.inc({ controller }, residentBytes(pid));
    },
  );
  return {
    invocation(controller, outcome, totalMs, result) {
      invocations.inc({ controller, outcome });
      phase(controller, "total").observe(totalMs / 1000);
      if (!result) return;
      if (result.queueMs > 0.05) phase(controller, "queue").observe(result.queueMs / 1000);
      if (result.coldMs > 0.5) phase(controller, "cold_start").observe(result.coldMs / 1000);
      phase(controller, "run").observe(result.runMs / 1000);
      if (result.cpuMs !== null) phase(controller, "cpu").observe(result.cpuMs / 1000);
    },
    broker: (controller, operation, seconds, failed) =>
      broker.observe({ controller, operation, outcome: failed ? "error" : "ok" }, seconds),
    death: (controller, reason) => deaths.inc({ controller, reason }),
    reload: (controller, ms) => reloads.observe({ controller }, ms / 1000),
  };
}

/** The second figure of /proc/PID/statm, pages of 4 kB; 0 where it cannot be read. */
function residentBytes(pid: number): number {
  try {
    return Number(readFileSync(`/proc/${pid}/statm`, "latin1").split(" ")[1]) * 4096;
  } catch {
    return 0;
  }
}
