// A connection's configuration and credentials: sealed in storage, opened and with references replaced only where they are used.
import type { KeptToken } from "#contract/tokens.ts";
import { connectionPlace } from "#daemon/secrets/places.ts";
import { type LookUp, resolveReferences } from "#daemon/secrets/references.ts";
import type { Sealer } from "#daemon/secrets/sealer.ts";
import type { ConnectionRecord } from "#daemon/storage/tables/connection.ts";
import type { OpenConnection } from "../execution.ts";

export interface ConnectionSecret {
  readonly config: Readonly<Record<string, unknown>>;
  readonly credentials: Readonly<Record<string, unknown>>;
  /** See OpenConnection. */
  readonly bounded?: boolean;
  /** Another one each time that the settings lead elsewhere: what a refresh brings that began before must not be kept. */
  readonly place?: string;
  /** Settings as the vendor told them at the last authorization: those that are still so are told anew by the next one. */
  readonly learned?: Readonly<Record<string, string>>;
  /** What the vendor has put in place of a grant of the configuration since, by the grant's digest. Never searched for references. */
  readonly tokens?: Readonly<Record<string, KeptToken>>;
}

export type Settings = Pick<ConnectionSecret, "config" | "credentials">;

/** It was authorized in a browser, and the vendor gives its daemon other access tokens. */
export function isRenewable({ oauth, refresh_token }: Settings["credentials"]): boolean {
  return oauth === true && typeof refresh_token === "string";
}

type Sealed = Pick<ConnectionRecord, "id" | "environment" | "secret">;

export interface ConnectionSecrets {
  seal(connection: Omit<Sealed, "secret">, secret: ConnectionSecret): string | null;
  /** As it was given, references and all: for a patch. */
  read(connection: Sealed): ConnectionSecret;
  /** Ready to use. @throws MagicError `invalid_request` that names a missing reference. */
  open(connection: ConnectionRecord): OpenConnection;
  /** What has been read, with references replaced. @throws MagicError `invalid_request` likewise. */
  resolve(secret: Settings): Settings;
}

export function connectionSecrets(sealer: Sealer, lookUp: LookUp): ConnectionSecrets {
  const read = (connection: Sealed): ConnectionSecret =>
    connection.secret === null
      ? { config: {}, credentials: {} }
      : (JSON.parse(sealer.open(connection.secret, connectionPlace(connection))) as ConnectionSecret);
  const resolve = ({ config, credentials }: Settings) => resolveReferences({ config, credentials }, lookUp);
  return {
    seal: (connection, secret) =>
      Object.keys(secret.config).length + Object.keys(secret.credentials).length === 0
        ? null
        : sealer.seal(JSON.stringify(secret), connectionPlace(connection)),
    read,
    open(record) {
      const { bounded = false, place, ...settings } = read(record);
      return { record, bounded, ...(place === undefined ? {} : { place }), ...resolve(settings) };
    },
    resolve,
  };
}
