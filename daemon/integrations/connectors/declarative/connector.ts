// A declarative connector on one configuration: what it needs, whether it works, its streams.
import { Ajv2020, type ValidateFunction } from "ajv/dist/2020.js";
import type { Dispatcher } from "undici";
import { MagicError } from "#contract/errors.ts";
import type { TokenKeeper } from "#contract/tokens.ts";
import { type Clock, systemClock } from "#shared/clock.ts";
import { memoryTokens } from "#shared/token-ipc.ts";
import type { Context } from "./context.ts";
import { dynamicStreams } from "./dynamic.ts";
import { createBudget } from "./http/budget.ts";
import { createHttpClient, type HttpClient, type HttpResponse } from "./http/client.ts";
import { parseRewrite } from "./http/rewrite.ts";
import { createInterpolator } from "./jinja/interpolate.ts";
import { type Component, children, isRecord, list, optionalChild, optionalText, typeOf } from "./manifest/component.ts";
import { loadManifest, type Manifest } from "./manifest/load.ts";
import { setAt } from "./read/dpath.ts";
import { nameOf, type Stream, streamComponents, streamOf } from "./stream.ts";

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
  /** Who keeps rotated tokens; absent: this connector, as long as it lives. */
  readonly tokens?: TokenKeeper | undefined;
  /** How to wait, for those who count waits instead of sitting them through. */
  readonly sleep?: Context["sleep"];
}

export interface Connector {
  readonly manifest: Manifest;
  /** Reads one record of the streams that the manifest names for it. Throws what is wrong. */
  check(): Promise<void>;
  /** Every stream; one that cannot be built throws, naming the component. */
  streams(): Promise<readonly Stream[]>;
  /** Throws not_found with the names that there are. */
  stream(name: string): Promise<Stream>;
}

/** Throws validation_failed when the manifest or the configuration does not fit. */
export function createConnector(source: string | Manifest, options: ConnectorOptions): Connector {
  const manifest = typeof source === "string" ? loadManifest(source) : source;
  const { resolved } = manifest;
  const config = migrateConfig(resolved, fittingConfig(manifest.configSchema, options.config));
  const context = contextOf(resolved, config, options);
  let all: Promise<Component[]> | undefined;
  const components = (): Promise<Component[]> => {
    all ??= dynamicStreams(context, resolved).then((dynamic) => [...streamComponents(context, resolved), ...dynamic]);
    return all;
  };
  const concurrency = options.concurrency ?? concurrencyOf(context, resolved);
  const streams = async (): Promise<Stream[]> =>
    (await components()).map((each) => streamOf(context, each, concurrency));
  const stream = async (name: string): Promise<Stream> => {
    const known = await components();
    const found = known.find((each) => nameOf(each) === name);
    if (!found)
      throw new MagicError(
        "not_found",
        `the connector has no stream '${name}'; it has ${known.map(nameOf).join(", ")}`,
      );
    return streamOf(context, found, concurrency);
  };
  return {
    manifest,
    streams,
    stream,
    async check() {
      const check = optionalChild(resolved, "check");
      const names =
        check && typeOf(check) === "CheckStream"
          ? list(check["stream_names"]).map(String)
          : (await components()).slice(0, 1).map(nameOf);
      for (const name of names) await readOne(await stream(name));
    },
  };
}

async function readOne(stream: Stream): Promise<void> {
  for await (const event of stream.read()) if (event.type === "records") return;
}

function contextOf(resolved: Component, config: Readonly<Record<string, unknown>>, options: ConnectorOptions): Context {
  const clock = options.clock ?? systemClock;
  const signal = options.signal ?? new AbortController().signal;
  return {
    config,
    jinja: createInterpolator(() => clock.now()),
    http: clientOf(options),
    clock,
    budget: createBudget(optionalChild(resolved, "api_budget"), clock),
    signal,
    log: options.log ?? (() => {}),
    sleep: options.sleep ?? ((ms) => sleep(ms, signal)),
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
    async send(request, signal) {
      const response = await client.send(request, signal);
      if (response.status < 400) onResponse(response);
      return response;
    },
  };
}

