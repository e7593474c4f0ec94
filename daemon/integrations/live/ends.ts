// From a connection to the end of a sync that a worker can open: one URL with its credentials, and an address that may be reached.
import { isIPv6 } from "node:net";
import { MagicError } from "#contract/errors.ts";
import type { SyncEnd } from "#contract/sync.ts";
import type { Egress } from "#daemon/egress/egress.ts";
import { isInCode } from "../connectors/open.ts";
import { markedSecrets, type Schema } from "../connectors/secret-settings.ts";
import { databasePlace, serverUrl } from "../engine/server-url.ts";
import type { OpenConnection } from "../execution.ts";
import { checkBounded, fileOf } from "./local-files.ts";

const PORTS: Readonly<Record<string, number>> = {
  "postgres:": 5432,
  "postgresql:": 5432,
  "mysql:": 3306,
  "mariadb:": 3306,
  "https:": 443,
  "http:": 80,
};

export interface EndPorts {
  readonly egress: Egress;
  /** A declarative connector's manifest by its id; null: there is none. */
  manifest(id: string): Promise<string | null>;
  /** JSON schema of a connector's configuration. */
  schema(id: string): Promise<Schema>;
  /** The project's: relative paths begin there. */
  readonly root: string;
}

/** Throws invalid_request where the connection has no URL, egress_blocked where its host must not be reached. */
export async function endOf(
  connection: OpenConnection,
  object: string,
  { egress, manifest, schema, root }: EndPorts,
): Promise<SyncEnd> {
  const { provider } = connection.record;
  if (!isInCode(provider)) return declarativeEnd(connection, object, await manifest(provider), await schema(provider));
  const url = urlOf({ provider, ...connection });
  if (url === undefined)
    throw new MagicError(
      "invalid_request",
      `Connection ${connection.record.id} (${provider}) has no url in its config.`,
    );
  if (connection.bounded) checkBounded(url, root);
  const file = fileOf(url, root);
  const end = { url: file ?? url, object, credentials: textsOf(connection.credentials) };
  if (file !== null) return /^sqlite:/i.test(url) ? { ...end, url: `sqlite:${file}` } : end;
  const server = serverUrl(url);
  const defaultPort = PORTS[server.protocol];
  // What no connector takes, the worker refuses by name.
  if (defaultPort === undefined) return end;
  const place = server.protocol.startsWith("http")
    ? { host: server.hostname, port: Number(server.port || defaultPort) }
    : databasePlace(server, defaultPort);
  // A socket is this machine: it may be reached where loopback at this port may.
  const socket = place.host.startsWith("/");
  const [address] = await egress.addresses(socket ? "127.0.0.1" : place.host, place.port);
  if (address === undefined) throw new MagicError("unreachable", `${place.host} has no address.`);
  return socket ? end : { ...end, address };
}

/** The URL or path that a connection's configuration means, with its credentials; undefined: there is none. */
export function urlOf({
  provider,
  config,
  credentials,
}: Pick<OpenConnection, "config" | "credentials"> & { readonly provider: string }): string | undefined {
  const text = (value: unknown) =>
    typeof value === "string" && value !== "" ? value : typeof value === "number" ? String(value) : undefined;
  const given =
    text(config["url"]) ??
    text(credentials["url"]) ??
    text(config["path"]) ??
    text(config["file"]) ??
    fromParts(provider, config, text);
  if (given === undefined) return undefined;
  const user =
    text(credentials["username"]) ?? text(credentials["user"]) ?? text(config["username"]) ?? text(config["user"]);
  const password = text(credentials["password"]) ?? text(config["password"]);
  if ((user === undefined && password === undefined) || !/^(postgres(ql)?|mysql|mariadb):/i.test(given)) return given;
  // A URL without a host takes no user.
  const url = serverUrl(given.replace(/^([a-z]+:\/\/)(?=[/?#]|$)/i, "$1localhost"));
  if (user !== undefined) url.username = encodeURIComponent(user);
  if (password !== undefined) url.password = encodeURIComponent(password);
  return url.href;
}

function fromParts(
  provider: string,
  config: OpenConnection["config"],
  text: (value: unknown) => string | undefined,
): string | undefined {
  const host = text(config["host"]);
  if (host === undefined || (provider !== "postgres" && provider !== "mysql")) return undefined;
  const port = text(config["port"]);
  const database = text(config["database"]) ?? text(config["dbname"]) ?? "";
  // `db.example:5433` is a host with its port, `/run/postgresql` where a socket lies.
  const place = isIPv6(host) ? `[${host}]` : host.startsWith("/") ? encodeURIComponent(host) : host;
  return `${provider}://${place}${port === undefined ? "" : `:${port}`}/${encodeURIComponent(database)}`;
}

function declarativeEnd(
  { record, config, credentials, place }: OpenConnection,
  object: string,
  manifest: string | null,
  schema: Schema,
): SyncEnd {
  if (manifest === null) throw new MagicError("invalid_request", `There is no connector ${record.provider} any more.`);
  const secrets = [...Object.values(textsOf(credentials)), ...markedSecrets(config, schema)];
  const connector = { id: record.provider, manifest, config: { ...config, ...credentials }, secrets };
  return { url: `connector://${record.provider}`, object, connector, ...(place === undefined ? {} : { place }) };
}

function textsOf(credentials: OpenConnection["credentials"]): Record<string, string> {
  const pairs = Object.entries(credentials);
  return Object.fromEntries(pairs.filter((pair): pair is [string, string] => typeof pair[1] === "string"));
}
