// A declarative connector on one configuration: what it needs, whether it works, its streams.
import { setTimeout as delay } from "node:timers/promises";
import type { Dispatcher } from "undici";
import type { TokenKeeper } from "#contract/tokens.ts";
import { type Clock, systemClock } from "#shared/clock.ts";
import { memoryTokens } from "#shared/token-ipc.ts";
import { configFor } from "./config.ts";
import { type Context, native } from "./context.ts";
import { dynamicStreams } from "./dynamic.ts";
import { createBudget } from "./http/budget.ts";
import { createHttpClient, type HttpClient, type HttpResponse } from "./http/client.ts";
import { parseRewrite } from "./http/rewrite.ts";
import { createInterpolator } from "./jinja/interpolate.ts";
import { manifestNames } from "./jinja/names.ts";
import {
  type Component,
  children,
  list,
  manifestError,
  optionalChild,
  optionalText,
  typeOf,
} from "./manifest/component.ts";
import { loadManifest, type Manifest } from "./manifest/load.ts";
import { checkNames, streamNamed } from "./manifest/streams.ts";
import { createJobGate } from "./read/job-gate.ts";
import { type Stream, streamComponents, streamOf } from "./stream.ts";

export interface ConnectorOptions {
  readonly config: Readonly<Record<string, unknown>>;
  readonly dispatcher: Dispatcher;
  /** The value of MAGIC_HTTP_REWRITE. */
  readonly rewrite?: string | undefined;
  readonly clock?: Clock;
  readonly signal?: AbortSignal;
  readonly log?: Context["log"];
  readonly concurrency?: number;
  readonly timeoutMs?: number;
  /** Sees every answer that is no error, before it is decoded. */
  readonly onResponse?: (response: HttpResponse) => void;
  /** False where the reader may stop at any page: none is asked for that it does not come to, of any partition. */
  readonly readsAhead?: boolean;
  /** Who keeps rotated tokens; absent: this connector, as long as it lives. */
  readonly tokens?: TokenKeeper | undefined;
  /** How to wait, for those who count waits instead of sitting them through. */
  readonly sleep?: Context["sleep"];
}

export interface Connector {
  readonly manifest: Manifest;
  /** Reads the first record of the streams that the manifest names for it, in their first slice. Throws what is wrong. */
  check(): Promise<void>;
  /** Every stream that can be built. Where there is none: throws what is in the first one's way, naming the component. */
  streams(): Promise<readonly Stream[]>;
  /** Throws not_found with the names that there are. */
  stream(name: string): Promise<Stream>;
}

/** Throws validation_failed when the manifest or the configuration does not fit. */
export function createConnector(source: string | Manifest, options: ConnectorOptions): Connector {
  const manifest = typeof source === "string" ? loadManifest(source) : source;
  const config = configFor(manifest, options.config);
  const connector = connectorOn(manifest, config, options);
  const overrides = optionalChild(optionalChild(manifest.resolved, "check") ?? {}, "config_overrides");
  if (!overrides) return connector;
  const [reserved] = Object.keys(overrides).filter((name) => name.startsWith("__airbyte"));
  if (reserved !== undefined) throw manifestError(`check.config_overrides must not name ${reserved}`);
  return { ...connector, check: () => connectorOn(manifest, { ...config, ...overrides }, options).check() };
}