function sleep(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal.aborted) {
      reject(signal.reason);
      return;
    }
    const abort = (): void => {
      clearTimeout(timer);
      reject(signal.reason);
    };
    const timer = setTimeout(() => {
      signal.removeEventListener("abort", abort);
      resolve();
    }, ms);
    signal.addEventListener("abort", abort, { once: true });
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

// Defaults of the specification apply where the configuration says nothing; "7" does for 7, one value for a list of one.
function fittingConfig(
  schema: Readonly<Record<string, unknown>>,
  given: Readonly<Record<string, unknown>>,
): Record<string, unknown> {
  const config = structuredClone(given) as Record<string, unknown>;
  for (const [name, property] of Object.entries(isRecord(schema["properties"]) ? schema["properties"] : {}))
    if (isRecord(property) && property["default"] !== undefined && !Object.hasOwn(config, name))
      setAt(config, [name], property["default"]);
  const missing = list(schema["required"])
    .map(String)
    .filter((name) => !Object.hasOwn(config, name));
  if (missing.length)
    throw new MagicError("validation_failed", `the configuration lacks ${missing.join(", ")}`, {
      problems: missing.map((name) => ({ pointer: `/${name}`, code: "required", detail: "is required" })),
    });
  const validate = validatorOf(schema);
  if (!validate || validate(config)) return config;
  const problems = (validate.errors ?? [])
    .slice(0, 50)
    .map((error) => ({ pointer: error.instancePath, code: error.keyword, detail: error.message ?? "" }));
  const said = problems.map((problem) => `${problem.pointer || "/"} ${problem.detail}`).join("; ");
  throw new MagicError("validation_failed", `the configuration does not fit the connector: ${said}`, { problems });
}

const validators = new WeakMap<object, ValidateFunction | undefined>();

// A manifest's connectors share one; undefined where the vendor's schema is none that can be compiled: the required names must do then.
function validatorOf(schema: Readonly<Record<string, unknown>>): ValidateFunction | undefined {
  if (!validators.has(schema)) validators.set(schema, compiled(schema));
  return validators.get(schema);
}

function compiled({ $schema: _dialect, ...schema }: Readonly<Record<string, unknown>>): ValidateFunction | undefined {
  // Checking the schema itself would compile the schema of schemas, which takes longer than all the rest.
  const form = { strict: false, allErrors: true, validateFormats: false, validateSchema: false } as const;
  try {
    return new Ajv2020({ ...form, coerceTypes: "array" }).compile(stripPatterns(schema) as object);
  } catch {
    return undefined;
  }
}

// Patterns of manifests are hints for a form, written for another engine, and could be made to backtrack without end.
function stripPatterns(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(stripPatterns);
  if (!isRecord(value)) return value;
  return Object.fromEntries(
    Object.entries(value)
      .filter(([key, each]) => key !== "pattern" || typeof each !== "string")
      .map(([key, each]) => [key, stripPatterns(each)]),
  );
}

function migrateConfig(resolved: Component, config: Record<string, unknown>): Record<string, unknown> {
  const rules = optionalChild(optionalChild(resolved, "spec") ?? {}, "config_normalization_rules");
  const jinja = createInterpolator();
  for (const each of rules
    ? [
        ...children(rules, "config_migrations").flatMap((migration) => children(migration, "transformations")),
        ...children(rules, "transformations"),
      ]
    : []) {
    if (optionalText(each, "condition") && !jinja.evaluate(String(each["condition"]), { config }, "")) continue;
    if (typeOf(each) === "ConfigAddFields")
      for (const field of children(each, "fields"))
        setAt(config, list(field["path"]).map(String), jinja.evaluate(String(field["value"]), { config }, ""));
  }
  return config;
}
