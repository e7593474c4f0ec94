import { readdirSync, readFileSync } from "node:fs";
import { Agent } from "undici";
import { afterAll, beforeAll, expect, test } from "vitest";
import { createConnector } from "#daemon/integrations/connectors/declarative/connector.ts";
import { inspectStreams, sample } from "#daemon/integrations/connectors/declarative/inspect.ts";
import { loadManifest } from "#daemon/integrations/connectors/declarative/manifest/load.ts";
import { sharedPath } from "#test/shared.ts";
import { startVendor, type Vendor } from "./vendor.ts";

const folder = sharedPath("airbyte-manifests");
const names = folder ? readdirSync(folder).filter((name) => name.startsWith("source-")) : [];
const textOf = (name: string): string => readFileSync(`${folder}/${name}/manifest.yaml`, "utf8");

let vendor: Vendor;
const dispatcher = new Agent({ keepAliveTimeout: 1000 });
beforeAll(async () => {
  vendor = await startVendor();
});
afterAll(async () => {
  await dispatcher.close();
  await vendor.close();
});

test.skipIf(!folder)(
  "every public manifest builds every stream; those with Python components name them",
  { timeout: 120_000 },
  async () => {
    const refused: string[] = [];
    let streams = 0;
    for (const name of names) {
      try {
        for (const stream of await inspectStreams(loadManifest(textOf(name)))) {
          streams++;
          if (stream.refused && !/written in Python/.test(stream.refused))
            refused.push(`${name}/${stream.name}: ${stream.refused}`);
        }
      } catch (error) {
        if (!/written in Python/.test(String(error))) refused.push(`${name}: ${error}`);
      }
    }
    expect(refused).toEqual([]);
    expect(streams).toBeGreaterThan(1000);
  },
);

test.skipIf(!folder)(
  "streams of public manifests read their pages, and the second read goes on from the state",
  { timeout: 120_000 },
  async () => {
    const problems: string[] = [];
    let total = 0;
    for (const name of names) {
      const manifest = loadManifest(textOf(name));
      let known: Awaited<ReturnType<typeof inspectStreams>>;
      try {
        known = await inspectStreams(manifest);
      } catch {
        continue;
      }
      for (const { name: streamName, refused } of known.slice(0, process.env["MAGIC_TEST_DEEP"] ? 100 : 1)) {
        if (refused) continue;
        total++;
        const problem = await readTwice(manifest, streamName).catch((error: Error) => error.message);
        if (problem) problems.push(`${name}/${streamName}: ${problem}`);
      }
    }
    if (process.env["SHOW"]) process.stderr.write(`${total} ${problems.length}\n${problems.join("\n")}\n`);
    expect(1 - problems.length / total).toBeGreaterThan(0.65);
  },
);

async function readTwice(manifest: ReturnType<typeof loadManifest>, streamName: string): Promise<string | undefined> {
  const component =
    ((manifest.resolved["streams"] ?? []) as Record<string, unknown>[]).find((each) => each["name"] === streamName) ??
    {};
  vendor.serve(component);
  const config = sample(manifest.configSchema) as Record<string, unknown>;
  for (const key of Object.keys(config))
    if (/start|date|since|from/i.test(key) && typeof config[key] === "string")
      config[key] = startDate(String(config[key]), manifest, key);
  const connector = createConnector(manifest, {
    config,
    dispatcher,
    rewrite: `*=${vendor.origin}`,
    signal: AbortSignal.timeout(1500),
  });
  const stream = await connector.stream(streamName);
  let records = 0;
  let state: unknown;
  for await (const event of stream.read()) {
    if (event.type === "records") records += event.records.length;
    else state = event.state;
  }
  const paginator = (component["retriever"] as Record<string, unknown> | undefined)?.["paginator"] as
    | Record<string, unknown>
    | undefined;
  const paginated = paginator !== undefined && paginator["type"] === "DefaultPaginator";
  if (!records) return `no record in ${vendor.requests.length} requests`;
  const pages = Math.max(...vendor.requests.map((request) => request.page));
  if (paginated && pages !== 2) return `${pages} pages instead of 2`;
  if (!stream.cursorField) return undefined;
  const { cursor } = state as { cursor: string | null };
  if (!cursor) return "the state did not advance";
  const first = vendor.requests.length;
  vendor.serve(component);
  for await (const event of stream.read(state)) void event;
  return vendor.requests.length > first
    ? `the second read asks more (${vendor.requests.length}) than the first (${first})`
    : undefined;
}

// A range of some days: a step of a day must not make a thousand requests.
const from = new Date(Date.now() - 15 * 86_400_000).toISOString();

function startDate(given: string, manifest: ReturnType<typeof loadManifest>, key: string): string {
  const property = (
    manifest.configSchema["properties"] as Record<string, { pattern?: string; format?: string }> | undefined
  )?.[key];
  if (/^\d{4}-\d\d-\d\d/.test(given)) return given.replace(/^\d{4}-\d\d-\d\d/, from.slice(0, 10));
  return property?.format === "date" || (property?.pattern && !/T/.test(property.pattern))
    ? from.slice(0, 10)
    : `${from.slice(0, 19)}Z`;
}
