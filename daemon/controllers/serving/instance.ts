// One deployed version: its compiled schemas, its cell, its limits. A call goes through here from admission to the checked output.
import { type FieldProblem, MagicError } from "#contract/errors.ts";
import { REQUEST_ID } from "#contract/protocol.ts";
import { defaultLimits } from "#contract/runtime-limits.ts";
import type { Logger } from "#daemon/telemetry/log.ts";
import type { Clock } from "#shared/clock.ts";
import { cleanWithin } from "#shared/redact.ts";
import { type StackMapper, stackMapper } from "../bundle/stack.ts";
import type { Cell, CellGone, CellOutcome } from "../cell/cell.ts";
import type { TimeLimit } from "../job-thread.ts";
import { inSource, levelOf } from "../log-line.ts";
import type { Artifact } from "../runtime.ts";
import { type Admission, openAdmission } from "./admission.ts";
import { type Breaker, openBreaker } from "./breaker.ts";
import { execute, type InstanceCall, type Running } from "./execute.ts";
import { handlerFailure, ranOut } from "./failures.ts";
import { type Loading, loadCell } from "./load.ts";
import type { NestedCalls } from "./nested.ts";
import { outputReader } from "./output.ts";
import { schemaCheck } from "./slow-check.ts";
import { endIfItSpins, type LiveCell, seemsToSpin, type Watchdog } from "./watchdog.ts";

const GREEDY_MS = 60_000;
/** So many answers within so many milliseconds, and its cells may run on every processor. */
const TRUSTED_AFTER = 8;
const SHORT_MS = 10;
/** Waiting calls per place. */
const QUEUE_FACTOR = 16;

export interface InstanceResult {
  /** A LargeOutput where it is one. */
  readonly output: unknown;
  readonly queueMs: number;
  readonly coldMs: number;
  readonly runMs: number;
  readonly cpuMs: number | null;
}

export interface Instance {
  readonly artifact: Artifact;
  readonly admission: Admission;
  readonly stacks: StackMapper;
  /** Loads the controller into a cell now. Throws `build_failed` where its module does not load; `overtaken` ends a load under way. */
  start(overtaken?: AbortSignal): Promise<void>;
  run(call: InstanceCall): Promise<InstanceResult>;
  /** Ends the cell after the calls that are in it or wait. */
  retire(): Promise<void>;
  /** Gives an idle cell back; the next call loads a new one. */
  rest(live: LiveCell): void;
  pid(): number | null;
}

export interface InstanceServices {
  takeCell(overtaken?: AbortSignal): Promise<Cell>;
  readonly watchdog: Watchdog;
  readonly log: Logger;
  readonly clock: Clock;
  readonly nested: NestedCalls;
  /** What the contract's module may take to load. */
  readonly loadWithinMs: number;
  onDeath(instance: Instance, reason: CellGone): void;
  /** What strikes the secrets out that invocations of the instance have learned. */
  striker(instance: Instance): (text: string) => string;
}

