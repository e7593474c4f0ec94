// Watches every loaded cell from outside its calls: a loop that no longer turns, or a processor burnt after the answer, ends the cell.
import { readFileSync } from "node:fs";
import { setImmediate as breathe, setTimeout as sleep } from "node:timers/promises";
import type { Cell } from "../cell/cell.ts";

/** How long a process's main thread has run, and waited for a processor to run on. */
interface Schedule {
  readonly ranMs: number;
  readonly waitedMs: number;
}

/** A loaded cell and who waits for it. */
export interface LiveCell {
  readonly cell: Cell;
  /** Calls whose caller still waits. */
  calls: number;
  /** Calls that go on without a caller: past their deadline, or the caller left. */
  late: number;
  /** Those of them that are past their deadline. */
  overdue: number;
  /** No new calls; it ends when nobody waits any more. */
  retired: boolean;
  /** Monotonic milliseconds of the last call's end. */
  lastUsed: number;
  /** Processor milliseconds at the last sweep, and sweeps in a row in which an idle cell burnt them. */
  cpuMs: number;
  burning: number;
  /** It was seen not to yield, or to take a core for itself: since then others come first where the processor is scarce. */
  behind: boolean;
  /** Told each time that it is seen so, also when it is behind already. */
  onGreed(): void;
  /** At the last look at a call that takes its time: the processor time by then, and looks in a row in which it was most of a core. */
  look?: Schedule & { readonly at: number; readonly full: number; readonly lastUsed: number };
  /** Processor time at the last look while calls were under way, and looks in a row in which it was most of a core. */
  load?: Schedule & { readonly at: number; readonly full: number };
}

export interface Watchdog {
  watch(live: LiveCell): void;
  /** A call begins: from now on it is looked at closely. */
  stir(): void;
  stop(): void;
}

const SWEEP_MS = 250;
/** Every so many sweeps, cells that nobody uses are looked at too. */
const SLOW = 8;
/** A loop that has been silent that long while somebody's deadline has passed in it, or somebody has left and nobody else waits. */
const LATE_SILENCE_MS = 400;
/** The same where others wait: what computes may be one of their calls. */
const LEFT_SILENCE_MS = 5_000;
/** The same where it began while no call was under way: longer, because a busy machine may starve it. */
const IDLE_SILENCE_MS = 2_000;
/** While calls are under way, so often those that take longer are looked at: one that has a core for itself so many looks in a row steps back. */
const LOOK_MS = 10;
const FULL_LOOKS = 2;
const LOOKED_SHARE = 0.4;
/** Looks at nobody before nobody is looked at any more. */
const IDLE_LOOKS = 100;
/** A loop that has been silent that long computes; so may it, but after its neighbours and the daemon. */
const COMPUTING_MS = 200;
/** What a cell that does not spin has for its answer once more, and what it may run meanwhile without giving it. */
const ANSWER_MS = 50;
const RAN_MS = 5;
/** Why a cell is ended that computes for nobody. */
const SPINS = "it spins though no call is under way";
/** So much of a core, had or waited for, and for so many sweeps: floods and loops that do yield. */
const FULL_SHARE = 0.75;
/** And so much of it had: one that only waits on a crowded machine is not the cause. */
const HAD_SHARE = 0.2;
const FULL_SWEEPS = 2;
const IDLE_BURN_MS = (SWEEP_MS * SLOW) / 2;
const BURNING_SWEEPS = 2;
const TICKS_PER_SECOND = 100;

/** One that was used within it may be about to be used. */
const SETTLED_MS = 1_000;

