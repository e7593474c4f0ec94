// The controller runtime, put together.
import { totalmem } from "node:os";
import { resolve } from "node:path";
import { MagicError } from "#contract/errors.ts";
import type { Isolation } from "#contract/wire/daemon.ts";
import type { Storage } from "#daemon/storage/storage.ts";
import { errorFields, type Logger } from "#daemon/telemetry/log.ts";
import type { Metrics } from "#daemon/telemetry/metrics.ts";
import type { Tracer } from "#daemon/telemetry/trace.ts";
import { type Clock, rfc3339 } from "#shared/clock.ts";
import { createTurns, inTurn } from "#shared/turns.ts";
import { type Broker, brokerOperations, createBroker } from "./broker/broker.ts";
import { openDatabases } from "./broker/db/databases.ts";
import { digestOf } from "./bundle/digest.ts";
import { type CellPool, openPool } from "./cell/pool.ts";
import { invokeController } from "./invoke.ts";
import { cellStarter, isolationOf, noIsolation } from "./isolation.ts";
import { runtimeMetrics } from "./metrics.ts";
import type { Ports } from "./ports.ts";
import { openSession } from "./reload/session.ts";
import type {
  Artifact,
  ControllerRuntime,
  ControllerSummary,
  DeployedVersion,
  DeployOptions,
  DevelopmentSession,
} from "./runtime.ts";
import { type Instance, LOAD_WITHIN_MS, openInstance } from "./serving/instance.ts";
import { openNestedCalls } from "./serving/nested.ts";
import { openRegistry } from "./serving/registry.ts";
import { type LiveCell, startWatchdog } from "./serving/watchdog.ts";
import { openSource } from "./source.ts";
import { type CatalogueEntry, openCatalogue } from "./versions/catalogue.ts";
import { predecessors, requireCompatible } from "./versions/compatibility.ts";

export interface RuntimeServices {
  readonly root: string;
  readonly storage: Storage;
  readonly log: Logger;
  readonly metrics: Metrics;
  readonly tracer: Tracer;
  readonly clock: Clock;
  readonly ports: Ports;
  /** Zygotes kept ready once the first controller was asked for. */
  readonly zygotes?: number;
  readonly allowWeakSandbox?: boolean;
  /** Cells beyond it are given back when they rest. */
  readonly mostCells?: number;
  /** What a controller's module may take to load; 15 s by default. */
  readonly loadWithinMs?: number;
  /** True in the daemon's own process: soon after its start one zygote is made and asked what it is locked down with. */
  readonly prewarm?: boolean;
}

/** The runtime as its routes see it. */
export interface OwnedRuntime extends ControllerRuntime {
  /** Builds everything of a development session again. */
  reload(session: string): void;
  /** What is known of the lockdown by now; null before a first cell was started. Never waits. */
  isolationNow(): Isolation | null;
  /** Ends every development session: their streams would keep the listener open. */
  stopDevelopment(reason: string): Promise<void>;
}

/** After the first answers of a daemon that a command has just started. */
const PREWARM_MS = 400;
/** A cell that nobody used for that long is given back; the next call starts one from a zygote. */
const IDLE_MS = 10 * 60_000;
/** Cells that rest have a quarter of the machine's memory, at 64 MB each. */
const MOST_CELLS = Math.max(16, Math.floor(totalmem() / 4 / (64 * 2 ** 20)));