export function openInstance(artifact: Artifact, services: InstanceServices): Instance {
  const { contract } = artifact;
  const name = `${contract.name}@${contract.version}`;
  const { timeout_ms: timeoutMs, memory_mb: memoryMb, concurrency: places } = { ...defaultLimits, ...contract.limits };
  const inputCheck = schemaCheck(contract.input_schema);
  const outputCheck = schemaCheck(contract.output_schema);
  const readOutput = outputReader(name, outputCheck);
  const admission = openAdmission(name, places, places * QUEUE_FACTOR, services.nested);
  const breaker: Breaker = openBreaker(name, services.clock);
  const stacks = stackMapper(artifact.map, `controllers/${contract.name}`);
  const fresh = contract.isolation === "invocation";
  let current: LiveCell | null = null;
  let starting: Promise<LiveCell> | null = null;
  let onEmpty: (() => void) | null = null;
  let ending = false;
  /** Until then its new cells begin behind others: what took a core in the last cell most likely does so in the next. */
  let greedyUntil = 0;
  let shortCalls = 0;
  const loading: Loading = {
    ...{ artifact, memoryMb, stacks, withinMs: services.loadWithinMs },
    onGone: (why) => breaker.died(why),
    // Lines of no invocation: what any of them has learned may be in such a line.
    onLog(said) {
      const { name: controller, version } = contract;
      const line = inSource(said, stacks);
      const clean = services.striker(instance);
      const more =
        typeof line.fields === "object" && line.fields !== null ? { fields: cleanWithin(line.fields, clean) } : {};
      const { requestId: request_id } = said;
      const request = typeof request_id === "string" && REQUEST_ID.test(request_id) ? { request_id } : {};
      services.log[levelOf(line.level)](clean(line.message), { ...request, controller, version, ...more });
    },
  };
  const running: Running = {
    ...{ clock: services.clock, watchdog: services.watchdog, timeoutMs, memoryMb },
    onOverdue: retireCell,
    onLeft: endUnneeded,
  };

  async function boot(overtaken?: AbortSignal): Promise<LiveCell> {
    breaker.pass();
    const cell = await services.takeCell(overtaken);
    await loadCell(cell, loading, overtaken);
    const live: LiveCell = {
      cell,
      calls: 0,
      late: 0,
      overdue: 0,
      retired: false,
      lastUsed: performance.now(),
      cpuMs: 0,
      burning: 0,
      behind: performance.now() < greedyUntil,
      onGreed: () => {
        greedyUntil = performance.now() + GREEDY_MS;
        shortCalls = 0;
      },
    };
    if (live.behind) cell.stepBack();
    else if (shortCalls >= TRUSTED_AFTER) cell.trust();
    services.watchdog.watch(live);
    void cell.gone.then((reason) => {
      if (current === live) current = null;
      if (live.retired && reason.reason === "killed") return;
      if (reason.reason !== "killed") breaker.died(reason.message);
      services.onDeath(instance, reason);
    });
    return live;
  }

  /** The cell that takes calls now; loaded when there is none. */
  function serving(overtaken?: AbortSignal): LiveCell | Promise<LiveCell> {
    if (fresh) return boot(overtaken);
    if (current && !current.cell.killed) return seemsToSpin(current.cell) ? unlessItSpins(current, overtaken) : current;
    starting ??= boot(overtaken).then(
      (live) => {
        starting = null;
        current = live;
        return live;
      },
      (error: unknown) => {
        starting = null;
        throw error;
      },
    );
    return starting;
  }

  /** A call would wait for nothing in a cell that spins. */
  async function unlessItSpins(live: LiveCell, overtaken: AbortSignal | undefined): Promise<LiveCell> {
    await endIfItSpins(live.cell);
    return live.cell.killed || current !== live ? serving(overtaken) : live;
  }

  function retireCell(live: LiveCell): void {
    live.retired = true;
    if (current === live) current = null;
    if (live.calls === 0) live.cell.kill("killed", "retired");
    else live.cell.ping();
  }

  /** A cell that takes no more calls ends with the last one that somebody waits for; one of a single call with that call, its caller there or not. */
  function endUnneeded(live: LiveCell): void {
    if (live.calls === 0 && (live.retired || (fresh && live.late === 0))) end(live, "retired");
  }

  /** As was meant: no death to be told of. */
  function end(live: LiveCell, why: string): void {
    live.retired = true;
    live.cell.kill("killed", why);
  }

  const instance: Instance = {
    artifact,
    admission,
    stacks,
    async start(overtaken) {
      // First: of a start that fails here no cell is left.
      await Promise.all([inputCheck.ready(), outputCheck.ready()]);
      const live = await serving(overtaken);
      if (fresh) end(live, "the module loads");
    },
    async run(call) {
      const problems = inputCheck.atOnce(call.input);
      if (problems !== null) refuseInput(problems);
      const arrived = performance.now();
      if (!admission.tryEnter()) await admission.wait(timeoutMs, call.signal, call.within);
      try {
        // In a place of its own: no more slow checks wait than calls may run.
        if (problems === null)
          refuseInput(
            await inputCheck.elsewhere(JSON.stringify(call.input ?? null), checkedWithin(timeoutMs, "input")),
          );
        const admitted = performance.now();
        let spentMs = 0;
        let live: LiveCell;
        let began: number;
        let outcome: CellOutcome | null;
        do {
          const serve = serving();
          live = serve instanceof Promise ? await serve : serve;
          if (call.signal?.aborted) {
            if (fresh) end(live, "the caller left");
            throw new MagicError("client_closed");
          }
          began = performance.now();
          outcome = await execute(live, call, running, spentMs);
          spentMs += performance.now() - began;
        } while (outcome === null);
        const runMs = performance.now() - began;
        breaker.worked();
        if (runMs < SHORT_MS && !live.behind && ++shortCalls === TRUSTED_AFTER) live.cell.trust();
        if (!outcome.ok) {
          if (ranOut(outcome.error)) retireCell(live);
          throw handlerFailure(outcome.error, { memoryMb, stacks, redact: call.redact });
        }
        const read = readOutput(outcome.output, checkedWithin(Math.max(0, timeoutMs - runMs), "output"));
        const output = read instanceof Promise ? await read : read;
        return {
          output,
          queueMs: admitted - arrived,
          coldMs: began - admitted,
          runMs,
          cpuMs: outcome.cpuMs,
        };
      } finally {
        admission.leave();
        if (admission.active === 0 && admission.waiting === 0) {
          onEmpty?.();
          // A call that found this instance a moment before it was retired has started a cell again.
          if (ending && current) retireCell(current);
        }
      }
    },
    async retire() {
      ending = true;
      if (admission.active > 0 || admission.waiting > 0)
        await new Promise<void>((resolve) => {
          onEmpty = resolve;
        });
      await starting?.catch(() => {});
      if (!current) return;
      const { cell } = current;
      retireCell(current);
      await cell.gone;
    },
    rest: (live) => {
      if (live.calls === 0) retireCell(live);
    },
    pid: () => current?.cell.pid ?? null,
  };

  function checkedWithin(ms: number, what: "input" | "output"): TimeLimit {
    const late = () =>
      new MagicError(
        "timeout",
        `the ${what} was not checked against the contract by the deadline (limits.timeout_ms is ${timeoutMs})`,
      );
    return { ms, late };
  }

  function refuseInput(problems: readonly FieldProblem[]): void {
    if (problems.length > 0)
      throw new MagicError("input_invalid", `the input does not fit ${name}'s input_schema`, { problems });
  }

  return instance;
}
