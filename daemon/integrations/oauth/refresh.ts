// Access tokens of connections in use: refreshed before they end, by one for all who need one.
import { isMagicError, MagicError } from "#contract/errors.ts";
import type { Egress } from "#daemon/egress/egress.ts";
import type { Storage } from "#daemon/storage/storage.ts";
import type { ConnectionRecord } from "#daemon/storage/tables/connection.ts";
import { type Clock, rfc3339 } from "#shared/clock.ts";
import { inTurn, type Turns } from "#shared/turns.ts";
import { changeSecret } from "../connections/change-secret.ts";
import { type ConnectionSecrets, isRenewable, type Settings } from "../connections/secret.ts";
import { missing } from "../missing.ts";
import type { OAuthProvider } from "./provider.ts";
import { GrantRefused, grantedBy, requestTokens, revokeToken, type Tokens } from "./token-endpoint.ts";

export interface RefreshOptions {
  readonly storage: Storage;
  readonly egress: Egress;
  readonly secrets: ConnectionSecrets;
  readonly clock: Clock;
  readonly turns: Turns;
  readonly onEvents: () => void;
  providerOf(id: string, settings: Settings): Promise<OAuthProvider>;
}

const FRESH_FOR_MS = 60_000;
/** A run of hours must not end, and a connection not be said to have failed, for a token endpoint that was busy once. */
const TRIES = 4;

export interface Refresher {
  /** The connection, its access token good for a minute at least. Callers at the same time share one refresh. */
  fresh(connection: ConnectionRecord): Promise<ConnectionRecord>;
  /** The connection with another access token than `last`, which ended or was refused. For who has the turn at its tokens. */
  renew(id: string, last: string): Promise<ConnectionRecord>;
}

export function createRefresher(options: RefreshOptions): Refresher {
  const { egress, secrets, clock, turns, providerOf, onEvents } = options;
  const connections = options.storage.units.connection;
  const refreshing = new Map<string, Promise<ConnectionRecord>>();
  /** What came for a connection's refresh token and could not be stored, as storage was away: the vendor knows only this now. */
  const unsaved = new Map<string, Tokens>();
  const environment = "live" as const;

  return {
    fresh(connection) {
      const { credentials } = secrets.read(connection);
      if (!isRenewable(credentials) || isFresh(credentials)) return Promise.resolve(connection);
      let under = refreshing.get(connection.id);
      if (under === undefined) {
        under = inTurn(turns, connection.id, () => refresh(connection.id, isFresh)).finally(() =>
          refreshing.delete(connection.id),
        );
        refreshing.set(connection.id, under);
      }
      return under;
    },
    renew: (id, last) => refresh(id, ({ access_token }) => access_token !== last),
  };

  function isFresh({ expires_at }: Settings["credentials"]): boolean {
    return typeof expires_at === "number" && expires_at > clock.now() + FRESH_FOR_MS;
  }

  // The rotated token is durable before anybody gets the new access token: a crash between the two must not lose the grant.
  async function refresh(id: string, isGood: (held: Settings["credentials"]) => boolean): Promise<ConnectionRecord> {
    const current = await connections.get({ id, environment });
    if (current === null) throw missing("connection", id);
    const { config, credentials, place } = secrets.read(current);
    if (isGood(credentials)) return current;
    const provider = await providerOf(current.provider, secrets.resolve({ config, credentials }));
    const grant = { grant_type: "refresh_token", refresh_token: String(credentials["refresh_token"]) };
    const used = id + grant.refresh_token;
    try {
      const tokens = unsaved.get(used) ?? (await requestTokens(egress, provider, grant, clock.now(), TRIES));
      unsaved.set(used, tokens);
      const saved = await changeSecret(options, id, (held) =>
        held.place === place ? { ...held, credentials: { ...held.credentials, ...grantedBy(tokens) } } : held,
      );
      unsaved.delete(used);
      return saved;
    } catch (error) {
      if (isMagicError(error) && error.code === "not_found") await giveBack(provider, used);
      if (!(error instanceof GrantRefused)) throw error;
      const message = "The provider withdrew its authorization: authorize the connection again.";
      const now = rfc3339(clock.now());
      const health = { status: "unhealthy" as const, checked_at: now, latency_ms: null, message };
      await connections.setHealth({ id, environment, status: "disabled", health, now });
      onEvents();
      throw new MagicError("upstream_error", message, { cause: error });
    }
  }

  // The connection was deleted meanwhile: what its deletion gave back was the token before.
  async function giveBack(provider: OAuthProvider, used: string): Promise<void> {
    const token = unsaved.get(used)?.refresh_token;
    unsaved.delete(used);
    if (token) await revokeToken(egress, provider, token).catch(() => undefined);
  }
}