/** `most`: cells beyond it are given back as soon as nobody uses them, those that rest longest first. */
export function startWatchdog(options: { idleMs: number; most: number; onIdle(live: LiveCell): void }): Watchdog {
  const cells = new Set<LiveCell>();
  let timer: NodeJS.Timeout | null = null;
  let looking: NodeJS.Timeout | null = null;
  let idleLooks = 0;
  let sweeps = 0;

  function sweep(): void {
    sweeps++;
    const slow = sweeps % SLOW === 0;
    for (const live of cells) {
      const idle = live.calls === 0;
      const silence = live.cell.silence();
      const unused = idle && live.late === 0;
      // Of one that nobody uses silence alone says nothing: on a crowded machine it may have no processor to answer on.
      if ((silence > COMPUTING_MS && !unused) || takesCore(live, unused && silence === 0)) putBehind(live);
      if (live.overdue > 0 && silence > LATE_SILENCE_MS)
        live.cell.kill("killed", "a call passed its deadline and does not yield");
      else if (live.late > 0 && silence > (idle ? LATE_SILENCE_MS : LEFT_SILENCE_MS))
        live.cell.kill("killed", "a caller has left, and it does not yield");
      else if (live.cell.spinning() > IDLE_SILENCE_MS) live.cell.kill("killed", SPINS);
      else if (slow && idle) inspectIdle(live);
      if (slow || live.late > 0 || !idle) live.cell.ping();
    }
    if (cells.size > options.most) giveBackSurplus();
  }

  /** Whoever calls versions one after the other would have a process of each. */
  function giveBackSurplus(): void {
    const settled = performance.now() - SETTLED_MS;
    const resting = [...cells]
      .filter((live) => live.calls + live.late === 0 && !live.retired && live.lastUsed < settled)
      .sort((a, b) => a.lastUsed - b.lastUsed);
    for (const live of resting.slice(0, cells.size - options.most)) options.onIdle(live);
  }

  /** What a sweep would see a quarter of a second late: that is long enough for a neighbour to be late a hundred times. */
  function look(): void {
    idleLooks++;
    for (const live of cells) {
      if (live.calls + live.late === 0) {
        delete live.look;
        // One that spins after its answer is known by it before the next call comes.
        if (performance.now() - live.lastUsed < SETTLED_MS) live.cell.ping();
        continue;
      }
      idleLooks = 0;
      const before = live.look;
      // One that answers between two looks is not looked at, whatever it costs.
      if (before?.lastUsed !== live.lastUsed)
        live.look = { at: 0, ranMs: 0, waitedMs: 0, full: 0, lastUsed: live.lastUsed };
      else {
        live.look = { ...after(live, before, LOOKED_SHARE), lastUsed: live.lastUsed };
        if (live.look.full >= FULL_LOOKS) putBehind(live);
      }
    }
    if (idleLooks < IDLE_LOOKS || !looking) return;
    clearInterval(looking);
    looking = null;
  }

  function takesCore(live: LiveCell, rests: boolean): boolean {
    if (rests) {
      delete live.load;
      return false;
    }
    live.load = after(live, live.load, HAD_SHARE);
    return live.load.full >= FULL_SWEEPS;
  }

  /** `full` counts on where the cell had, or waited for, most of a core since `before`, and had the given share of it. */
  function after(live: LiveCell, before: LiveCell["load"], hadShare: number): NonNullable<LiveCell["load"]> {
    const at = performance.now();
    const { ranMs, waitedMs } = schedule(live.cell.pid);
    const share = (now: number, then: number): number =>
      before && before.at > 0 ? (now - then) / (at - before.at) : 0;
    const had = share(ranMs, before?.ranMs ?? 0);
    const took = had > hadShare && had + share(waitedMs, before?.waitedMs ?? 0) > FULL_SHARE;
    return { at, ranMs, waitedMs, full: took ? (before?.full ?? 0) + 1 : 0 };
  }

  function putBehind(live: LiveCell): void {
    live.onGreed();
    if (!live.behind) live.cell.stepBack();
    live.behind = true;
  }

  function inspectIdle(live: LiveCell): void {
    const used = cpuMilliseconds(live.cell.pid);
    const burnt = used - live.cpuMs;
    live.cpuMs = used;
    const unused = performance.now() - live.lastUsed;
    // The sweep after the last call still counts that call's work.
    live.burning = burnt > IDLE_BURN_MS && unused > SWEEP_MS * SLOW ? live.burning + 1 : 0;
    if (live.burning >= BURNING_SWEEPS) live.cell.kill("killed", "it burns processor time though no call is under way");
    else if (unused > options.idleMs) options.onIdle(live);
  }

  return {
    watch(live) {
      cells.add(live);
      // Behind what has come meanwhile: a daemon that was late itself would take an answer that it has not read for silence.
      timer ??= setInterval(() => setImmediate(sweep), SWEEP_MS).unref();
      void live.cell.gone.then(() => {
        cells.delete(live);
        if (cells.size > 0 || !timer) return;
        clearInterval(timer);
        timer = null;
      });
    },
    stir() {
      looking ??= setInterval(look, LOOK_MS).unref();
    },
    stop() {
      if (timer) clearInterval(timer);
      if (looking) clearInterval(looking);
      timer = null;
      looking = null;
    },
  };
}

/** Its loop has been silent for long, with no call to blame. */
export function seemsToSpin(cell: Cell): boolean {
  return cell.spinning() > COMPUTING_MS;
}

/** Ends a cell that seems to spin, unless it is the daemon that was late, or the cell has no processor to answer on. */
export async function endIfItSpins(cell: Cell): Promise<void> {
  const { ranMs } = schedule(cell.pid);
  await sleep(ANSWER_MS);
  // Behind what has come by now.
  await breathe();
  if (seemsToSpin(cell) && schedule(cell.pid).ranMs > ranMs + RAN_MS) cell.kill("killed", SPINS);
}

/** /proc/PID/schedstat, nanoseconds; the processor time alone where the kernel does not keep it. */
function schedule(pid: number): Schedule {
  try {
    const [ran = "", waited = ""] = readFileSync(`/proc/${pid}/schedstat`, "latin1").split(" ");
    return { ranMs: Number(ran) / 1e6, waitedMs: Number(waited) / 1e6 };
  } catch {
    return { ranMs: cpuMilliseconds(pid), waitedMs: 0 };
  }
}

/** User and system time of a process so far (/proc/PID/stat, fields 14 and 15); 0 where it cannot be read. */
export function cpuMilliseconds(pid: number): number {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "latin1");
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    return ((Number(fields[11]) + Number(fields[12])) * 1000) / TICKS_PER_SECOND;
  } catch {
    return 0;
  }
}
