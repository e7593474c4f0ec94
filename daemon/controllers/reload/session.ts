// A development session: watches a folder of controllers and keeps what serves equal to what is on disk. A broken save changes nothing
// but the event that says so.
import { basename, join, relative, resolve, sep } from "node:path";
import type { DevelopmentEvent, SourceProblem } from "#contract/wire/controllers.ts";
import { rfc3339 } from "#shared/clock.ts";
import { newId } from "#shared/ids.ts";
import type { Artifact, DevelopmentSession } from "../runtime.ts";
import { type ControllerSource, openSource } from "../source.ts";
import { eventQueue } from "./event-queue.ts";
import {
  changedSince,
  controllersIn,
  IGNORED,
  isController,
  isRoot,
  isStill,
  namedIn,
  savedTime,
  targetOf,
  untilWritten,
} from "./folders.ts";
import { installedFiles, missingFiles, resolutionFiles, whenThere } from "./missing.ts";
import { loadProblem, twinProblem } from "./problems.ts";
import { openWatcher } from "./watcher.ts";

export interface SessionHost {
  /** Makes the artifact serve under its name; resolves when it does. Throws where its module does not load, or `overtaken` fires before. */
  serve(artifact: Artifact, session: string, overtaken: AbortSignal): Promise<{ bootMs: number; swapMs: number }>;
  withdraw(name: string, session: string): Promise<void>;
}

interface Watched {
  readonly folder: string;
  /** Where the folder is, if it is a link. */
  target: string | null;
  readonly source: ControllerSource;
  /** What serves; null while nothing good was seen. */
  live: { name: string; version: string; digest: string } | null;
  /** The name that it serves under or is about to. */
  claims: string | null;
  /** The name that another one holds. */
  waitsFor: string | null;
  invalid: boolean;
  dirty: boolean;
  running: Promise<void> | null;
  changed: Set<string>;
  savedAt: number;
  inputs: readonly string[];
  /** By which imports are resolved, inside the folder and above it; most of them do not exist. */
  readonly resolution: readonly string[];
  /** Gives up waiting for what the last build missed. */
  stopWaiting: () => void;
  /** When what a build missed was last found to have changed, by file. */
  readonly foundAt: Map<string, number>;
  /** Tells a module that is loading that there is a newer one, or that nobody waits for it. */
  overtake: () => void;
}

/** Editors write in steps: what comes within it is one save. */
const SETTLE_MS = 6;
/** How long a module may go on loading once it was overtaken: it may never end. */
const OVERTAKEN_MS = 1_000;

