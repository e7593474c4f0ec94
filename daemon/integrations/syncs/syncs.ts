// What can be done with syncs and runs, whichever the environment.
import type { FieldProblem } from "#contract/errors.ts";
import type { Principal } from "#contract/identity.ts";
import { type RunStatus, runStates, type SyncStatus } from "#contract/states.ts";
import type { ListPage } from "#contract/wire/list.ts";
import type { CreateSync, PatchSync, Run, Sync } from "#contract/wire/syncs.ts";
import { answerPage, type ListOptions, pageOf } from "#daemon/storage/list.ts";
import { runDocument } from "#daemon/storage/run-document.ts";
import type { Storage } from "#daemon/storage/storage.ts";
import type { SyncRecord } from "#daemon/storage/tables/sync.ts";
import { type Clock, rfc3339 } from "#shared/clock.ts";
import { newId } from "#shared/ids.ts";
import type { Catalogue } from "../catalogue/catalogue.ts";
import { changesOf } from "../changes.ts";
import { missing } from "../missing.ts";
import { simulateRun } from "../simulation/simulate.ts";
import { limitOf } from "../tier-limits.ts";
import { newBody, patchedBody } from "./body.ts";
import { syncDocument } from "./document.ts";
import type { LiveRuns } from "./live-runs.ts";
import { missingEnds, surveySync } from "./survey.ts";

export interface TriggerOptions {
  readonly full_refresh?: boolean;
  readonly objects?: readonly string[];
}

export interface Rejected {
  readonly id: string;
  readonly key: string;
  readonly column: string | null;
  readonly reason: string;
}

export interface Syncs {
  create(principal: Principal, input: CreateSync): Promise<Sync>;
  /** What is wrong with a body that its schema refuses, beyond what the schema tells. */
  survey(principal: Principal, given: unknown): Promise<readonly FieldProblem[]>;
  get(principal: Principal, id: string): Promise<Sync>;
  list(
    principal: Principal,
    options: ListOptions & { status?: SyncStatus; connection?: string },
  ): Promise<ListPage<Sync>>;
  patch(principal: Principal, id: string, patch: PatchSync): Promise<Sync>;
  remove(principal: Principal, id: string): Promise<void>;
  /** The new run, or the one that is under way. */
  trigger(principal: Principal, id: string, options: TriggerOptions): Promise<Run>;
  runs(principal: Principal, id: string, options: ListOptions & { status?: RunStatus }): Promise<ListPage<Run>>;
  /** `waitMs`: for its end, at most so long. */
  run(principal: Principal, id: string, waitMs?: number): Promise<Run>;
  rejects(principal: Principal, runId: string, options: ListOptions): Promise<ListPage<Rejected>>;
  cancel(principal: Principal, runId: string): Promise<Run>;
}

export interface SyncsOptions {
  readonly storage: Storage;
  readonly catalogue: Catalogue;
  readonly live: LiveRuns;
  readonly clock: Clock;
  readonly seed: () => number;
}

