// A live connection as a database for controllers: its URL, opened, and the address that may be reached.
import { MagicError } from "#contract/errors.ts";
import type { OpenConnection } from "../execution.ts";
import { type EndPorts, endOf } from "./ends.ts";

const providers = new Set(["postgres", "mysql", "sqlite"]);

export interface ConnectedDatabase {
  readonly url: string;
  readonly address?: string;
}

/** @throws MagicError `config_invalid` where it is no database, `egress_blocked` where its host must not be reached. */
export async function databaseOf(connection: OpenConnection, ports: EndPorts): Promise<ConnectedDatabase> {
  const { id, provider } = connection.record;
  if (!providers.has(provider))
    throw new MagicError(
      "config_invalid",
      `The connection ${id} (${provider}) is no database: use one of ${[...providers].join(", ")}.`,
    );
  const { url, address } = await endOf(connection, "", ports);
  const named = provider === "sqlite" && !url.startsWith("sqlite:") ? `sqlite:${url}` : url;
  return address === undefined ? { url: named } : { url: named, address };
}
