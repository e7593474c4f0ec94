// Authorization of connections at their provider: begun by a caller, ended by the provider's redirect; afterwards fresh access
// tokens for whoever uses the connection.
import { createHash, randomBytes } from "node:crypto";
import { isMagicError, MagicError } from "#contract/errors.ts";
import type { Principal } from "#contract/identity.ts";
import type { OAuthCallbackQuery, StartOAuth } from "#contract/wire/oauth.ts";
import type { Egress } from "#daemon/egress/egress.ts";
import type { Sealer } from "#daemon/secrets/sealer.ts";
import type { ResourceLimit } from "#daemon/storage/resource.ts";
import type { Storage } from "#daemon/storage/storage.ts";
import type { ConnectionRecord } from "#daemon/storage/tables/connection.ts";
import { type Clock, rfc3339 } from "#shared/clock.ts";
import { newId } from "#shared/ids.ts";
import { inTurn, type Turns } from "#shared/turns.ts";
import { changed, taught } from "../connections/bound-credentials.ts";
import { boundedFor, refuseReferences } from "../connections/bounded.ts";
import { changeSecret } from "../connections/change-secret.ts";
import type { PlaceRules } from "../connections/places.ts";
import type { ConnectionSecret, ConnectionSecrets, Settings } from "../connections/secret.ts";
import { limitOf } from "../tier-limits.ts";
import {
  isWeb,
  learnedSettings,
  mayHaveAnswered,
  type OAuthDefinition,
  type OAuthProvider,
  oauthProvider,
} from "./provider.ts";
import { createRefresher, type Refresher } from "./refresh.ts";
import { GrantRefused, grantedBy, requestTokens, revokeToken, type Tokens } from "./token-endpoint.ts";

export interface OAuth extends Refresher {
  start(
    principal: Principal,
    input: StartOAuth,
  ): Promise<{ authorizationUrl: string; state: string; expiresAt: string }>;
  /**
   * Where the browser goes next, and what was authorized; null: nothing.
   *
   * @throws MagicError `invalid_request` for a state that is unknown, used or too old.
   */
  callback(query: OAuthCallbackQuery): Promise<{ location: string; connection: string | null }>;
  /** Tells the provider that the grant is over; never fails. */
  revoke(connection: ConnectionRecord): Promise<void>;
}

export interface OAuthOptions {
  readonly storage: Storage;
  readonly egress: Egress;
  readonly secrets: ConnectionSecrets;
  readonly sealer: Sealer;
  readonly clock: Clock;
  /**
   * At a connection's tokens. A run's process may be refreshing: what it got is found in the credentials afterwards. And what a
   * refresh brings, or that the old grant is over, must not come after a new authorization.
   */
  readonly turns: Turns;
  /** The project's: files below its `data` folder may be named by everybody. */
  readonly root: string;
  /** Of the provider's definition; null when there is no such connector. */
  readonly definitionOf: (provider: string) => Promise<OAuthDefinition | null>;
  /** What decides where a provider's credentials go. */
  readonly placeRules: (provider: string) => Promise<PlaceRules>;
  /** This daemon's origin, as the browser reaches it. */
  readonly origin: () => string;
  /** Events may have been put into the queue. */
  readonly onEvents: () => void;
}

interface Begun {
  readonly input: StartOAuth;
  readonly verifier: string;
  readonly redirectUri: string;
  readonly limit: ResourceLimit | null;
  /** See OpenConnection. */
  readonly bounded: boolean;
}

const STATE_LIFE_MS = 10 * 60_000;
const CALLBACK_PATH = "/v1/connections/oauth/callback";

