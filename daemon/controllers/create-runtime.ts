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
import { openCells } from "./cells.ts";
import { openDevelopment } from "./development.ts";
import { invokeController } from "./invoke.ts";
import { runtimeMetrics } from "./metrics.ts";
import type { Ports } from "./ports.ts";
import type { Artifact, ControllerRuntime, ControllerSummary } from "./runtime.ts";
import { type Instance, openInstance } from "./serving/instance.ts";
import { LOAD_WITHIN_MS } from "./serving/load.ts";
import { openNestedCalls } from "./serving/nested.ts";
import { openRegistry } from "./serving/registry.ts";
import { type LiveCell, startWatchdog } from "./serving/watchdog.ts";
import { openSource } from "./source.ts";
import { summaryOf } from "./summary.ts";
import { noController, openCatalogue } from "./versions/catalogue.ts";
import { deployVersion } from "./versions/deploy.ts";

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
  /** What a build may take; 30 s by default. */
  readonly buildWithinMs?: number;
  /** True in the daemon's own process: soon after its start one zygote is made and asked what it is locked down with. */
  readonly prewarm?: boolean;
}

/** The runtime as its routes see it. */
export interface OwnedRuntime extends ControllerRuntime {
  /** Builds everything of a development session again. */
  reload(session: string): void;
  /** What is known of the lockdown by now; null before a first cell was started. Never waits. */
  isolationNow(): Isolation | null;
  /** Ends every development session, whose streams would keep the listener open, and every build. */
  stopDevelopment(reason: string): Promise<void>;
}

/** After the first answers of a daemon that a command has just started. */
const PREWARM_MS = 400;
/** A cell that nobody used for that long is given back; the next call starts one from a zygote. */
const IDLE_MS = 10 * 60_000;
/** Cells that rest have a quarter of the machine's memory, at 64 MB each. */
const MOST_CELLS = Math.max(16, Math.floor(totalmem() / 4 / (64 * 2 ** 20)));

export function createRuntime(services: RuntimeServices): OwnedRuntime {
  const { storage, log, clock, root, buildWithinMs } = services;
  const units = storage.units.controller;
  const catalogue = openCatalogue(storage);
  const cells = openCells({ size: services.zygotes ?? 2, allowWeak: services.allowWeakSandbox ?? false, log });
  const watchdog = startWatchdog({
    idleMs: IDLE_MS,
    most: services.mostCells ?? MOST_CELLS,
    onIdle: (live) => giveBack(live),
  });
  const databases = openDatabases(root);
  const operations = brokerOperations(databases);
  const brokers = new WeakMap<Instance, Broker>();
  const nested = openNestedCalls();
  const turns = createTurns();
  const registry = openRegistry(catalogue, open);
  const metrics = runtimeMetrics(services.metrics, () =>
    registry.instances().flatMap((one) => {
      const pid = one.pid();
      return pid === null ? [] : [{ controller: one.artifact.contract.name, pid }];
    }),
  );
  const development = openDevelopment({ root, buildWithinMs, registry, metrics, open });
  const stopping = new AbortController();
  let closed = false;
  let underWay = 0;
  let onQuiet: (() => void) | null = null;

  const orStopping = (signal: AbortSignal | undefined): AbortSignal =>
    signal ? AbortSignal.any([signal, stopping.signal]) : stopping.signal;

  function open(artifact: Artifact): Instance {
    return openInstance(artifact, {
      takeCell: cells.take,
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
    const summary = summaryOf(name, await catalogue.find(name), registry.developing(name));
    if (!summary) throw noController(name);
    return summary;
  }

  /** Ends the instances that no alias points at any more, or the one of them; they would hold a process for nobody. */
  async function retireUnreferenced(name: string, only?: Instance): Promise<void> {
    // Nobody waits for this: where storage is away they rest on until the next time. What rested may have been removed by another replica.
    const entry = await Promise.resolve(only ? catalogue.refresh(name) : catalogue.find(name)).catch(() => null);
    if (entry === null) return;
    // What an alias pointed at before stays warm: a rollback is instant.
    const held = new Set(
      [...(entry?.aliases.values() ?? [])].flatMap(({ version, candidate, previous }) => [
        version,
        candidate,
        previous,
      ]),
    );
    const versions = only ? [only.artifact.contract.version] : (entry?.versions.keys() ?? []);
    for (const version of versions) if (!held.has(version)) void registry.retire(name, version);
  }

  const runtime: OwnedRuntime = {
    async build(folder, signal) {
      const source = openSource(resolve(folder), root, buildWithinMs);
      try {
        const result = await source.read([], orStopping(signal));
        if (result.ok) return result.artifact;
        const codes = new Set(result.problems.map(({ code }) => code));
        const built = !codes.has("build_failed") && !codes.has("bundle_too_large");
        const code = codes.has("build_timeout") ? "build_timeout" : built ? "contract_invalid" : "build_failed";
        const [first] = result.problems;
        throw new MagicError(code, `${first?.file}:${first?.line}:${first?.column} ${first?.message}`, {
          extra: { problems: result.problems },
        });
      } finally {
        await source.dispose();
      }
    },

    async deploy(artifact, options) {
      const deployed = await inTurn(turns, artifact.contract.name, () =>
        deployVersion(deployServices, artifact, options),
      );
      void retireUnreferenced(deployed.name);
      return deployed;
    },

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
      return names.flatMap((name) => summaryOf(name, stored.get(name), registry.developing(name)) ?? []);
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
      if (!(await catalogue.refresh(name))) throw noController(name);
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

    develop(options) {
      cells.warm();
      return development.start({ ...options, signal: orStopping(options.signal) });
    },
    reload: development.reload,
    async stopDevelopment(reason) {
      const stopped = development.stop(reason);
      stopping.abort(new MagicError("draining"));
      await stopped;
    },
    isolation: cells.isolation,
    isolationNow: cells.isolationNow,

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
      await development.stop("the daemon stops");
      const ending = Promise.all(registry.instances().map((instance) => instance.retire()));
      await Promise.race([ending, new Promise((done) => setTimeout(done, 1_000).unref())]);
      watchdog.stop();
      await cells.close();
      await databases.close();
    },
  };

  const deployServices = { catalogue, registry, units, clock, log, open };
  const invokeServices = {
    log,
    tracer: services.tracer,
    metrics,
    find: registry.find,
    brokerOf,
    isolation: cells.level,
  };
  const prewarming = services.prewarm
    ? setTimeout(() => {
        runtime.isolation().catch((error: unknown) => log.warn("controller.isolation", errorFields(error)));
      }, PREWARM_MS).unref()
    : undefined;
  return runtime;
}
