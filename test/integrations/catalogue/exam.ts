// The examination of a connector: its streams read from the mock vendor over HTTP and the egress guard. What it says is the grade.
//   G0  builds and simulates;  G1  every stream passes;  G2  proven against the real vendor (nothing here can give that)
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { isDeepStrictEqual } from "node:util";
import { isMagicError } from "#contract/errors.ts";
import { createEgress, type Egress } from "#daemon/egress/egress.ts";
import { definitionsFolder } from "#daemon/integrations/catalogue/catalogue.ts";
import { type Connector, createConnector } from "#daemon/integrations/connectors/declarative/connector.ts";
import { loadManifest, type Manifest } from "#daemon/integrations/connectors/declarative/manifest/load.ts";
import { rowsOf, tableOf } from "#daemon/integrations/connectors/declarative/rows.ts";
import type { Stream } from "#daemon/integrations/connectors/declarative/stream.ts";
import { type MockServer, serve } from "./serve.ts";
import type { Collection, Rec, Vendor } from "./vendor.ts";

export interface Report {
  readonly grade: "G0" | "G1";
  /** What each stream failed in; null: it passed. */
  readonly streams: Readonly<Record<string, string | null>>;
  /** What is wrong with the whole: no mock vendor, a check that fails. */
  readonly problem: string | null;
}

const vendorsFolder = join(import.meta.dirname, "vendors");

/** `change`: another definition than the one that there is, to see that its faults are found. */
export async function examine(id: string, change = (text: string): string => text): Promise<Report> {
  const file = join(vendorsFolder, `${id}.ts`);
  if (!existsSync(file)) return { grade: "G0", streams: {}, problem: "there is no mock vendor" };
  const { default: vendor } = (await import(file)) as { default: Vendor };
  const manifest = loadManifest(change(readFileSync(join(definitionsFolder(), `${id}.yaml`), "utf8")));
  const server = await serve(vendor);
  const egress = createEgress({ allowPrivate: () => [new URL(server.origin).host] });
  try {
    return await examineAll({ vendor, manifest, server, egress });
  } finally {
    await egress.close();
    await server.close();
  }
}

interface Desk {
  readonly vendor: Vendor;
  readonly manifest: Manifest;
  readonly server: MockServer;
  readonly egress: Egress;
}

async function examineAll(desk: Desk): Promise<Report> {
  const streams: Record<string, string | null> = {};
  let problem: string | null = null;
  const { connector } = connect(desk);
  try {
    desk.server.examine(Object.keys(desk.vendor.collections)[0] ?? "");
    await connector.check();
  } catch (error) {
    problem = `check: ${said(error, desk)}`;
  }
  for (const { name } of await connector.streams()) {
    const collection = desk.vendor.collections[name];
    streams[name] = collection
      ? await examineStream(desk, name, collection).then(
          () => null,
          (error: unknown) => said(error, desk),
        )
      : "the mock vendor has no such collection";
  }
  const passed = problem === null && Object.values(streams).every((each) => each === null);
  return { grade: passed && Object.keys(streams).length > 0 ? "G1" : "G0", streams, problem };
}

/** With the vendor's own complaints: most often they say what is wrong with the definition. */
function said(error: unknown, { server }: Desk): string {
  const refused = server.log.filter((each) => each.complaint).map((each) => `${each.complaint} (${each.query})`);
  return [(error as Error).message, ...new Set(refused)].slice(0, 4).join("; vendor: ");
}

const NOW = Date.parse("2026-05-15T00:00:00Z");

/** A connector whose waits take no time, and are counted. */
function connect({ vendor, manifest, server, egress }: Desk): { connector: Connector; waited: () => number } {
  let waited = 0;
  const clock = { now: () => NOW + waited, monotonic: () => waited };
  const connector = createConnector(manifest, {
    config: vendor.config,
    dispatcher: egress.dispatcher,
    rewrite: `*=${server.origin}`,
    clock,
    signal: AbortSignal.timeout(60_000),
    sleep: async (ms) => {
      waited += ms;
    },
  });
  return { connector, waited: () => waited };
}

interface Reading {
  readonly records: Rec[];
  readonly state: unknown;
  readonly waitedMs: number;
}

async function read(desk: Desk, name: string, state?: unknown): Promise<Reading> {
  const { connector, waited } = connect(desk);
  const records: Rec[] = [];
  let last: unknown;
  for await (const event of (await connector.stream(name)).read(state)) {
    if (event.type === "records") records.push(...event.records);
    else last = event.state;
  }
  return { records, state: last, waitedMs: waited() };
}

/** What is asked of every value says what is wrong only when it is. */
function expect(holds: boolean, otherwise: string | (() => string)): asserts holds {
  if (!holds) throw new Error(typeof otherwise === "string" ? otherwise : otherwise());
}

async function examineStream(desk: Desk, name: string, collection: Collection): Promise<void> {
  const { server } = desk;
  const { connector } = connect(desk);
  const stream = await connector.stream(name);
  await discovers(stream);
  server.examine(name);
  server.limitOnce();
  const first = await read(desk, name);
  const all = server.records();
  await isExact(stream, collection, first.records, all);
  readsPages(server, name, collection);
  obeysLimit(desk, first.waitedMs);
  await resumes(desk, stream, collection, first.state, all.length);
  await refuses(desk, name);
}