export function createOAuth(options: OAuthOptions): OAuth {
  const { storage, egress, secrets, sealer, clock, turns, definitionOf, origin } = options;
  const connections = storage.units.connection;
  const environment = "live" as const;

  return {
    async start(principal, input) {
      if (!isWeb(input.callback_url)) throw wrong("/callback_url", "must be an http or https URL without credentials");
      refuseReferences(principal, input);
      const settings = await settingsOf(input);
      const { bounded = false } = boundedFor(principal, input.provider, settings, options.root);
      const provider = await providerOf(input.provider, settings);
      refuseSecrets(provider);
      const state = randomBytes(32).toString("base64url");
      const verifier = randomBytes(48).toString("base64url");
      const redirectUri = new URL(CALLBACK_PATH, origin()).href;
      const begun: Begun = { input, verifier, redirectUri, limit: limitOf(principal, "connections"), bounded };
      const id = digest(state);
      const expires = clock.now() + STATE_LIFE_MS;
      const payload = sealer.seal(JSON.stringify(begun), { tenant: environment, row: id, field: "state" });
      await storage.units.oauth.put({ state: { id, payload, expires_at: expires }, now: clock.now() });

      const url = new URL(provider.authorizeUrl);
      const scopes = input.scopes ?? provider.scopes;
      const parameters = {
        ...provider.authorizeParameters,
        response_type: "code",
        client_id: provider.clientId,
        redirect_uri: redirectUri,
        state,
        // RFC 7636: always S256.
        code_challenge: createHash("sha256").update(verifier).digest("base64url"),
        code_challenge_method: "S256",
        ...(scopes.length > 0 ? { scope: scopes.join(provider.scopeSeparator) } : {}),
      };
      for (const [name, value] of Object.entries(parameters)) url.searchParams.set(name, value);
      return { authorizationUrl: url.href, state, expiresAt: rfc3339(expires) };
    },

    async callback(query) {
      const { state, code, iss, error, error_description } = query;
      const id = digest(state);
      const payload = await storage.units.oauth.take({ id, now: clock.now() });
      if (payload === null)
        throw new MagicError(
          "invalid_request",
          "This authorization is unknown, was used already, or took too long: start it again.",
        );
      const begun = JSON.parse(sealer.open(payload, { tenant: environment, row: id, field: "state" })) as Begun;
      try {
        if (error !== undefined || code === undefined) {
          const problem = {
            error: error ?? "invalid_request",
            error_description: error_description ?? "no code came back",
          };
          return { location: outcome(begun, problem), connection: null };
        }
        const { connection: known } = begun.input;
        const exchanged = () => exchange(begun, code, iss, query);
        const { id: connection } = await (known === undefined ? exchanged() : inTurn(turns, known, exchanged));
        return { location: outcome(begun, { connection, status: "connected" }), connection };
      } catch (caught) {
        const known = caught instanceof MagicError || caught instanceof GrantRefused;
        if (!known) throw caught;
        const name = caught instanceof MagicError ? caught.code : "invalid_grant";
        return { location: outcome(begun, { error: name, error_description: caught.message }), connection: null };
      }
    },

    ...createRefresher({ ...options, providerOf }),

    async revoke(connection) {
      try {
        const { config, credentials } = secrets.read(connection);
        const token = credentials["refresh_token"] ?? credentials["access_token"];
        if (credentials["oauth"] !== true || typeof token !== "string") return;
        await revokeToken(
          egress,
          await providerOf(connection.provider, secrets.resolve({ config, credentials })),
          token,
        );
      } catch {
        // The grant ends by itself; the connection is gone either way.
      }
    },
  };

  // One that is authorized anew keeps its settings: only what changes needs to be given.
  async function settingsOf({ connection, provider, config = {}, credentials = {} }: StartOAuth) {
    if (connection === undefined) return { config, credentials };
    const record = await connections.get({ id: connection, environment });
    if (record === null) throw wrong("/connection", `there is no connection ${connection} in this environment`);
    if (record.provider !== provider) throw wrong("/provider", `the connection's provider is ${record.provider}`);
    return reauthorized(await options.placeRules(provider), secrets.read(record), { config, credentials });
  }

  async function providerOf(id: string, settings: Settings) {
    const definition = await definitionOf(id);
    if (definition === null) throw wrong("/provider", `there is no connector ${JSON.stringify(id)}`);
    return oauthProvider(definition, settings.config, settings.credentials);
  }

  async function exchange(
    { input, verifier, redirectUri, limit, bounded }: Begun,
    code: string,
    iss: string | undefined,
    callback: OAuthCallbackQuery,
  ): Promise<ConnectionRecord> {
    const settings = await settingsOf(input);
    const provider = await providerOf(input.provider, secrets.resolve(settings));
    // Another server's code must not be handed to this one.
    if (!(await mayHaveAnswered(provider, iss)))
      throw new MagicError("invalid_request", "the answer is not from the server that was asked: see config.issuer");
    const grant = { grant_type: "authorization_code", code, redirect_uri: redirectUri, code_verifier: verifier };
    const tokens = await requestTokens(egress, provider, grant, clock.now());
    const { config = {} } = input;
    const all = learnedSettings(provider, { callback, token: tokens.answer });
    // The caller's own word counts.
    const told = Object.fromEntries(Object.entries(all).filter(([name]) => config[name] === undefined));
    const credentials = { ...input.credentials, ...grantedBy(tokens) };
    const now = rfc3339(clock.now());
    const health = { status: "healthy" as const, checked_at: now, latency_ms: null, message: null };
    if (input.connection !== undefined) {
      const place = { id: input.connection, environment };
      const rules = await options.placeRules(input.provider);
      const saved = await changeSecret(options, place.id, (held) => ({
        ...reauthorized(rules, held, { config, credentials }, told),
        bounded: bounded || held.bounded === true,
      })).catch(async (error) => {
        // Deleted meanwhile. One that is still there may have been given what it lives by for the same account: some providers end both together.
        if (isMagicError(error) && error.code === "not_found") await giveBack(provider, tokens);
        throw error;
      });
      const found = await connections.setHealth({ ...place, status: "connected", health, now });
      return found === null || found === "stale" ? saved : found;
    }
    const id = newId("conn", clock.now());
    const connection = {
      ...{
        id,
        environment,
        provider: input.provider,
        name: input.name ?? input.provider,
        status: "connected" as const,
      },
      ...{ health, metadata: input.metadata ?? {}, created_at: now, updated_at: now, last_synced_at: null },
      secret: secrets.seal(
        { id, environment },
        { config: { ...config, ...told }, credentials, bounded, learned: told },
      ),
    };
    try {
      return await connections.create({ connection, limit });
    } catch (error) {
      await giveBack(provider, tokens);
      throw error;
    }
  }

  /** Nobody will use what was granted. */
  async function giveBack(provider: OAuthProvider, tokens: Tokens): Promise<void> {
    await revokeToken(egress, provider, tokens.refresh_token ?? tokens.access_token).catch(() => undefined);
  }
}

