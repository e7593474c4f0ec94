// One job of the connector process: inspect a manifest, check a configuration, read a stream, evaluate templates.
import type { ConnectorJob, ConnectorReply, ConnectorSummary, EvalCase } from "#contract/connector-worker.ts";
import { isMagicError, MagicError } from "#contract/errors.ts";
import type { TokenKeeper } from "#contract/tokens.ts";
import { createEgress } from "#daemon/egress/egress.ts";
import { anyExact, packNumbers, unpackNumbers } from "#shared/exact-number.ts";
import { redactText, secretsIn } from "#shared/redact.ts";
import { markedSecrets } from "../secret-settings.ts";
import { type Connector, createConnector } from "./connector.ts";
import type { HttpResponse } from "./http/client.ts";
import { decoderOf } from "./http/decode.ts";
import { loopbackTargets, rewriteTargets } from "./http/rewrite.ts";
import { inspectStreams, missingChecks } from "./inspect.ts";
import { createInterpolator, literalIn } from "./jinja/interpolate.ts";
import { str } from "./jinja/repr.ts";
import { isRecord } from "./manifest/component.ts";
import { loadManifest, type Manifest } from "./manifest/load.ts";
import { sandboxRead } from "./sandbox.ts";
import { overflowed, type StreamEvent } from "./stream.ts";

export interface JobPorts {
  readonly signal: AbortSignal;
  readonly env: NodeJS.ProcessEnv;
  send(reply: ConnectorReply): Promise<void>;
  readonly tokens?: TokenKeeper;
  /** Resolves when the last records were taken. */
  room(): Promise<void>;
  /** The templates after those that were answered last; none: that was all. */
  cases?(): Promise<readonly EvalCase[]>;
}

const MOST_AT_ONCE = 1000;

export async function runConnectorJob(job: ConnectorJob, ports: JobPorts): Promise<void> {
  let secrets = "config" in job ? secretsIn(job.config) : [];
  try {
    if (job.type === "eval") await evaluate(job, ports);
    else {
      const manifest = loadManifest(job.manifest);
      if ("config" in job) secrets = [...secrets, ...markedSecrets(job.config, manifest.configSchema)];
      await withManifest(job, manifest, secrets, ports);
    }
    await ports.send({ type: "end" });
  } catch (thrown) {
    // A record may nest so deeply that it cannot even be handed on.
    const error = overflowed(thrown)
      ? new MagicError("upstream_error", "a record nests too deeply to be read")
      : thrown;
    const detail = redactText(error instanceof Error ? error.message : String(error), secrets);
    await ports.send({
      type: "failed",
      code: isMagicError(error)
        ? error.code
        : ports.signal.aborted
          ? "interrupted"
          : evaluationFailed(error)
            ? "validation_failed"
            : "internal",
      detail,
      problems: isMagicError(error) ? error.problems : [],
    });
  }
}

const evaluationFailed = (error: unknown): boolean =>
  error instanceof Error && ["TemplateSyntaxError", "UndefinedError", "EvaluationError"].includes(error.name);

type ManifestJob = Exclude<ConnectorJob, { type: "eval" }>;

async function withManifest(
  job: ManifestJob,
  manifest: Manifest,
  secrets: readonly string[],
  ports: JobPorts,
): Promise<void> {
  if (job.type === "inspect") await ports.send({ type: "summary", summary: await summaryOf(manifest) });
  else if (job.type === "read" && job.sandbox)
    await sendAll(sandboxRead(manifest, job.stream, job.state), job.limit, ports);
  else await withConnector(job, manifest, secrets, ports);
}

async function summaryOf(manifest: Manifest): Promise<ConnectorSummary> {
  return {
    title: manifest.title ?? null,
    version: manifest.version,
    config_schema: manifest.configSchema,
    streams: await inspectStreams(manifest),
    missing_checks: missingChecks(manifest),
    dynamic: manifest.resolved["dynamic_streams"] !== undefined,
  };
}

