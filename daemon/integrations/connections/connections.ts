// What can be done with connections, whichever the environment.
import { setTimeout as sleep } from "node:timers/promises";
import { type FieldProblem, isMagicError, MagicError } from "#contract/errors.ts";
import type { Principal } from "#contract/identity.ts";
import { isObject } from "#contract/json-object.ts";
import type { ConnectionStatus } from "#contract/states.ts";
import { nearest } from "#contract/suggest.ts";
import type { DiscoveredObject } from "#contract/sync.ts";
import type { Connection, CreateConnection, PatchConnection } from "#contract/wire/connections.ts";
import type { ListPage } from "#contract/wire/list.ts";
import { connectionDocument } from "#daemon/storage/connection-document.ts";
import { answerPage, type ListOptions, pageOf } from "#daemon/storage/list.ts";
import type { Storage } from "#daemon/storage/storage.ts";
import type { ConnectionRecord } from "#daemon/storage/tables/connection.ts";
import { type Clock, rfc3339 } from "#shared/clock.ts";
import { newId } from "#shared/ids.ts";
import type { Catalogue } from "../catalogue/catalogue.ts";
import { changesOf } from "../changes.ts";
import type { Checked, SyncExecution } from "../execution.ts";
import { mergedMembers } from "../members.ts";
import { missing } from "../missing.ts";
import { simulateCheck, simulateObjects } from "../simulation/simulate.ts";
import { limitOf } from "../tier-limits.ts";
import { changed as changedSecret, sameSettings } from "./bound-credentials.ts";
import { boundedFor, refuseReferences } from "./bounded.ts";
import type { PlaceRules } from "./places.ts";
import type { ConnectionSecret, ConnectionSecrets, Settings } from "./secret.ts";

export interface Connections {
  create(principal: Principal, input: CreateConnection): Promise<Connection>;
  /** What is wrong with a body that its schema refuses, beyond what the schema tells. */
  survey(given: unknown): Promise<readonly FieldProblem[]>;
  get(principal: Principal, id: string): Promise<Connection>;
  list(
    principal: Principal,
    options: ListOptions & { provider?: string; status?: ConnectionStatus },
  ): Promise<ListPage<Connection>>;
  patch(principal: Principal, id: string, patch: PatchConnection): Promise<Connection>;
  remove(principal: Principal, id: string): Promise<void>;
  check(principal: Principal, id: string, signal: AbortSignal): Promise<Connection>;
  /**
   * Finds out which of these live connections has failed, where none is known to have. Only what is bad is kept: a test may see less than
   * what has failed did.
   */
  doubt(ids: readonly string[], signal: AbortSignal): Promise<void>;
  objects(principal: Principal, id: string, signal: AbortSignal): Promise<readonly DiscoveredObject[]>;
}

export interface ConnectionsOptions {
  readonly storage: Storage;
  readonly catalogue: Catalogue;
  readonly secrets: ConnectionSecrets;
  readonly execution: SyncExecution;
  readonly clock: Clock;
  /** What decides where a provider's credentials go. */
  readonly placeRules: (provider: string) => Promise<PlaceRules>;
  /** The project's: files below its `data` folder may be named by everybody. */
  readonly root: string;
  readonly seed: () => number;
  /** Ends work under way for these runs. */
  readonly stopRuns: (ids: readonly string[]) => void;
  /** With a fresh access token, where it has one. */
  readonly fresh: (connection: ConnectionRecord) => Promise<ConnectionRecord>;
  /** A live connection was deleted. */
  readonly onRemoved: (connection: ConnectionRecord) => Promise<void>;
  /** Events may have been put into the queue. */
  readonly onEvents: () => void;
}

/** How long a deletion waits for the vendor's word that the authorization is over. */
const REVOKE_MS = 3_000;