// What was given goes over what is held; where it leads elsewhere, the old grant goes.
function reauthorized(
  rules: PlaceRules,
  held: ConnectionSecret,
  given: Settings,
  told: Readonly<Record<string, string>> = {},
): ConnectionSecret {
  const apply = ({ config, credentials }: Settings): Settings => ({
    config: { ...config, ...given.config },
    credentials: { ...credentials, ...given.credentials },
  });
  return changed(rules, { held: taught(rules, held, told), apply, authorizing: true });
}

function outcome({ input }: Begun, parameters: Readonly<Record<string, string>>): string {
  const url = new URL(input.callback_url);
  for (const [name, value] of Object.entries(parameters)) url.searchParams.set(name, value);
  return url.href;
}

// The authorization URL is shown to the caller and to the browser: what it is made of must not be a reference.
function refuseSecrets({ clientId, authorizeUrl }: OAuthProvider): void {
  for (const [name, value] of Object.entries({ client_id: clientId, authorize_url: authorizeUrl }))
    if (/(\$\{|%24%7B)secret(:|%3A)/i.test(value))
      throw wrong(`/config/${name}`, "is shown to the browser: it cannot be one of magic.yaml's secrets");
}

function digest(state: string): string {
  return createHash("sha256").update(state).digest("hex");
}

function wrong(pointer: string, detail: string): MagicError {
  return new MagicError("validation_failed", undefined, { problems: [{ pointer, code: "invalid", detail }] });
}
