// A declarative connector as a source of the sync engine: records become rows of the columns that the stream's schema names.
import type { DiscoveredObject, SyncEnd } from "#contract/sync.ts";
import type { TokenKeeper } from "#contract/tokens.ts";
import { createEgress, type Egress } from "#daemon/egress/egress.ts";
import { formatObjectName } from "../../engine/name.ts";
import { pickColumns } from "../../engine/pick.ts";
import type { Batch, ReadRequest, Source, SourceStream, StreamState } from "../../engine/source.ts";
import { type Connector, createConnector, sleep } from "./connector.ts";
import { rewriteTargets } from "./http/rewrite.ts";
import { isRecord } from "./manifest/component.ts";
import { type PackedPage, packerOf } from "./read/pack.ts";
import { rowsOf, tableOf } from "./rows.ts";
import type { Stream } from "./stream.ts";

/** The vendor may be asked for each: hundreds of objects at once would only meet its limit. */
const SCHEMAS_AT_ONCE = 8;

export interface DeclarativeSourceOptions {
  readonly connector: NonNullable<SyncEnd["connector"]>;
  readonly credentials?: Readonly<Record<string, string>>;
  /** `host:port` pairs of private addresses that may be reached. */
  readonly allowPrivate?: readonly string[];
  readonly tokens?: TokenKeeper | undefined;
  readonly env?: NodeJS.ProcessEnv;
}

export function declarativeSource({
  connector,
  credentials = {},
  allowPrivate = [],
  tokens,
  env = process.env,
}: DeclarativeSourceOptions): Source {
  const rewrite = env["MAGIC_HTTP_REWRITE"];
  const allowed = [...allowPrivate, ...rewriteTargets(rewrite)];
  const manifest = typeof connector.manifest === "string" ? connector.manifest : JSON.stringify(connector.manifest);
  const config = { ...(isRecord(connector.config) ? connector.config : {}), ...credentials };
  let egress: Egress | undefined;
  const open = (signal: AbortSignal, waiting: ReadRequest["waiting"]): Connector => {
    egress ??= createEgress({ allowPrivate: () => allowed });
    let answers = 0;
    let last = "the vendor";
    const tell = (what: string): void => {
      last = what;
      waiting(what);
    };
    return createConnector(manifest, {
      config,
      dispatcher: egress.dispatcher,
      rewrite,
      signal,
      tokens,
      log: (_level, message) => tell(message),
      // A report that the vendor prepares, pages of which nothing is wanted: what answers has not stalled.
      onResponse: () => tell(`records; ${++answers} answers came so far`),
      // The vendor asks for it, or the manifest's call rates do: who sits it out has not stalled.
      async sleep(ms) {
        waiting(last, ms);
        await sleep(ms, signal);
      },
    });
  };
  const never = new AbortController().signal;
  return {
    check: () => open(never, () => {}).check(),
    async discover() {
      const streams = await open(never, () => {}).streams();
      const objects: DiscoveredObject[] = [];
      for (let from = 0; from < streams.length; from += SCHEMAS_AT_ONCE)
        objects.push(...(await Promise.all(streams.slice(from, from + SCHEMAS_AT_ONCE).map(objectOf))));
      return objects;
    },
    async open(request) {
      const name =
        request.object.schema === null ? request.object.name : `${request.object.schema}.${request.object.name}`;
      return openStream(await open(request.signal, request.waiting).stream(name), request);
    },
    async close() {
      await tokens?.idle?.();
      await egress?.close();
    },
  };
}

async function objectOf(stream: Stream): Promise<DiscoveredObject> {
  return {
    name: formatObjectName({ schema: null, name: stream.name }),
    schema: (await stream.schema()) ?? { type: "object" },
    primary_key: stream.primaryKey.map((path) => path.join(".")),
    cursor_candidates: stream.cursorField ? [stream.cursorField] : [],
    records: null,
  };
}

async function openStream(stream: Stream, request: ReadRequest): Promise<SourceStream> {
  const table = tableOf(await stream.schema(), stream);
  const schema = pickColumns(table, request, stream.name);
  let state: StreamState | null = request.mode === "incremental" ? request.state : null;
  const packed = (page: PackedPage): Batch => {
    const tuples = page.tuples();
    if (!tuples) return rowsOf(page.records(), schema, table);
    const rows = () => rowsOf(page.records(), schema, table).rows;
    return { rows: [], packed: { tuples: [tuples], count: page.count, rows, done: page.done }, bytes: tuples.length };
  };
  return {
    schema,
    snapshot: false,
    changed: true,
    warnings: [],
    partitions: [{ id: "all", records: null }],
    rawFormats: [],
    endState: () => state,
    async *read(_partition, types): AsyncGenerator<Batch> {
      request.waiting(`records of ${stream.name}`);
      const pack = types && packerOf(schema, table, types);
      const from = state ?? undefined;
      for await (const event of pack ? stream.readPacked(from, pack) : stream.read(from)) {
        if (event.type === "records") yield rowsOf(event.records, schema, table);
        else if (event.type === "packed") yield packed(event.page);
        else {
          state = { ...event.state };
          yield { rows: [], bytes: 0, state };
        }
      }
    },
    close: async () => {},
  };
}