async function discovers(stream: Stream): Promise<void> {
  const schema = await stream.schema();
  const properties = Object.keys((schema?.["properties"] as object | undefined) ?? {});
  expect(properties.length > 1, "discover: the schema names no fields");
  expect(stream.primaryKey.length > 0, "discover: there is no primary key");
  for (const path of stream.primaryKey)
    expect(properties.includes(path[0] ?? ""), `discover: the key ${path.join(".")} is not in the schema`);
}

/** Every record once, with everything that the vendor sent, and each value one that its column can hold. */
async function isExact(
  stream: Stream,
  collection: Collection,
  got: readonly Rec[],
  sent: readonly { readonly record: Rec; readonly parent: Rec }[],
): Promise<void> {
  const keyOf = (record: Rec): string =>
    JSON.stringify(stream.primaryKey.map((path) => path.reduce<unknown>((at, key) => (at as Rec)?.[key], record)));
  const found = new Map(got.map((record) => [keyOf(record), record]));
  expect(found.size === got.length, `records: ${got.length - found.size} came twice, by the primary key`);
  const wanted = sent.map(({ record, parent }) => collection.expect?.(record, parent) ?? record);
  for (const record of wanted) {
    const read = found.get(keyOf(record));
    expect(read !== undefined, () => `records: ${keyOf(record)} is missing; ${got.length} of ${wanted.length} came`);
    for (const [field, value] of Object.entries(record))
      expect(
        isDeepStrictEqual(read[field], value),
        () =>
          `records: ${field} is ${JSON.stringify(read[field])?.slice(0, 100)}, not ${JSON.stringify(value)?.slice(0, 100)}`,
      );
  }
  expect(got.length === wanted.length, `records: ${got.length} came instead of ${wanted.length}`);
  const table = tableOf(await stream.schema(), stream);
  const [reject] = rowsOf(got, table, table).rejects;
  expect(reject === undefined, `schema: ${reject?.column} does not hold what the vendor sends: ${reject?.reason}`);
}

function readsPages({ log }: MockServer, name: string, { pages }: Collection): void {
  if (pages.kind === "none") return;
  const full = log.filter(({ collection, records }) => collection === name && records > 0);
  expect(full.length > 2, `pages: ${full.length} were read, more than two there are`);
  expect(
    // By the vendor's pages, or by asking for what comes after the latest record.
    full.some(({ continued }) => continued) || new Set(full.map(({ query }) => query)).size > 1,
    "pages: no request went on from another",
  );
}

function obeysLimit({ server, vendor }: Desk, waitedMs: number): void {
  const limits = server.log.filter(({ status }) => status === (vendor.limited.status ?? 200)).length;
  expect(limits > 0 || vendor.limited.status === undefined, "limit: the mock vendor never refused");
  const { seconds } = vendor.limited;
  expect(waitedMs >= seconds * 1000, `limit: ${waitedMs / 1000} s were waited, ${seconds} s were asked for`);
  expect(waitedMs < seconds * 10_000, `limit: ${waitedMs / 1000} s were waited, ${seconds} s were asked for`);
}

/** The second read gets what is new, and asks for little else. */
async function resumes(
  desk: Desk,
  stream: Stream,
  collection: Collection,
  state: unknown,
  before: number,
): Promise<void> {
  if (!stream.cursorField) {
    expect(!collection.since, "incremental: the vendor filters by time, and the stream has no cursor");
    return;
  }
  const { server } = desk;
  const known = new Set(server.records().map(({ record }) => JSON.stringify(record)));
  server.grow();
  server.log.length = 0;
  const second = await read(desk, stream.name, state);
  const fresh = server.records().filter(({ record }) => !known.has(JSON.stringify(record)));
  const got = new Set(
    second.records.map((record) => JSON.stringify(stream.primaryKey.map(([key]) => record[key ?? ""]))),
  );
  for (const { record, parent } of fresh) {
    const wanted = collection.expect?.(record, parent) ?? record;
    const key = JSON.stringify(stream.primaryKey.map(([name]) => wanted[name ?? ""]));
    expect(got.has(key), `incremental: the second read lost ${key}, a new record`);
  }
  const served = server.log
    .filter((each) => each.collection === stream.name)
    .reduce((total, { records }) => total + records, 0);
  // A feed without a filter is read to the end of the page that is known already.
  const again = collection.order === "newest first" && !collection.since ? 0.5 : 0.25;
  expect(
    served - fresh.length <= Math.max(before * again, 1),
    `incremental: the second read asked for ${served} records again, of ${before}; ${fresh.length} are new`,
  );
  expect(!isDeepStrictEqual(second.state, state), "incremental: the state did not advance");
}

/** Wrong credentials: told as such, with few requests, and without showing a secret. */
async function refuses(desk: Desk, name: string): Promise<void> {
  const { server } = desk;
  server.examine(name);
  server.revoked = true;
  try {
    await read(desk, name);
    expect(false, "401: wrong credentials are not noticed");
  } catch (error) {
    expect(isMagicError(error), `401: ${(error as Error).message}`);
    expect(error.code === "credentials_rejected", `401: told as ${error.code}: ${error.message}`);
    expect(!error.message.includes("secret-"), `401: the message shows a secret: ${error.message}`);
  } finally {
    server.revoked = false;
  }
  expect(server.log.length <= 4, `401: ${server.log.length} requests were made with wrong credentials`);
}