export function createConnections(options: ConnectionsOptions): Connections {
  const { storage, catalogue, secrets, execution, clock, root, seed, fresh } = options;
  const units = storage.units.connection;
  const change = changesOf("connection");
  /** Tests under way: runs that fail together do not each try the credentials, of which a server may lock out who tries often. */
  const doubted = new Map<string, Promise<void>>();

  return {
    async create(principal, { provider, name = provider, config = {}, credentials = {}, metadata = {} }) {
      const problems = await providerProblems(provider);
      if (problems.length > 0) throw new MagicError("validation_failed", undefined, { problems });
      refuseReferences(principal, { config, credentials });
      const { environment } = principal;
      const ms = clock.now();
      const created_at = rfc3339(ms);
      const id = newId("conn", ms);
      const { status, health } = environment === "sandbox" ? simulateCheck(seed(), { id, created_at }) : untested;
      const connection = {
        ...{ id, environment, provider, name, status, health, metadata, created_at },
        updated_at: created_at,
        last_synced_at: null,
        secret: secrets.seal({ id, environment }, boundedFor(principal, provider, { config, credentials }, root)),
      };
      return connectionDocument(await units.create({ connection, limit: limitOf(principal, "connections") }));
    },

    async survey(given) {
      const { provider } = isObject(given) ? given : {};
      return typeof provider === "string" && provider !== "" ? providerProblems(provider.slice(0, 100)) : [];
    },

    get: async (principal, id) => connectionDocument(await find(principal, id)),

    async list({ environment }, { provider, status, ...rest }) {
      const page = pageOf("conn", rest);
      return answerPage(await units.list({ environment, provider, status, page }), page, connectionDocument);
    },

    async patch(principal, id, patch) {
      const { environment } = principal;
      refuseReferences(principal, patch);
      const kept = await change(id, async () => {
        const current = await find({ environment }, id);
        // A live connection with other settings has to be tested anew.
        const untestedNow = environment === "live" && touches(patch);
        const changed = await units.update({
          ...{ id, environment, revision: current.revision, now: rfc3339(clock.now()) },
          untested: untestedNow,
          body: {
            name: patch.name === null ? current.provider : (patch.name ?? current.name),
            health: untestedNow ? untested.health : current.health,
            metadata: mergedMembers("metadata", current.metadata, patch.metadata),
          },
          secret: touches(patch) ? await merged(principal, current, patch) : current.secret,
        });
        if (changed === null) throw missing("connection", id);
        return changed;
      });
      return connectionDocument(kept);
    },

    async remove({ environment }, id) {
      const current = await find({ environment }, id);
      const removed = await units.remove({ id, environment, now: rfc3339(clock.now()) });
      if (removed === null) throw missing("connection", id);
      options.stopRuns(removed.canceledRuns);
      // A vendor that hangs keeps nobody waiting for what is done.
      if (environment === "live")
        await Promise.race([options.onRemoved(current), sleep(REVOKE_MS, undefined, { ref: false })]);
    },

    async check({ environment }, id, signal) {
      const current = await find({ environment }, id);
      const found = environment === "sandbox" ? simulateCheck(seed(), current) : await tested(current, signal);
      return connectionDocument(await keep(current, found));
    },

    async doubt(ids, signal) {
      const ends = await Promise.all([...new Set(ids)].map((id) => find({ environment: "live" }, id)));
      if (ends.some(({ status }) => status === "failed" || status === "disabled")) return;
      const test = async (end: ConnectionRecord): Promise<void> => {
        const found = await tested(end, signal);
        if (found.status !== "connected" && !signal.aborted) await keep(end, found);
      };
      const once = (end: ConnectionRecord): Promise<void> => {
        const known = doubted.get(end.id);
        if (known) return known;
        const under = test(end).finally(() => doubted.delete(end.id));
        doubted.set(end.id, under);
        return under;
      };
      await Promise.all(ends.map(once));
    },

    async objects({ environment }, id, signal) {
      const current = await find({ environment }, id);
      if (environment === "live") return execution.discover(secrets.open(await fresh(current)), signal);
      return simulateObjects(seed(), id, await catalogue.get(current.provider));
    },
  };

  async function merged(principal: Principal, current: ConnectionRecord, patch: PatchConnection) {
    const held = secrets.read(current);
    const apply = ({ config, credentials }: Settings): Settings => ({
      config: mergedMembers("config", config, patch.config),
      credentials: mergedMembers("credentials", credentials, patch.credentials),
    });
    // Nothing leaves the sandbox.
    const next: ConnectionSecret =
      current.environment === "sandbox"
        ? { ...held, ...apply(held) }
        : changedSecret(await options.placeRules(current.provider), { held, apply });
    return secrets.seal(current, boundedFor(principal, current.provider, next, root));
  }

  async function providerProblems(provider: string): Promise<FieldProblem[]> {
    if ((await catalogue.get(provider)) !== null) return [];
    const near = nearest(
      provider,
      (await catalogue.list()).map(({ id }) => id),
    );
    const instead =
      near === undefined ? "GET /v1/connectors and `magic connector list` name them" : `did you mean ${near}?`;
    const detail = `there is no connector ${JSON.stringify(provider)}: ${instead}`;
    return [{ pointer: "/provider", code: "unknown", detail }];
  }

  async function find({ environment }: Pick<Principal, "environment">, id: string): Promise<ConnectionRecord> {
    const found = await units.get({ id, environment });
    if (found === null) throw missing("connection", id);
    return found;
  }

  /** The connection with what a test of it has found, unless it has other settings now: nothing was found out about those. */
  async function keep(current: ConnectionRecord, found: Checked): Promise<ConnectionRecord> {
    const { id, environment } = current;
    return change(id, async () => {
      const latest = await find(current, id);
      if (environment === "live" && !sameSettings(secrets.read(current), secrets.read(latest))) return latest;
      const { revision } = latest;
      const updated = await units.setHealth({ id, environment, ...found, revision, now: rfc3339(clock.now()) });
      if (updated === null) throw missing("connection", id);
      if (updated !== "stale" && environment === "live") options.onEvents();
      return updated;
    });
  }

  async function tested(current: ConnectionRecord, signal: AbortSignal): Promise<Checked> {
    const started = clock.monotonic();
    try {
      return await execution.check(secrets.open(await fresh(current)), signal);
    } catch (error) {
      // Nothing was found out about the other system.
      if (isMagicError(error) && (error.code === "master_key_mismatch" || error.code === "rate_limited")) throw error;
      const message = error instanceof Error ? error.message : String(error);
      const latency_ms = Math.round(clock.monotonic() - started);
      // A refresh that the provider refused has disabled it: that says more than that the test failed.
      const { status } = await find(current, current.id);
      return {
        status: status === "disabled" ? status : "failed",
        health: { status: "unhealthy", checked_at: rfc3339(clock.now()), latency_ms, message },
      };
    }
  }
}

const untested: Checked = {
  status: "pending",
  health: { status: "unknown", checked_at: null, latency_ms: null, message: null },
};

function touches({ config, credentials }: PatchConnection): boolean {
  return config !== undefined || credentials !== undefined;
}