function connectorOn(
  manifest: Manifest,
  config: Readonly<Record<string, unknown>>,
  options: ConnectorOptions,
): Connector {
  const { resolved } = manifest;
  const context = contextOf(resolved, config, options);
  let all: Promise<Component[]> | undefined;
  const components = (): Promise<Component[]> => {
    all ??= dynamicStreams(context, resolved).then((dynamic) => {
      const made = [...streamComponents(context, resolved), ...dynamic];
      checkNames(made);
      return made;
    });
    return all;
  };
  const concurrency = options.concurrency ?? (context.readsAhead ? concurrencyOf(context, resolved) : 1);
  const streams = async (): Promise<Stream[]> => {
    const refused: unknown[] = [];
    const made: Stream[] = [];
    for (const each of await components()) {
      try {
        made.push(streamOf(context, each, concurrency));
      } catch (error) {
        refused.push(error);
      }
    }
    if (made.length === 0 && refused.length > 0) throw refused[0];
    return made;
  };
  const componentOf = async (name: string): Promise<Component> => streamNamed(name, await components());
  // The streams that the manifest names for it, or as many of those that it makes; where it names none, the first.
  const toCheck = async (): Promise<Component[]> => {
    const check = optionalChild(resolved, "check") ?? {};
    if (typeOf(check) === "CheckDynamicStream")
      return (await components()).slice(0, Math.max(1, Number(check["stream_count"]) || 1));
    const named = await Promise.all(list(check["stream_names"]).map((name) => componentOf(String(name))));
    const made: Component[] = [];
    for (const each of children(check, "dynamic_streams_check_configs")) {
      const template = children(resolved, "dynamic_streams").filter(
        (one) => optionalText(one, "name") === optionalText(each, "dynamic_stream_name"),
      );
      if (!template.length)
        throw manifestError(`it has no dynamic stream '${optionalText(each, "dynamic_stream_name")}'`);
      const all = await dynamicStreams(context, { ...resolved, dynamic_streams: template });
      made.push(...all.slice(0, Number(each["stream_count"]) || all.length));
    }
    return named.length + made.length > 0 ? [...named, ...made] : (await components()).slice(0, 1);
  };
  return {
    manifest,
    streams,
    stream: async (name) => streamOf(context, await componentOf(name), concurrency),
    async check() {
      const found = await toCheck();
      if (!found.length) throw manifestError("it has no streams with this configuration");
      if (optionalChild(resolved, "check")?.["use_check_availability"] === false) return;
      for (const each of found) await readFirst(streamOf(context, each, 1));
    },
  };
}

// The first page that has records, or the end of the first slice: a partition without records must not have all others asked.
async function readFirst(stream: Stream): Promise<void> {
  for await (const _event of stream.read()) return;
}

function contextOf(resolved: Component, config: Readonly<Record<string, unknown>>, options: ConnectorOptions): Context {
  const clock = options.clock ?? systemClock;
  const signal = options.signal ?? new AbortController().signal;
  const jinja = createInterpolator(() => clock.now(), manifestNames);
  const evaluate = (value: unknown): unknown => native({ config, jinja }, {}, value);
  return {
    config,
    jinja,
    http: clientOf(options),
    clock,
    budget: createBudget(optionalChild(resolved, "api_budget"), clock, evaluate),
    jobs: createJobGate(Number(evaluate(resolved["max_concurrent_async_job_count"] ?? 1))),
    signal,
    log: options.log ?? (() => {}),
    sleep: options.sleep ?? ((ms) => sleep(ms, signal)),
    readsAhead: options.readsAhead ?? true,
    shared: new Map(),
    tokens: options.tokens ?? memoryTokens(),
  };
}

function clientOf({ dispatcher, rewrite: setting, timeoutMs, onResponse }: ConnectorOptions): HttpClient {
  const rewrite = parseRewrite(setting);
  const client = createHttpClient({
    dispatcher,
    ...(rewrite ? { rewrite } : {}),
    ...(timeoutMs === undefined ? {} : { timeoutMs }),
  });
  if (!onResponse) return client;
  return {
    ...client,
    async send(request, signal) {
      const response = await client.send(request, signal);
      if (response.status < 400) onResponse(response);
      return response;
    },
  };
}

const MAX_SLEEP_MS = 2 ** 31 - 1;

/** At most 24 days, after which who has to wait longer asks again: a longer timer of Node's would end at once. */
export async function sleep(ms: number, signal: AbortSignal): Promise<void> {
  await delay(Math.min(ms, MAX_SLEEP_MS), undefined, { signal }).catch(() => {
    throw signal.reason;
  });
}

const MAX_CONCURRENCY = 16;

function concurrencyOf(context: Context, resolved: Component): number {
  const level = optionalChild(resolved, "concurrency_level");
  if (!level) return 4;
  const wanted = context.jinja.evaluate(String(level["default_concurrency"] ?? 4), { config: context.config }, 4);
  return Math.max(
    1,
    Math.min(
      Number(wanted) || 4,
      Number(level["max_concurrency"] ?? MAX_CONCURRENCY) || MAX_CONCURRENCY,
      MAX_CONCURRENCY,
    ),
  );
}
