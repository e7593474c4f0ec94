// Where finished spans go: the daemon's storage, and an OpenTelemetry collector where one is named.
import { VERSION } from "#contract/protocol.ts";
import { createEgress } from "./egress/egress.ts";
import type { Foundation } from "./foundation.ts";
import { errorFields } from "./telemetry/log.ts";
import { otlpExporter, otlpHeaders } from "./telemetry/otlp.ts";
import { createTraceStore, type TraceStore } from "./telemetry/trace-store.ts";

const EXPORT_TIMEOUT_MS = 10_000;

export function wireTraces({ env, logger, project, storage, tracer, onClose }: Foundation): TraceStore {
  const traces = createTraceStore(storage.units.trace, tracer);
  const configured = () => project.current().telemetry;
  const endpoint = () => configured()?.otlp_endpoint || env["OTEL_EXPORTER_OTLP_ENDPOINT"];
  // The collector is where the operator says: on this machine as often as not.
  const egress = createEgress({
    allowPrivate: () => [hostPortOf(endpoint()), ...(project.current().egress?.allow_private ?? [])],
  });
  onClose(() => egress.close());
  const post = async (url: string, headers: Readonly<Record<string, string>>, body: string): Promise<void> => {
    const answer = await egress.request(url, { method: "POST", headers, body, timeoutMs: EXPORT_TIMEOUT_MS });
    if (answer.status >= 300) throw new Error(`the collector answered ${answer.status}`);
  };
  let failed = 0;
  tracer.onBatch(async (spans) => {
    await traces.store(spans).catch((error: unknown) => logger.warn("traces.not_stored", errorFields(error)));
    const to = endpoint();
    if (!to) return;
    const headers = { ...otlpHeaders(env["OTEL_EXPORTER_OTLP_HEADERS"]), ...configured()?.otlp_headers };
    const send = otlpExporter({ endpoint: to, headers, serviceVersion: VERSION, post });
    await send(spans.map((span) => span.record())).then(
      () => {
        failed = 0;
      },
      (error: unknown) => {
        // Once, not every second.
        if (failed++ === 0) logger.warn("traces.not_exported", errorFields(error));
      },
    );
  });
  return traces;
}

function hostPortOf(url: string | undefined): string {
  const parsed = url === undefined ? null : URL.parse(url);
  if (!parsed) return "";
  return `${parsed.hostname}:${parsed.port || (parsed.protocol === "https:" ? 443 : 80)}`;
}
