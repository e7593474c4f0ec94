// From a URL or a path to a connector: the one place that knows them all. A driver is loaded when it is needed.
import { MagicError } from "#contract/errors.ts";
import type { StateKeeper, SyncEnd } from "#contract/sync.ts";
import type { TokenKeeper } from "#contract/tokens.ts";
import type { Destination } from "../engine/destination.ts";
import { serverUrl } from "../engine/server-url.ts";
import type { Source } from "../engine/source.ts";

const kinds = ["postgres", "mysql", "sqlite", "csv", "jsonl", "parquet", "http"] as const;
type ConnectorKind = (typeof kinds)[number];

/** True for the connectors of this folder; the others have a manifest. */
export const isInCode = (provider: string): boolean => kinds.some((kind) => kind === provider);

const byScheme: Readonly<Record<string, ConnectorKind>> = {
  "postgres:": "postgres",
  "postgresql:": "postgres",
  "mysql:": "mysql",
  "mariadb:": "mysql",
  "sqlite:": "sqlite",
  "http:": "http",
  "https:": "http",
};
const byEnding: Readonly<Record<string, ConnectorKind>> = {
  sqlite: "sqlite",
  sqlite3: "sqlite",
  db: "sqlite",
  csv: "csv",
  tsv: "csv",
  jsonl: "jsonl",
  ndjson: "jsonl",
  parquet: "parquet",
};

const CONNECTORS = "use postgres://, mysql://, http(s)://, or a path that ends in .sqlite, .parquet, .csv or .jsonl";

/** Which connector a URL or path belongs to; the path without its scheme. */
export function connectorOf(url: string): { readonly kind: ConnectorKind; readonly path: string } {
  const scheme = /^([a-z][a-z0-9+.-]*:)(\/\/)?/i.exec(url);
  const kind = scheme ? byScheme[(scheme[1] ?? "").toLowerCase()] : undefined;
  if (kind && kind !== "sqlite") {
    serverUrl(url);
    return { kind, path: url };
  }
  const local = url.startsWith("file://");
  if (scheme?.[2] && !kind && !local)
    throw new MagicError("invalid_request", `The scheme ${scheme[1]} belongs to no connector: ${CONNECTORS}.`);
  const path = local ? decodeURIComponent(serverUrl(url).pathname) : kind ? url.replace(/^sqlite:(\/\/)?/i, "") : url;
  if (kind) return { kind, path };
  const ending = /\.([A-Za-z0-9]+)$/.exec(path)?.[1]?.toLowerCase() ?? "";
  const found = byEnding[ending];
  if (found) return { kind: found, path };
  if (ending === "duckdb")
    throw new MagicError("not_supported", "DuckDB files are not there yet: use .parquet, .sqlite, .csv or .jsonl.");
  if (/^(gz|zst|bz2|xz|zip)$/.test(ending))
    throw new MagicError(
      "invalid_request",
      `${JSON.stringify(path)} is a packed file, and those are neither read nor written: unpack it first (e.g. with gunzip), and name what comes out.`,
    );
  throw new MagicError("invalid_request", `The path ${JSON.stringify(path)} belongs to no connector: ${CONNECTORS}.`);
}

/** `allowPrivate`: private addresses that a declarative connector's requests may reach. */
export async function openSource(
  end: SyncEnd,
  allowPrivate: readonly string[] = [],
  tokens?: TokenKeeper,
): Promise<Source> {
  if (end.connector) {
    const { declarativeSource } = await import("./declarative/source.ts");
    return declarativeSource({ connector: end.connector, allowPrivate, tokens, credentials: end.credentials ?? {} });
  }
  const { kind, path } = connectorOf(end.url);
  switch (kind) {
    case "sqlite":
      return (await import("./sqlite/source.ts")).sqliteSource(path);
    case "csv":
    case "jsonl":
    case "parquet":
      return (await import("./files/source.ts")).fileSource(path, kind);
    case "mysql":
      return (await import("./mysql/source.ts")).mysqlSource(pinned(end));
    case "postgres":
      return (await import("./postgres/source.ts")).postgresSource(pinned(end));
    default:
      throw new MagicError(
        "not_supported",
        "An HTTP address can be a destination only; as a source it needs a declarative connector.",
      );
  }
}

/** What `preload` knows of an end; undefined: nothing worth it. */
export function preloadKind(end: SyncEnd): string | undefined {
  if (end.connector) return "declarative";
  return /^postgres(ql)?:/i.test(end.url) ? "postgres" : undefined;
}

/** Loads what takes long to load, before an end of that kind is known. */
export async function preload(kinds: readonly string[]): Promise<void> {
  if (kinds.includes("declarative")) await import("./declarative/source.ts");
  if (kinds.includes("postgres"))
    await Promise.all([import("./postgres/destination.ts"), import("pg"), import("pg-copy-streams")]);
}

const pinned = ({ url, address }: SyncEnd) => ({ url, ...(address === undefined ? {} : { address }) });

/** For checks and discovery: a source, or where there is none of its kind a destination. */
export async function openEither(
  end: SyncEnd,
  allowPrivate: readonly string[],
  tokens: TokenKeeper,
): Promise<Pick<Source, "check" | "discover" | "close">> {
  if (!end.connector && connectorOf(end.url).kind === "http")
    return (await import("./http/destination.ts")).httpDestination(end);
  return openSource(end, allowPrivate, tokens);
}

/** `states`: keeps the state where the destination cannot; absent: the spec's state file does. */
export async function openDestination(end: SyncEnd, states?: StateKeeper): Promise<Destination> {
  if (end.connector) throw new MagicError("not_supported", `${end.connector.id} is a source only.`);
  const { kind, path } = connectorOf(end.url);
  switch (kind) {
    case "sqlite":
      return (await import("./sqlite/destination.ts")).sqliteDestination(path);
    case "csv":
    case "jsonl":
    case "parquet":
      return (await import("./files/destination.ts")).fileDestination(path, kind);
    case "http":
      return (await import("./http/destination.ts")).httpDestination(end, states);
    case "mysql":
      return (await import("./mysql/destination.ts")).mysqlDestination(pinned(end));
    case "postgres":
      return (await import("./postgres/destination.ts")).postgresDestination(pinned(end));
  }
}
