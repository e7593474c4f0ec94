// Reads streams of public manifests from the stand-in vendor, twice: all pages, a state that advances, a second read that goes on from it.
import { readdirSync, readFileSync } from "node:fs";
import { Agent } from "undici";
import { createConnector } from "#daemon/integrations/connectors/declarative/connector.ts";
import { inspectStreams, sample } from "#daemon/integrations/connectors/declarative/inspect.ts";
import { createInterpolator } from "#daemon/integrations/connectors/declarative/jinja/interpolate.ts";
import { isRecord } from "#daemon/integrations/connectors/declarative/manifest/component.ts";
import { loadManifest } from "#daemon/integrations/connectors/declarative/manifest/load.ts";
import type { Stream } from "#daemon/integrations/connectors/declarative/stream.ts";
import { sharedPath } from "#test/shared.ts";
import { type Json, place } from "./example.ts";
import { PAGES, retrieverOf, startVendor, type Vendor } from "./vendor.ts";

export const folder = sharedPath("airbyte-manifests");
export const names = folder ? readdirSync(folder).filter((name) => name.startsWith("source-")) : [];
export const textOf = (name: string): string => readFileSync(`${folder}/${name}/manifest.yaml`, "utf8");

export interface Outcome {
  readonly total: number;
  /** `source/stream: what is wrong`. */
  readonly problems: readonly string[];
}

/** The streams that `choose` takes, by manifest and place. */
export async function readStreams(
  choose: (name: string, at: number) => boolean,
  onProblem: (problem: string) => void = () => {},
): Promise<Outcome> {
  const vendor = await startVendor();
  const dispatcher = new Agent({ keepAliveTimeout: 1000 });
  const problems: string[] = [];
  let total = 0;
  for (const name of names) {
    if (!choose(name, 0)) continue;
    const manifest = loadManifest(textOf(name));
    const known = await inspectStreams(manifest).catch(() => []);
    for (const [at, { name: stream, refused }] of known.entries()) {
      if (refused || !choose(name, at)) continue;
      total++;
      const problem = await readTwice(vendor, dispatcher, manifest, stream).catch((error: Error) => error.message);
      if (!problem) continue;
      problems.push(`${name}/${stream}: ${problem}`);
      onProblem(`${name}/${stream}: ${problem}`);
    }
  }
  await dispatcher.close();
  await vendor.close();
  return { total, problems };
}

async function readTwice(
  vendor: Vendor,
  dispatcher: Agent,
  manifest: Manifest,
  name: string,
): Promise<string | undefined> {
  const component = (manifest.resolved["streams"] as Json[]).find((each) => each["name"] === name) ?? {};
  const config = configOf(manifest, component);
  vendor.serve(component, config);
  const open = () => connect(vendor, dispatcher, manifest, config).stream(name);
  const stream = await open();
  const first = await read(stream);
  const refused = vendor.requests.find((each) => each.refused !== null)?.refused;
  if (refused) return refused;
  if (first.records === 0)
    return `no record in ${vendor.requests.length} requests: ${vendor.requests.map(({ stream: of, records, url }) => `${url} ${of} ${records}`).slice(-3)}`;
  const own = vendor.requests.filter((each) => each.stream === name);
  const paginated = (retrieverOf(component)["paginator"] as Json | undefined)?.["type"] === "DefaultPaginator";
  if (paginated) {
    const ends = own.filter(({ page }) => page === PAGES).length;
    const starts = own.filter(({ page }) => page === 1).length;
    if (ends === 0 || ends !== starts) return `the second page was asked for ${ends} times, the first ${starts} times`;
    if (own.some(({ page }) => page > PAGES + 1)) return "pages beyond the end were asked for";
  }
  if (!stream.cursorField) return undefined;
  const { cursor } = first.state as { cursor: string | null };
  if (!cursor) return "the state did not advance";
  const asked = own.map(({ url, body }) => `${url} ${body}`);
  vendor.serve(component, config);
  await read(await open(), first.state);
  const again = vendor.requests.filter((each) => each.stream === name);
  if (again.length > own.length) return `the second read asks more (${again.length}) than the first (${own.length})`;
  const sync = component["incremental_sync"] as Json;
  const filtered =
    !sync["lookback_window"] &&
    isRecord(sync["start_time_option"]) &&
    sync["is_client_side_incremental"] !== true &&
    sync["is_data_feed"] !== true;
  if (!filtered || again.length === 0) return undefined;
  return again.every(({ url, body }) => asked.includes(`${url} ${body}`))
    ? "the second read asks as the first"
    : undefined;
}