export async function openSession(
  options: { folder: string; root: string; only?: readonly string[] },
  host: SessionHost,
): Promise<DevelopmentSession & { id: string }> {
  const id = newId("dev");
  const folder = resolve(options.folder);
  const events = eventQueue<DevelopmentEvent>();
  const controllers = new Map<string, Watched>();
  let announced = false;
  let closed = false;
  const time = (): string => rfc3339(Date.now());

  const began = Date.now();
  const watcher = openWatcher({
    folder,
    ignored: (path) => IGNORED.has(basename(path)) && path !== folder,
    onChange: (path) => void onChange(resolve(path)),
    onPolling: () => void catchUp(),
  });

  async function onChange(path: string): Promise<void> {
    const savedAt = Date.now();
    const child = controllerOf(path);
    if (child) await discover(child);
    for (const one of controllers.values()) {
      const named = namedIn(one, path);
      if (concerns(one, named)) markDirty(one, named, savedAt);
    }
  }

  async function discover(path: string): Promise<void> {
    if (controllers.has(path) || !(path === folder || wanted(path)) || !(await isController(path))) return;
    // Every file of a new folder comes here at once: only one of them adds it.
    if (controllers.has(path)) return;
    const one = newlyWatched(path, options.root);
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
    return !options.only || options.only.includes(basename(path));
  }

  function concerns(one: Watched, path: string): boolean {
    if (path === one.folder) return true;
    if (!path.startsWith(one.folder + sep)) return one.inputs.includes(path) || one.resolution.includes(path);
    const inside = path.slice(one.folder.length + 1);
    // A test or a readme changes nothing that serves; a file that may be imported soon does.
    return one.inputs.includes(path) || isRoot(inside) || /\.(ts|mts|cts|tsx|js|mjs|cjs|jsx|json)$/.test(inside);
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
    try {
      while (one.dirty && !closed) {
        await new Promise((done) => setTimeout(done, SETTLE_MS));
        await Promise.all([...one.changed].map(untilWritten));
        one.dirty = false;
        const changed = [...one.changed];
        one.changed = new Set();
        await reload(one, changed).catch((error: unknown) => invalid(one, [loadProblem(one, error)]));
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
    const result = await one.source.read();
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
    const twin = holderOf(contract.name, one);
    one.waitsFor = twin ? contract.name : null;
    // A renamed folder whose former place the watcher has not told of yet: that one's end offers the name.
    if (twin && !(await isStill(twin.folder))) return markDirty(twin, twin.folder, Date.now());
    if (twin && !inTurn(one, twin)) return invalid(one, [twinProblem(one, twin)]);
    one.waitsFor = null;
    one.claims = contract.name;
    const saved = await savedTime(changed, seen);
    const patience = new AbortController();
    let timer: NodeJS.Timeout | undefined;
    one.overtake = () => {
      timer ??= setTimeout(() => patience.abort(), OVERTAKEN_MS);
    };
    if (one.dirty || closed) one.overtake();
    try {
      const { bootMs, swapMs } = await host.serve(result.artifact, id, patience.signal);
      const former = one.live?.name;
      one.live = { name: contract.name, version: contract.version, digest };
      one.invalid = false;
      giveWay(one, contract.name);
      if (former !== undefined && former !== contract.name) await leave(former);
      if (!announced) return;
      const detectMs = Math.max(0, began - saved);
      events.push({
        type: "reload",
        time: time(),
        controller: contract.name,
        version: contract.version,
        digest,
        duration_ms: round(Date.now() - saved),
        phases: {
          detect_ms: round(detectMs),
          build_ms: round(buildMs),
          boot_ms: round(bootMs),
          swap_ms: round(swapMs),
        },
        changed: changed.map((path) => relative(options.root, path)),
      });
    } catch (error) {
      one.claims = one.live?.name ?? null;
      if (one.claims !== contract.name) await leave(contract.name);
      if (!patience.signal.aborted) invalid(one, [loadProblem(one, error)]);
    } finally {
      clearTimeout(timer);
      one.overtake = () => {};
    }
  }

  function holderOf(name: string, besides: Watched): Watched | undefined {
    return [...controllers.values()].find((other) => other !== besides && other.claims === name);
  }

  /** Whether each waits for the next one's name, and the last for that of `one`: names that were exchanged would wait for ever. */
  function inTurn(one: Watched, twin: Watched): boolean {
    const seen = new Set<Watched>();
    for (let at: Watched | undefined = twin; at && !seen.has(at); ) {
      if (at.waitsFor === null) return false;
      if (at.waitsFor === one.claims) return true;
      seen.add(at);
      at = holderOf(at.waitsFor, at);
    }
    return false;
  }

  /** Who had the name until its turn came has none before its new one serves. */
  function giveWay(heir: Watched, name: string): void {
    for (const one of controllers.values()) {
      if (one === heir || one.live?.name !== name) continue;
      one.live = null;
      if (one.claims === name) one.claims = null;
    }
  }

  /** Gives up a name that served: it serves until an heir does. False where there is one. */
  async function leave(name: string): Promise<boolean> {
    await Promise.all(offer(name).map((heir) => heir.running));
    if ([...controllers.values()].some(({ live, claims }) => live?.name === name || claims === name)) return false;
    await host.withdraw(name, id);
    return true;
  }

  /** A name that is free again goes to who waits for it. */
  function offer(name: string): Watched[] {
    const heirs = [...controllers.values()].filter((one) => one.waitsFor === name);
    for (const heir of heirs) markDirty(heir, heir.folder, Date.now());
    return heirs;
  }

  function invalid(one: Watched, problems: readonly SourceProblem[]): void {
    one.invalid = true;
    events.push({
      type: "invalid",
      time: time(),
      controller: one.live?.name ?? basename(one.folder),
      problems,
      serving: one.live?.version ?? null,
    });
  }

  async function withdraw(one: Watched): Promise<void> {
    const name = one.live?.name;
    one.live = one.claims = null;
    if (name !== undefined && (await leave(name))) events.push({ type: "removed", time: time(), controller: name });
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

  await first();
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

  return {
    id,
    events,
    reload() {
      for (const one of controllers.values()) {
        one.invalid = one.live !== null || one.invalid;
        markDirty(one, one.folder, Date.now());
      }
    },
    async close(reason = "closed") {
      if (closed) return;
      closed = true;
      await watcher.close();
      await Promise.all(
        [...controllers.values()].map(async (one) => {
          one.overtake();
          await one.running;
          one.stopWaiting();
          await one.source.dispose();
          if (one.live) await host.withdraw(one.live.name, id);
        }),
      );
      events.push({ type: "stopped", time: time(), reason });
      events.end();
    },
  };
}

function newlyWatched(folder: string, root: string): Watched {
  return {
    folder,
    target: null,
    source: openSource(folder, root),
    live: null,
    claims: null,
    waitsFor: null,
    invalid: false,
    dirty: false,
    running: null,
    changed: new Set(),
    savedAt: 0,
    inputs: [],
    resolution: resolutionFiles(folder, root),
    stopWaiting: () => {},
    foundAt: new Map(),
    overtake: () => {},
  };
}

function round(ms: number): number {
  return Math.round(ms * 10) / 10;
}
