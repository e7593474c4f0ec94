// A development session: watches a folder of controllers and keeps what serves equal to what is on disk. A broken save changes nothing
// but the event that says so.
import { basename, dirname, join, relative, resolve, sep } from "node:path";
import { isPassedOver } from "#contract/controller-files.ts";
import type { DevelopmentEvent, SourceProblem } from "#contract/wire/controllers.ts";
import { rfc3339 } from "#shared/clock.ts";
import { newId } from "#shared/ids.ts";
import type { Artifact, DevelopmentSession } from "../runtime.ts";
import type { SourceResult } from "../source.ts";
import { eventQueue } from "./event-queue.ts";
import {
  changedSince,
  controllersIn,
  isController,
  isStill,
  isUnwatched,
  namedIn,
  savedTime,
  targetOf,
  untilWritten,
} from "./folders.ts";
import { installedFiles, missingFiles, whenThere } from "./missing.ts";
import { openNames } from "./names.ts";
import { loadProblem, twinProblem } from "./problems.ts";
import { concerns, newlyWatched, type Watched } from "./watched.ts";
import { openWatcher } from "./watcher.ts";

export interface SessionHost {
  /** Makes the artifact serve under its name; resolves when it does. Throws where its module does not load, or `overtaken` fires before. */
  serve(artifact: Artifact, session: string, overtaken: AbortSignal): Promise<{ bootMs: number; swapMs: number }>;
  withdraw(name: string, session: string): Promise<void>;
}

/** What a build was for: when the files were saved and when it began, in milliseconds since the epoch. */
interface Save {
  readonly saved: number;
  readonly began: number;
  readonly buildMs: number;
  readonly changed: readonly string[];
}

/** Editors write in steps: what comes within it is one save. */
const SETTLE_MS = 6;
/** How long a module may go on loading once it was overtaken: it may never end. */
const OVERTAKEN_MS = 1_000;
/** A build ends for sure, and who saves all the time is to see something. */
const BUILD_OVERTAKEN_MS = 5_000;

export interface SessionOptions {
  readonly folder: string;
  readonly root: string;
  readonly only?: readonly string[] | undefined;
  readonly buildWithinMs?: number | undefined;
}

export interface OpenSession extends DevelopmentSession {
  readonly id: string;
  /** Resolves when everything was built once, or the session was closed before. */
  readonly ready: Promise<void>;
}