export function createRuntime(services: RuntimeServices): OwnedRuntime {
  const { storage, log, clock, root } = services;
  const units = storage.units.controller;
  const catalogue = openCatalogue(storage);
  const watchdog = startWatchdog({
    idleMs: IDLE_MS,
    most: services.mostCells ?? MOST_CELLS,
    onIdle: (live) => giveBack(live),
  });
  const databases = openDatabases(root);
  const operations = brokerOperations(databases);
  const brokers = new WeakMap<Instance, Broker>();
  const sessions = new Map<string, DevelopmentSession>();
  const nested = openNestedCalls();
  const turns = createTurns();
  const registry = openRegistry(catalogue, open);
  const metrics = runtimeMetrics(services.metrics, () =>
    registry.instances().flatMap((one) => {
      const pid = one.pid();
      return pid === null ? [] : [{ controller: one.artifact.contract.name, pid }];
    }),
  );
  const starter = cellStarter(services.allowWeakSandbox ?? false);
  let pool: CellPool | null = null;
  let report: Promise<Isolation> | null = null;
  let known: Isolation | null = null;
  let level = "unknown";
  let closed = false;
  let underWay = 0;
  let onQuiet: (() => void) | null = null;

  // The pool starts with the first need of it: a daemon without controllers costs nothing.
  function zygotes(): CellPool {
    pool ??= openPool({ start: starter.start, size: services.zygotes ?? 2 });
    report ??= measureIsolation();
    report.catch(() => {
      report = null;
    });
    return pool;
  }

  async function measureIsolation(): Promise<Isolation> {
    pool ??= openPool({ start: starter.start, size: services.zygotes ?? 2 });
    const cell = await pool.peek().catch((error: unknown) => {
      const why = starter.why();
      if (why !== null) known = noIsolation(why);
      throw error;
    });
    const isolation = isolationOf(cell, starter.why());
    level = isolation.level;
    known = isolation;
    if (level !== "strong") log.warn("controller.isolation", { isolation });
    return isolation;
  }

  function open(artifact: Artifact): Instance {
    return openInstance(artifact, {
      takeCell: () => zygotes().take(),
      watchdog,
      log,
      clock,
      nested,
      loadWithinMs: services.loadWithinMs ?? LOAD_WITHIN_MS,
      striker: strikerOf,
      onDeath: (instance, reason) => {
        const { name, version } = instance.artifact.contract;
        metrics.death(name, reason.reason);
        const detail = strikerOf(instance)(reason.message);
        log.warn("controller.cell_ended", { controller: name, version, reason: reason.reason, detail });
      },
    });
  }

  function strikerOf(instance: Instance): (text: string) => string {
    return brokers.get(instance)?.striker() ?? ((text) => text);
  }

  function brokerOf(instance: Instance): Broker {
    let broker = brokers.get(instance);
    if (!broker) {
      const { contract } = instance.artifact;
      broker = createBroker(contract, {
        operations,
        ports: services.ports,
        observe: (operation, seconds, failed) => metrics.broker(contract.name, operation, seconds, failed),
      });
      brokers.set(instance, broker);
    }
    return broker;
  }

  function giveBack(live: LiveCell): void {
    const instance = registry.instances().find((one) => one.pid() === live.cell.pid);
    if (!instance) return;
    instance.rest(live);
    const { name } = instance.artifact.contract;
    // One that was called by its number has nobody waiting for it, and its code is megabytes.
    void retireUnreferenced(name, instance);
  }

  async function summarize(name: string): Promise<ControllerSummary> {
    const summary = summaryOf(name, await catalogue.find(name));
    if (!summary) throw new MagicError("controller_not_found", `there is no controller ${name}`);
    return summary;
  }

  /** Null where there is none: an instance may outlive its controller by a moment. */
  function summaryOf(name: string, entry: CatalogueEntry | undefined): ControllerSummary | null {
    const developed = registry.developing(name);
    if (!entry && !developed) return null;
    const latest = entry?.aliases.get("latest");
    const serving = developed?.artifact.contract.version ?? latest?.version ?? null;
    const candidate = latest?.candidate ?? null;
    return {
      name,
      serving,
      aliases: Object.fromEntries([...(entry?.aliases ?? [])].map(([alias, { version }]) => [alias, version])),
      rollout: candidate === null ? null : { version: candidate, percent: latest?.percent ?? 0 },
      versions: [...(entry?.versions ?? [])].map(([version, { digest, created_at }]) => ({
        version,
        digest,
        created_at,
      })),
      development: developed !== null,
      contract:
        developed?.artifact.contract ?? (serving === null ? null : (entry?.versions.get(serving)?.contract ?? null)),
    };
  }

  /** Ends the instances that no alias points at any more, or the one of them; they would hold a process for nobody. */
  async function retireUnreferenced(name: string, only?: Instance): Promise<void> {
    // Nobody waits for this: where storage is away they rest on until the next time.
    const entry = await Promise.resolve(catalogue.find(name)).catch(() => undefined);
    if (!entry) return;
    // What an alias pointed at before stays warm: a rollback is instant.
    const held = new Set(
      [...entry.aliases.values()].flatMap(({ version, candidate, previous }) => [version, candidate, previous]),
    );
    const versions = only ? [only.artifact.contract.version] : entry.versions.keys();
    for (const version of versions) if (!held.has(version)) void registry.retire(name, version);
  }

  async function deployNow(artifact: Artifact, options: DeployOptions = {}): Promise<DeployedVersion> {
    const { contract, code, map } = artifact;
    const { alias = "latest", percent = 100 } = options;
    const digest = digestOf(contract, code);
    if (digest !== artifact.digest)
      throw new MagicError("invalid_request", "the digest is not that of the contract and the code");
    const entry = await catalogue.refresh(contract.name);
    const before = entry?.aliases.get(alias)?.version ?? entry?.aliases.get("latest")?.version;
    for (const previous of predecessors(entry?.versions ?? new Map(), before, contract.version))
      requireCompatible(previous, contract);
    const known = entry?.versions.get(contract.version);
    // It must load before anybody is sent to it; a version that is there did.
    const instance = known?.digest === digest ? null : open(artifact);
    await instance?.start();
    const created_at = known?.created_at ?? rfc3339(clock.now());
    const row = {
      name: contract.name,
      version: contract.version,
      digest,
      contract: JSON.stringify(contract),
      code,
      map,
      created_at,
    };
    try {
      await units.deploy({ row, alias, percent, at: rfc3339(clock.now()) });
    } catch (error) {
      await instance?.retire();
      throw error;
    }
    if (instance && registry.adopt(instance) !== instance) void instance.retire();
    await catalogue.refresh(contract.name);
    void retireUnreferenced(contract.name);
    log.info("controller.deployed", { controller: contract.name, version: contract.version, digest, alias, percent });
    return { name: contract.name, version: contract.version, digest, alias, created_at };
  }

  const runtime: OwnedRuntime = {
    async build(folder) {
      const source = openSource(resolve(folder), root);
      try {
        const result = await source.read();
        if (result.ok) return result.artifact;
        const code = result.problems.some(({ code }) => code === "build_failed" || code === "bundle_too_large")
          ? "build_failed"
          : "contract_invalid";
        const [first] = result.problems;
        throw new MagicError(code, `${first?.file}:${first?.line}:${first?.column} ${first?.message}`, {
          extra: { problems: result.problems },
        });
      } finally {
        await source.dispose();
      }
    },

    // A version that is being deployed is one that the next must not break.
    deploy: (artifact, options) => inTurn(turns, artifact.contract.name, () => deployNow(artifact, options)),

    async invoke(name, invocation) {
      if (closed) throw new MagicError("draining");
      underWay++;
      try {
        return await invokeController(invokeServices, name, invocation);
      } finally {
        underWay--;
        if (underWay === 0) onQuiet?.();
      }
    },

    async list() {
      const stored = new Map((await catalogue.all()).map((entry) => [entry.name, entry]));
      const loaded = registry.instances().map(({ artifact }) => artifact.contract.name);
      const names = [...new Set([...stored.keys(), ...loaded])].sort();
      return names.flatMap((name) => summaryOf(name, stored.get(name)) ?? []);
    },

    async get(name) {
      await catalogue.refresh(name);
      return await summarize(name);
    },

    async promote(name, alias, version, percent = 100) {
      await units.point({ name, alias, version, percent, at: rfc3339(clock.now()) });
      await catalogue.refresh(name);
      void retireUnreferenced(name);
      log.info("controller.promoted", { controller: name, alias, version, percent });
      return await summarize(name);
    },

    async rollback(name, alias = "latest") {
      if (!(await catalogue.refresh(name)))
        throw new MagicError("controller_not_found", `there is no controller ${name}`);
      const { version } = await units.rollback({ name, alias, at: rfc3339(clock.now()) });
      await catalogue.refresh(name);
      void retireUnreferenced(name);
      log.info("controller.rolled_back", { controller: name, alias, version });
      return await summarize(name);
    },

    async remove(name, version) {
      const gone = await units.remove({ name, version: version ?? null });
      if (!gone)
        throw new MagicError(
          "controller_not_found",
          `there is no ${version ? `${name}@${version}` : `controller ${name}`}`,
        );
      await catalogue.refresh(name);
      await registry.retire(name, version);
      log.info("controller.removed", { controller: name, ...(version && { version }) });
    },

    async develop(options) {
      zygotes();
      const session = await openSession(
        { folder: options.folder, root, ...(options.only ? { only: options.only } : {}) },
        {
          async serve(artifact, id, overtaken) {
            const began = performance.now();
            const instance = open(artifact);
            await instance.start(overtaken);
            const booted = performance.now();
            registry.develop(artifact.contract.name, id, instance);
            metrics.reload(artifact.contract.name, performance.now() - began);
            return { bootMs: booted - began, swapMs: performance.now() - booted };
          },
          withdraw: (name, id) => registry.withdraw(name, id),
        },
      );
      const close = session.close.bind(session);
      const held: DevelopmentSession = {
        ...session,
        async close(reason) {
          sessions.delete(session.id);
          await close(reason);
        },
      };
      sessions.set(session.id, held);
      return held;
    },

    reload(id) {
      const session = sessions.get(id);
      if (!session) throw new MagicError("not_found", `there is no development session ${id}`);
      session.reload();
    },

    async stopDevelopment(reason) {
      await Promise.all([...sessions.values()].map((session) => session.close(reason)));
    },

    isolationNow: () => known,

    async isolation() {
      zygotes();
      return await (report as Promise<Isolation>);
    },

    async close(graceMs = 10_000) {
      if (closed) return;
      closed = true;
      clearTimeout(prewarming);
      if (underWay > 0)
        await Promise.race([
          new Promise<void>((done) => {
            onQuiet = done;
          }),
          new Promise((done) => setTimeout(done, graceMs).unref()),
        ]);
      await runtime.stopDevelopment("the daemon stops");
      const ending = Promise.all(registry.instances().map((instance) => instance.retire()));
      await Promise.race([ending, new Promise((done) => setTimeout(done, 1_000).unref())]);
      watchdog.stop();
      await pool?.close();
      await databases.close();
    },
  };

  const invokeServices = {
    log,
    tracer: services.tracer,
    metrics,
    find: registry.find,
    brokerOf,
    isolation: () => level,
  };
  const prewarming = services.prewarm
    ? setTimeout(() => {
        runtime.isolation().catch((error: unknown) => log.warn("controller.isolation", errorFields(error)));
      }, PREWARM_MS).unref()
    : undefined;
  return runtime;
}