type Manifest = ReturnType<typeof loadManifest>;

/** Waits take no time. */
function connect(vendor: Vendor, dispatcher: Agent, manifest: Manifest, config: Json) {
  let waited = 0;
  return createConnector(manifest, {
    config,
    dispatcher,
    rewrite: `*=${vendor.origin}`,
    clock: { now: () => Date.now() + waited, monotonic: () => performance.now() + waited },
    signal: AbortSignal.timeout(20_000),
    sleep: async (ms) => {
      waited += ms;
    },
  });
}

/** Reads a stream to its end: how many records, and the last state. */
export async function read(stream: Stream, state?: unknown): Promise<{ records: number; state: unknown }> {
  let records = 0;
  let last: unknown;
  for await (const event of stream.read(state)) {
    if (event.type === "records") records += event.records.length;
    else last = event.state;
  }
  return { records, state: last };
}

const jinja = createInterpolator();

/** A configuration that the manifest can be read with. */
function configOf(manifest: Manifest, component: Json): Json {
  const config = sample(manifest.configSchema) as Json;
  for (const key of Object.keys(config))
    if (/^(end|until|to_|stop)|end_?(date|time)/i.test(key))
      config[key] = dateLike(String(config[key]), manifest, key, new Date().toISOString());
    else if (/start|date|since|from/i.test(key) && typeof config[key] === "string")
      config[key] = dateLike(String(config[key]), manifest, key, from);
  const required = (manifest.configSchema["required"] ?? []) as string[];
  for (const [key, value] of Object.entries(config))
    if (Array.isArray(value) && !required.includes(key)) delete config[key];
  // Defaults that are schemas: the first choice is meant.
  for (const [key, property] of Object.entries((manifest.configSchema["properties"] ?? {}) as Record<string, Json>))
    if (isRecord(config[key]) && isRecord(config[key]["properties"]))
      config[key] = sample({ ...property, default: undefined });
  // The way to authenticate, where the schema does not say which there are.
  const choice = (retrieverOf(component)["requester"] as Json | undefined)?.["authenticator"] as Json | undefined;
  if (choice?.["type"] === "SelectiveAuthenticator") {
    const [first = ""] = Object.keys(choice["authenticators"] as Json);
    const path = choice["authenticator_selection_path"] as string[];
    const known = path.reduce<unknown>((value, key) => (isRecord(value) ? value[key] : undefined), config);
    if (known === undefined) place(config, path, first);
  }
  // A base address that is the user's.
  const base = String((retrieverOf(component)["requester"] as Json | undefined)?.["url_base"] ?? "");
  const [, name] = /^\{\{\s*config(?:\[['"]|\.)(\w+)/.exec(base) ?? [];
  if (name !== undefined && !URL.canParse(jinja.text(base, { config }))) config[name] = "https://sample.test";
  return config;
}

// A range of some days: a step of a day must not make a thousand requests.
const from = new Date(Date.now() - 15 * 86_400_000).toISOString();

/** The day, in the form that the configuration's schema asks for. */
function dateLike(given: string, manifest: Manifest, key: string, day: string): string {
  const property = (
    manifest.configSchema["properties"] as Record<string, { pattern?: string; format?: string }> | undefined
  )?.[key];
  if (/^\d{4}-\d\d-\d\d/.test(given)) return given.replace(/^\d{4}-\d\d-\d\d/, day.slice(0, 10));
  return property?.format === "date" || (property?.pattern && !/T/.test(property.pattern))
    ? day.slice(0, 10)
    : `${day.slice(0, 19)}Z`;
}

if (import.meta.main) {
  const wanted = process.argv[2] ?? "";
  const say = (line: string): void => void process.stdout.write(`${line}\n`);
  const { total, problems } = await readStreams((name) => name.includes(wanted), say);
  say(`${total} streams, ${problems.length} problems`);
}
