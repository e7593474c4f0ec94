// What a manifest offers, found without a configuration: every stream is built, so that what cannot run is known when it is added.
import { Agent } from "undici";
import type { ConnectorSummary } from "#contract/connector-worker.ts";
import { systemClock } from "#shared/clock.ts";
import { memoryTokens } from "#shared/token-ipc.ts";
import { rulesOf } from "./config.ts";
import type { Context } from "./context.ts";
import { createBudget } from "./http/budget.ts";
import { createHttpClient } from "./http/client.ts";
import { createInterpolator } from "./jinja/interpolate.ts";
import { manifestNames } from "./jinja/names.ts";
import {
  type Component,
  child,
  children,
  isRecord,
  list,
  manifestError,
  optionalChild,
  optionalText,
  refuseCustom,
  typeOf,
} from "./manifest/component.ts";
import type { Manifest } from "./manifest/load.ts";
import { checkNames, inlineSchema, nameOf, writtenStreams } from "./manifest/streams.ts";
import { createJobGate } from "./read/job-gate.ts";
import { streamComponents, streamOf } from "./stream.ts";

/** Streams that cannot run carry the reason; throws validation_failed with it when none can. */
export async function inspectStreams(manifest: Manifest): Promise<ConnectorSummary["streams"]> {
  rulesOf(manifest);
  const context = dryContext(manifest);
  const components = streamComponents(context, manifest.resolved);
  checkNames(components);
  const made = children(manifest.resolved, "dynamic_streams");
  const refused = made.flatMap(inspectTemplate);
  const streams = [...components.map((component) => inspect(context, component)), ...refused];
  const [first] = streams;
  if (first && refused.length === made.length && streams.every((stream) => stream.refused !== null))
    throw manifestError(`no stream can run; ${first.name}: ${first.refused}`);
  return streams;
}

/** The streams that the manifest has its check read, and does not have: the check will always fail. */
export function missingChecks({ resolved }: Manifest): string[] {
  if (children(resolved, "dynamic_streams").length > 0) return [];
  const known = new Set(writtenStreams(resolved).map(nameOf));
  return list(optionalChild(resolved, "check")?.["stream_names"])
    .map(String)
    .filter((name) => !known.has(name));
}

type Inspected = ConnectorSummary["streams"][number];

function inspect(context: Context, component: Component): Inspected {
  const name = nameOf(component);
  try {
    const stream = streamOf(context, component);
    return {
      name,
      primary_key: stream.primaryKey.map((path) => path.join(".")),
      cursor_field: stream.cursorField ?? null,
      schema: inlineSchema(component),
      refused: null,
    };
  } catch (error) {
    return refusedAs(name, error);
  }
}

function refusedAs(name: string, error: unknown): Inspected {
  const refused = (error as Error).message.replace(/^manifest: /, "");
  return { name, primary_key: [], cursor_field: null, schema: null, refused };
}

// Which streams a template makes is known with a configuration only; that it is written in Python is known before.
function inspectTemplate(template: Component): Inspected[] {
  const parts = ["stream_template", "components_resolver"].map((field) => child(template, field));
  try {
    for (const part of parts) refuseCustomIn(part);
    return [];
  } catch (error) {
    const name = [template, ...parts].map((each) => optionalText(each, "name")).find(Boolean);
    return [refusedAs(name ?? typeOf(template), error)];
  }
}

// Of several ways to authenticate the others may do.
function refuseCustomIn(value: unknown): void {
  if (isRecord(value) && typeof value["class_name"] === "string") refuseCustom(value);
  if (isRecord(value) && typeOf(value) === "SelectiveAuthenticator") return;
  if (typeof value === "object" && value !== null) for (const each of Object.values(value)) refuseCustomIn(each);
}

/** Nothing is sent: building streams asks nobody. */
export function dryContext(manifest: Manifest): Context {
  return {
    config: sample(manifest.configSchema) as Readonly<Record<string, unknown>>,
    jinja: createInterpolator(Date.now, manifestNames),
    http: createHttpClient({ dispatcher: new Agent() }),
    clock: systemClock,
    budget: createBudget(optionalChild(manifest.resolved, "api_budget"), systemClock, (value) => value),
    jobs: createJobGate(1),
    signal: new AbortController().signal,
    log: () => {},
    sleep: async () => {},
    readsAhead: false,
    shared: new Map(),
    tokens: memoryTokens(),
  };
}

/** A configuration of the schema's form: defaults, constants and first choices, else a word. */
export function sample(schema: unknown, depth = 0): unknown {
  if (!isRecord(schema) || depth > 12) return "sample";
  if (schema["default"] !== undefined) return schema["default"];
  if (schema["const"] !== undefined) return schema["const"];
  if (Array.isArray(schema["enum"]) && schema["enum"].length) return schema["enum"][0];
  const choice = [schema["oneOf"], schema["anyOf"]].find((each) => Array.isArray(each) && each.length) as
    | unknown[]
    | undefined;
  if (choice)
    return sample(
      isRecord(choice[0])
        ? {
            ...schema,
            oneOf: undefined,
            anyOf: undefined,
            ...choice[0],
            properties: { ...(schema["properties"] as object), ...(choice[0]["properties"] as object) },
          }
        : choice[0],
      depth + 1,
    );
  if (Array.isArray(schema["examples"]) && schema["examples"].length && typeof schema["examples"][0] !== "object")
    return schema["examples"][0];
  const type = Array.isArray(schema["type"]) ? schema["type"].find((each) => each !== "null") : schema["type"];
  if (type === "object" || isRecord(schema["properties"]))
    return Object.fromEntries(
      Object.entries(isRecord(schema["properties"]) ? schema["properties"] : {}).map(([name, each]) => [
        name,
        sample(each, depth + 1),
      ]),
    );
  if (type === "array") return [sample(schema["items"], depth + 1)];
  if (type === "integer" || type === "number") return typeof schema["minimum"] === "number" ? schema["minimum"] : 1;
  if (type === "boolean") return true;
  if (schema["format"] === "date") return "2024-01-01";
  if (schema["format"] === "date-time" || String(schema["pattern"] ?? "").includes("T")) return "2024-01-01T00:00:00Z";
  return "sample";
}