async function withConnector(
  job: Exclude<ManifestJob, { type: "inspect" }>,
  manifest: Manifest,
  secrets: readonly string[],
  ports: JobPorts,
): Promise<void> {
  const rewrite = ports.env["MAGIC_HTTP_REWRITE"];
  const allowed = [...(job.allow_private ?? []), ...rewriteTargets(rewrite), ...loopbackTargets(job.config)];
  const egress = createEgress({ allowPrivate: () => allowed });
  const over = new AbortController();
  try {
    let seen: HttpResponse | undefined;
    const connector = createConnector(manifest, {
      config: job.config,
      dispatcher: egress.dispatcher,
      rewrite,
      signal: AbortSignal.any([ports.signal, over.signal]),
      tokens: ports.tokens,
      readsAhead: job.type === "read" && job.limit === undefined,
      // The last one: a token's answer comes before the page's.
      onResponse: (response) => {
        seen = response;
      },
      log: (level, message) => void ports.send({ type: "log", level, message: redactText(message, secrets) }),
    });
    if (job.type === "check") await connector.check();
    else if (job.type === "probe") await probe(connector, () => seen, ports);
    else await sendAll((await connector.stream(job.stream)).read(job.state), job.limit, ports);
  } finally {
    // A page that was asked for ahead is not tried again.
    over.abort();
    await ports.tokens?.idle?.();
    await egress.close();
  }
}

async function probe(connector: Connector, seen: () => HttpResponse | undefined, ports: JobPorts): Promise<void> {
  const [stream] = await connector.streams();
  for await (const event of stream?.read() ?? []) if (event.type === "records") break;
  const response = seen();
  if (!response) throw new MagicError("upstream_error", "no request was answered");
  const [decoded] = decoderOf(undefined)(response);
  // What it holds is looked at, not kept: a number is a number.
  const body: unknown = anyExact() ? JSON.parse(JSON.stringify(decoded)) : decoded;
  await ports.send({ type: "page", url: response.url, headers: response.headers, body });
}

async function sendAll(
  events: AsyncIterable<StreamEvent> | Iterable<StreamEvent>,
  limit: number | undefined,
  ports: JobPorts,
): Promise<void> {
  let left = limit ?? Number.POSITIVE_INFINITY;
  for await (const event of events) {
    if (event.type === "state") {
      await ports.send(event);
      continue;
    }
    // A page may hold a million: whoever takes them gets some at a time.
    for (let from = 0; from < event.records.length; from += MOST_AT_ONCE) {
      const records = event.records.slice(from, from + Math.min(left, MOST_AT_ONCE));
      left -= records.length;
      const room = ports.room();
      await ports.send({
        type: "records",
        ...(anyExact() ? { records: packNumbers(records), exact: true } : { records }),
      });
      await room;
      // A cut read has no state: what was not shown was not read.
      if (left <= 0) return;
    }
  }
}

async function evaluate(job: Extract<ConnectorJob, { type: "eval" }>, ports: JobPorts): Promise<void> {
  const jinja = createInterpolator();
  const answer = ({ template, context }: EvalCase): { value: unknown } | { error: string } => {
    try {
      const text = jinja.render(template, unpackNumbers(context));
      return { value: wire(literalIn(text, (whole) => Object(str(whole)))) };
    } catch (error) {
      return { error: error instanceof Error ? error.message : String(error) };
    }
  };
  for (let cases = job.cases; cases.length > 0; ) {
    const values = cases.map(answer);
    const next = ports.cases?.();
    await ports.send({ type: "values", values });
    cases = (await next) ?? [];
  }
}

// JSON has no bigint, and to it 5.0 is 5: String objects are numbers by their digits, as in records.
function wire(value: unknown): unknown {
  if (value instanceof String) return value;
  if (typeof value === "bigint") return Object(value.toString());
  if (Array.isArray(value)) return value.map(wire);
  if (isRecord(value)) return Object.fromEntries(Object.entries(value).map(([key, each]) => [key, wire(each)]));
  return value;
}
