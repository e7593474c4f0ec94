// Tokens that a connection's vendor has rotated, kept in the connection's sealed part: for runs, checks and discoveries, which refresh
// in processes of their own. One turn at a time for each connection, shared with the daemon's own refresh.
import { MagicError } from "#contract/errors.ts";
import type { KeptToken, TokenKeeper } from "#contract/tokens.ts";
import type { ConnectionRecord } from "#daemon/storage/tables/connection.ts";
import type { Turns } from "#shared/turns.ts";
import { changeSecret, type SecretPorts } from "./change-secret.ts";
import { type ConnectionSecret, isRenewable } from "./secret.ts";

// Grants that were replaced in the configuration leave their last tokens: so many grants are remembered.
const GRANTS = 8;

export type KeeperOf = (connection: string) => TokenKeeper;

/** Another access token for a connection that was authorized in a browser, where `last` is still the one that it has. */
export type Renew = (connection: string, last: string) => Promise<ConnectionRecord>;

export function createKeepers(ports: SecretPorts, turns: Turns, renew: Renew): KeeperOf {
  return (id) => ({
    async hold(grant, last) {
      const release = await turns.take(id);
      try {
        const record = await ports.storage.units.connection.get({ id, environment: "live" });
        let found = record === null ? null : ports.secrets.read(record);
        if (last !== undefined && found && isRenewable(found.credentials))
          found = ports.secrets.read(await renew(id, last));
        const kept = (token: KeptToken) => (held: ConnectionSecret) =>
          held.place === found?.place ? withToken(held, grant, token) : held;
        return {
          kept: found && keptIn(found, grant),
          save: async (token) => void (await changeSecret(ports, id, kept(token))),
          release,
        };
      } catch (error) {
        release();
        throw error;
      }
    },
  });
}

// What the provider's authorization gave stands in the credentials; what a configuration began with, beside them.
function keptIn({ credentials, tokens }: ConnectionSecret, grant: string): KeptToken | null {
  if (credentials["oauth"] !== true) return tokens?.[grant] ?? null;
  const { refresh_token, access_token, expires_at } = credentials;
  return typeof refresh_token === "string" && typeof access_token === "string"
    ? { refresh_token, access_token, expires_at: typeof expires_at === "number" ? expires_at : null }
    : null;
}

function withToken(held: ConnectionSecret, grant: string, token: KeptToken): ConnectionSecret {
  if (held.credentials["oauth"] === true) {
    // Among the credentials it would be taken for a reference to a secret of the project.
    if (JSON.stringify(token).includes("${"))
      throw new MagicError("upstream_error", "the token endpoint answered with something that is no token");
    return { ...held, credentials: { ...held.credentials, ...token } };
  }
  const others = Object.entries(held.tokens ?? {}).filter(([each]) => each !== grant);
  return { ...held, tokens: Object.fromEntries([...others.slice(1 - GRANTS), [grant, token]]) };
}