export function createSyncs({ storage, catalogue, live, clock, seed }: SyncsOptions): Syncs {
  const { units } = storage;
  const change = changesOf("sync");
  const trigger = changesOf("sync");
  const now = (): string => rfc3339(clock.now());
  const document = (sync: SyncRecord): Sync => syncDocument(sync, clock.now());

  return {
    async create(principal, input) {
      const { environment } = principal;
      const ms = clock.now();
      const body = await newBody(input, () => missingEnds(input, existsFor(principal)));
      const sync = await units.sync.create({
        id: newId("sync", ms),
        environment,
        source_connection: input.source.connection,
        destination_connection: input.destination.connection,
        body,
        due: live.dueAt({ ...body, environment, status: "active" }),
        now: rfc3339(ms),
        limit: limitOf(principal, "active syncs"),
      });
      live.wake();
      return document(sync);
    },

    survey: (principal, given) => surveySync(given, existsFor(principal)),

    get: async (principal, id) => document(await find(principal, id)),

    async list({ environment }, { status, connection, ...rest }) {
      const page = pageOf("sync", rest);
      return answerPage(await units.sync.list({ environment, status, connection, page }), page, document);
    },

    async patch(principal, id, patch) {
      const { environment } = principal;
      const { sync, canceledRuns } = await change(id, async () => {
        const current = await find(principal, id);
        const body = patchedBody(bodyOf(current), patch);
        const changed = await units.sync.update({
          ...{ id, environment, revision: current.revision, body, now: now() },
          status: patch.status ?? null,
          due: live.dueAt({ ...body, environment, status: patch.status ?? current.status }),
          limit: limitOf(principal, "active syncs"),
        });
        if (changed === null) throw missing("sync", id);
        return changed;
      });
      live.stop(canceledRuns);
      live.wake();
      return document(sync);
    },

    async remove(principal, id) {
      const { environment, runs } = await find(principal, id);
      // Step by step, so that whoever else asks the database is served in between.
      while (await units.run.forget({ id, upTo: runs - 1 }));
      const removed = await units.sync.remove({ id, environment });
      if (removed === null) throw missing("sync", id);
      await live.removed(removed);
    },

    async trigger(principal, id, options) {
      const { environment } = principal;
      const start = () => ({
        ...{ id, environment, runId: newId("run", clock.now()), trigger: "manual" as const, now: now() },
        fullRefresh: options.full_refresh ?? false,
        objects: options.objects ?? null,
        limit: limitOf(principal, "active syncs"),
      });
      if (environment === "sandbox") return simulate(principal, id, start);
      const begun = await units.run.start(start());
      if (begun === null) throw missing("sync", id);
      live.wake();
      return runDocument(begun.run);
    },

    async runs(principal, id, { status, ...rest }) {
      await find(principal, id);
      const page = pageOf("run", rest);
      return answerPage(await units.run.list({ syncId: id, status, page }), page, runDocument);
    },

    async run(principal, id, waitMs = 0) {
      // Listened for before it is looked at: it may end in between.
      const ended = waitMs > 0 ? live.ended(id, waitMs) : undefined;
      const found = await findRun(principal, id);
      if (!ended || runStates[found.status].length === 0) return runDocument(found);
      await ended;
      return runDocument(await findRun(principal, id));
    },

    async rejects(principal, runId, rest) {
      await findRun(principal, runId);
      const page = pageOf("rej", rest);
      return answerPage(await units.run.listRejects({ runId, ...page }), page, ({ id, key, column_name, reason }) => ({
        ...{ id, key, reason },
        column: column_name,
      }));
    },

    async cancel({ environment }, id) {
      const run = await units.run.cancel({ id, environment, now: now() });
      if (run === null) throw missing("run", id);
      live.stop([id]);
      return runDocument(run);
    },
  };

  // The ordinal decides what happens: when another trigger takes it first, the next one is tried.
  function simulate(
    principal: Principal,
    id: string,
    start: () => Parameters<typeof units.run.start>[0],
  ): Promise<Run> {
    return trigger(id, async () => {
      const sync = await find(principal, id);
      const ends = await Promise.all(
        [sync.source_connection, sync.destination_connection].map((connection) =>
          units.connection.get({ id: connection, environment: "sandbox" }),
        ),
      );
      const [source] = ends;
      const connector = source ? await catalogue.get(source.provider) : null;
      const opening = start();
      const { status, result, rejects } = simulateRun({
        ...{ seed: seed(), sync, ordinal: sync.runs + 1, fullRefresh: opening.fullRefresh, now: clock.now() },
        schema: connector?.objects.find(({ name }) => name === sync.source_object)?.schema,
        fails: ends.some((end) => end?.metadata["simulate"] === "run_failed"),
      });
      const run = await units.run.atOnce({
        begin: opening,
        finish: { status, result, rejects, now: opening.now },
        ordinal: sync.runs + 1,
      });
      if (run === null) throw missing("sync", id);
      return run === "stale" ? run : runDocument(run);
    });
  }

  function existsFor({ environment }: Principal): (connection: string) => Promise<boolean> {
    return async (id) => (await units.connection.get({ id, environment })) !== null;
  }

  async function find({ environment }: Principal, id: string): Promise<SyncRecord> {
    const found = await units.sync.get({ id, environment });
    if (found === null) throw missing("sync", id);
    return found;
  }

  async function findRun({ environment }: Principal, id: string) {
    const found = await units.run.get({ id, environment });
    if (found === null) throw missing("run", id);
    return found;
  }
}

function bodyOf(sync: SyncRecord) {
  const { name, source_object, destination_table, schedule, timezone, mode, primary_key, cursor_field } = sync;
  const { columns, mapping, on_bad_record, deletes, stall_timeout_s, metadata } = sync;
  return {
    ...{ name, source_object, destination_table, schedule, timezone, mode, primary_key, cursor_field },
    ...{ columns, mapping, on_bad_record, deletes, stall_timeout_s, metadata },
  };
}
