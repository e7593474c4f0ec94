// A change to a connection's sealed part, between others' changes.
import type { Storage } from "#daemon/storage/storage.ts";
import type { ConnectionRecord } from "#daemon/storage/tables/connection.ts";
import { type Clock, rfc3339 } from "#shared/clock.ts";
import { untilKept } from "../changes.ts";
import { missing } from "../missing.ts";
import type { ConnectionSecret, ConnectionSecrets } from "./secret.ts";

export interface SecretPorts {
  readonly storage: Storage;
  readonly secrets: ConnectionSecrets;
  readonly clock: Clock;
}

/** Durable when it resolves. @throws MagicError `not_found` where the connection is gone, `conflict` where others change it all the time. */
export async function changeSecret(
  { storage, secrets, clock }: SecretPorts,
  id: string,
  make: (held: ConnectionSecret) => ConnectionSecret,
): Promise<ConnectionRecord> {
  const environment = "live" as const;
  const connections = storage.units.connection;
  return untilKept("connection", async () => {
    const current = await connections.get({ id, environment });
    if (current === null) throw missing("connection", id);
    const { name, health, metadata, revision } = current;
    const saved = await connections.update({
      ...{ id, environment, revision, body: { name, health, metadata }, now: rfc3339(clock.now()) },
      secret: secrets.seal(current, make(secrets.read(current))),
    });
    if (saved === null) throw missing("connection", id);
    return saved;
  });
}