export async function openSession(options: SessionOptions, host: SessionHost): Promise<OpenSession> {
  const id = newId("dev");
  const folder = resolve(options.folder);
  const events = eventQueue<DevelopmentEvent>();
  const controllers = new Map<string, Watched>();
  const leaving = new Set<Promise<void>>();
  let announced = false;
  let closed = false;
  const time = (): string => rfc3339(Date.now());
  const names = openNames(controllers, {
    takeUp: (one) => markDirty(one, one.folder, Date.now()),
    withdraw: (name) => host.withdraw(name, id),
  });

  const began = Date.now();
  const parent = (await isController(folder)) ? null : folder;
  /** Where the folder is, if it is a link. */
  let target: string | null = null;
  const nameOf = (path: string): string => (path === target ? folder : namedIn({ folder, target }, path));
  const watcher = openWatcher({
    folder,
    ignored: (path) => nameOf(path) !== folder && isUnwatched(nameOf(path), parent),
    onChange: (path) => void onChange(resolve(path)),
    onRenewed: () => void catchUp(),
  });

  async function onChange(told: string): Promise<void> {
    const savedAt = Date.now();
    const path = nameOf(told);
    if (path === folder) await followFolder();
    const child = controllerOf(path);
    if (child) await discover(child);
    for (const one of controllers.values()) {
      const named = namedIn(one, path);
      // Builds name what they read by where it is.
      if (concerns(one, named) || concerns(one, told)) markDirty(one, named, savedAt);
    }
  }

  /** What is behind a link is not watched with the link; another one may hold other controllers. */
  async function followFolder(): Promise<void> {
    const now = await targetOf(folder, dirname(folder));
    if (now === target) return;
    target = now;
    if (now !== null) watcher.add(now);
    await discoverAll();
    for (const one of controllers.values()) markDirty(one, folder, Date.now());
  }

  async function discover(path: string): Promise<void> {
    if (controllers.has(path) || !(path === folder || wanted(path)) || !(await isController(path))) return;
    // Every file of a new folder comes here at once: only one of them adds it.
    if (controllers.has(path)) return;
    const one = newlyWatched(path, options.root, options.buildWithinMs);
    controllers.set(path, one);
    for (const file of one.resolution) watcher.add(file);
  }

  /** The controller folder that the path lies in: a child of the watched folder, or that folder itself. */
  function controllerOf(path: string): string | null {
    if (controllers.has(folder)) return folder;
    if (!path.startsWith(folder + sep)) return null;
    return join(folder, path.slice(folder.length + 1).split(sep)[0] as string);
  }

  function wanted(path: string): boolean {
    const name = basename(path);
    return !isPassedOver(name) && (options.only?.includes(name) ?? true);
  }

  function markDirty(one: Watched, path: string, savedAt: number): void {
    one.changed.add(path);
    if (!one.dirty) one.savedAt = savedAt;
    one.dirty = true;
    one.overtake();
    // Never two builds of one controller at once: esbuild's rebuild() would join the running one and lose this save.
    one.running ??= drain(one);
  }

  async function drain(one: Watched): Promise<void> {
    one.told = "";
    try {
      while (one.dirty && !closed) {
        await new Promise((done) => setTimeout(done, SETTLE_MS));
        await Promise.all([...one.changed].map(untilWritten));
        one.dirty = false;
        const changed = [...one.changed];
        one.changed = new Set();
        await reload(one, changed).catch((error: unknown) => invalid(one, [loadProblem(one, error, options.root)]));
      }
    } finally {
      // In the same step as the last look: a save that came in between would wait for the next one.
      one.running = null;
    }
  }

  async function reload(one: Watched, changed: readonly string[]): Promise<void> {
    const seen = one.savedAt;
    const began = Date.now();
    const started = performance.now();
    one.stopWaiting();
    one.waitsFor = null;
    if (!(await isStill(one.folder))) return await withdraw(one);
    await follow(one);
    const result = await read(one, changed);
    if (result === null) return;
    const buildMs = performance.now() - started;
    one.inputs = result.inputs;
    watchOutside(result.inputs);
    const missing = result.ok ? [] : missingFiles(result.problems, one.folder, options.root);
    const unwatched = [...missing, ...installedFiles(result.inputs, one.folder)];
    if (unwatched.length > 0 && !closed)
      one.stopWaiting = whenThere(unwatched, began, one.foundAt, () => markDirty(one, one.folder, Date.now()));
    if (!result.ok) return invalid(one, result.problems);
    const { contract, digest } = result.artifact;
    if (one.live?.digest === digest && !one.invalid) return;
    const twin = names.holderOf(contract.name, one);
    one.waitsFor = twin ? contract.name : null;
    // A renamed folder whose former place the watcher has not told of yet: that one's end offers the name.
    if (twin && !(await isStill(twin.folder))) return markDirty(twin, twin.folder, Date.now());
    if (twin && !names.exchanged(one, twin)) return invalid(one, [twinProblem(one, twin, options.root)]);
    one.waitsFor = null;
    one.claims = contract.name;
    const saved = await savedTime(changed, seen);
    await swapIn(one, result.artifact, { saved, began, buildMs, changed });
  }

  /** Null where a newer save, or the session's end, overtook it. */
  async function read(one: Watched, changed: readonly string[]): Promise<SourceResult | null> {
    const overtaken = new AbortController();
    let timer: NodeJS.Timeout | undefined;
    one.overtake = () => {
      if (closed) overtaken.abort();
      else timer ??= setTimeout(() => overtaken.abort(), BUILD_OVERTAKEN_MS);
    };
    if (one.dirty || closed) one.overtake();
    try {
      return await one.source.read(changed, overtaken.signal);
    } catch (error) {
      if (overtaken.signal.aborted) return null;
      throw error;
    } finally {
      clearTimeout(timer);
      one.overtake = () => {};
    }
  }

  async function swapIn(one: Watched, artifact: Artifact, save: Save): Promise<void> {
    const { contract, digest } = artifact;
    const patience = new AbortController();
    let timer: NodeJS.Timeout | undefined;
    one.overtake = () => {
      timer ??= setTimeout(() => patience.abort(), OVERTAKEN_MS);
    };
    if (one.dirty || closed) one.overtake();
    try {
      const { bootMs, swapMs } = await host.serve(artifact, id, patience.signal);
      const former = one.live?.name;
      one.live = { name: contract.name, version: contract.version, digest };
      one.invalid = false;
      one.told = "";
      names.giveWay(one, contract.name);
      if (former !== undefined && former !== contract.name) leave(former, () => {});
      if (!announced) return;
      const { saved, began, buildMs, changed } = save;
      events.push({
        type: "reload",
        time: time(),
        controller: contract.name,
        version: contract.version,
        digest,
        duration_ms: round(Date.now() - saved),
        phases: {
          detect_ms: round(Math.max(0, began - saved)),
          build_ms: round(buildMs),
          boot_ms: round(bootMs),
          swap_ms: round(swapMs),
        },
        changed: changed.map((path) => relative(options.root, path)),
      });
    } catch (error) {
      one.claims = one.live?.name ?? null;
      if (one.claims !== contract.name) leave(contract.name, () => {});
      if (!patience.signal.aborted) invalid(one, [loadProblem(one, error, options.root)]);
    } finally {
      clearTimeout(timer);
      one.overtake = () => {};
    }
  }

  function invalid(one: Watched, problems: readonly SourceProblem[]): void {
    one.invalid = true;
    const found = JSON.stringify(problems);
    if (one.told === found) return;
    one.told = found;
    events.push({
      type: "invalid",
      time: time(),
      controller: one.live?.name ?? basename(one.folder),
      problems,
      serving: one.live?.version ?? null,
    });
  }

  /** Nobody waits for it: it waits itself for what is under way. */
  function leave(name: string, whenLeft: () => void): void {
    const going = names.leave(name).then((left) => {
      leaving.delete(going);
      if (left) whenLeft();
    });
    leaving.add(going);
  }

  async function withdraw(one: Watched): Promise<void> {
    const name = one.live?.name;
    one.live = one.claims = null;
    if (name !== undefined) leave(name, () => events.push({ type: "removed", time: time(), controller: name }));
    // It came back meanwhile: the next round takes it up.
    if (one.dirty) return;
    controllers.delete(one.folder);
    await one.source.dispose();
  }

  /** What is behind a link is not watched with the folder that the link lies in. */
  async function follow(one: Watched): Promise<void> {
    const target = await targetOf(one.folder, folder);
    if (target === one.target) return;
    one.target = target;
    if (target !== null) watcher.add(target);
  }

  /** Modules that are imported from beside the controllers are watched too; packages are looked at. */
  function watchOutside(inputs: readonly string[]): void {
    const outside = inputs.filter(
      (path) => !path.startsWith(folder + sep) && !path.includes(`${sep}node_modules${sep}`),
    );
    for (const path of outside) watcher.add(path);
  }

  async function first(): Promise<void> {
    await followFolder();
    await discoverAll();
    for (const one of controllers.values()) markDirty(one, one.folder, began);
    await settled();
    await watcher.ready;
    await catchUp();
    await settled();
  }

  /** The watcher tells nothing of what was saved before it came by. */
  async function catchUp(): Promise<void> {
    const known = new Set(controllers.values());
    await discoverAll();
    for (const one of controllers.values())
      if (!known.has(one) || (await changedSince(one, began))) markDirty(one, one.folder, Date.now());
  }

  async function discoverAll(): Promise<void> {
    const folders = (await isController(folder)) ? [folder] : await controllersIn(folder);
    for (const path of folders) await discover(path);
  }

  async function settled(): Promise<void> {
    await Promise.all([...controllers.values()].map((one) => one.running));
  }

  async function announce(): Promise<void> {
    await first();
    if (closed) return;
    // `ready` comes first in the stream, whatever the first builds found.
    const early = events.takeAll();
    events.push({
      type: "ready",
      time: time(),
      session: id,
      folder,
      controllers: [...controllers.values()].flatMap((one) => (one.live ? [one.live] : [])),
      invalid: [...controllers.values()].filter((one) => one.invalid).map((one) => basename(one.folder)),
    });
    for (const event of early) events.push(event);
    announced = true;
  }

  return {
    id,
    events,
    ready: announce(),
    reload() {
      for (const one of controllers.values()) {
        one.invalid = one.live !== null || one.invalid;
        markDirty(one, one.folder, Date.now());
      }
    },
    async close(reason = "closed") {
      if (closed) return;
      closed = true;
      for (const one of controllers.values()) one.overtake();
      await watcher.close();
      await Promise.all(
        [...controllers.values()].map(async (one) => {
          await one.running;
          one.stopWaiting();
          await one.source.dispose();
          if (one.live) await host.withdraw(one.live.name, id);
        }),
      );
      await Promise.all(leaving);
      events.push({ type: "stopped", time: time(), reason });
      events.end();
    },
  };
}

function round(ms: number): number {
  return Math.round(ms * 10) / 10;
}
