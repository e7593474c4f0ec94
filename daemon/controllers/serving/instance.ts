// One deployed version: its compiled schemas, its cell, its limits. A call goes through here from admission to the checked output.
import { type FieldProblem, MagicError } from "#contract/errors.ts";
import type { Logger } from "#daemon/telemetry/log.ts";
import type { AbortNotice } from "#shared/abort.ts";
import type { Clock } from "#shared/clock.ts";
import { cleanWithin } from "#shared/redact.ts";
import { bundleName, type StackMapper, stackMapper } from "../bundle/stack.ts";
import { type Cell, CellGone, type CellOutcome } from "../cell/cell.ts";
import type { InvokeMessage, LogMessage } from "../cell/frames.ts";
import type { BrokerSession } from "../cell/streams.ts";
import type { TimeLimit } from "../job-thread.ts";
import { inSource, levelOf } from "../log-line.ts";
import type { Artifact } from "../runtime.ts";
import { type Admission, openAdmission } from "./admission.ts";
import { type Breaker, openBreaker } from "./breaker.ts";
import { cellFailure, handlerFailure, ranOut } from "./failures.ts";
import type { Holder, NestedCalls } from "./nested.ts";
import { outputReader } from "./output.ts";
import { schemaCheck } from "./slow-check.ts";
import type { LiveCell, Watchdog } from "./watchdog.ts";

const defaults = { timeoutMs: 30_000, memoryMb: 128, concurrency: 16 } as const;
/** A cell may not start faster than the machine allows; beyond this it is given up. */
export const LOAD_WITHIN_MS = 15_000;
/** Why what an invocation has under way stops; made once, because an error with its stack costs more than the rest. */
const ENDED = new DOMException("the invocation has ended", "AbortError");
const GREEDY_MS = 60_000;
/** So many answers within so many milliseconds, and its cells may run on every processor. */
const TRUSTED_AFTER = 8;
const SHORT_MS = 10;
/** Waiting calls per place. */
const QUEUE_FACTOR = 16;

export interface InstanceCall {
  readonly input: unknown;
  readonly requestId: string;
  readonly environment: string;
  readonly signal: AbortNotice | undefined;
  /** The deadline of the call that this one is nested in. */
  readonly deadline: number | undefined;
  /** The call that this one is nested in. */
  readonly within: Holder | undefined;
  /** Made when the handler first asks for something; `ended` is aborted when the call ends, by `deadline` at the latest. */
  broker(ended: AbortSignal, deadline: number): BrokerSession;
  onLog(line: LogMessage): void;
  /** A secret that was handed out must not appear in what is written down. */
  redact(text: string): string;
}

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
  takeCell(): Promise<Cell>;
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
  const timeoutMs = contract.limits?.timeout_ms ?? defaults.timeoutMs;
  const memoryMb = contract.limits?.memory_mb ?? defaults.memoryMb;
  const places = contract.limits?.concurrency ?? defaults.concurrency;
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

  async function boot(overtaken?: AbortSignal): Promise<LiveCell> {
    breaker.pass();
    const cell = await services.takeCell();
    const overtake = (): void => cell.kill("killed", "a newer version takes its place");
    overtaken?.addEventListener("abort", overtake);
    let late = false;
    const timer = setTimeout(() => {
      late = true;
      cell.kill("killed", "the controller's module did not load in time");
    }, services.loadWithinMs);
    try {
      await load(cell);
    } catch (error) {
      cell.kill("killed", "the module did not load");
      const failure = loadFailure(error);
      throw late ? loadTimeout() : failure;
    } finally {
      clearTimeout(timer);
      overtaken?.removeEventListener("abort", overtake);
    }
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

  async function load(cell: Cell): Promise<void> {
    const { name: controller, version } = contract;
    const options = { controller, version, filename: bundleName(controller), memoryBytes: memoryMb * 2 ** 20 };
    // Lines of no invocation: what any of them has learned may be in such a line.
    await cell.load(options, artifact.code, (said) => {
      const line = inSource(said, stacks);
      const clean = services.striker(instance);
      const more =
        typeof line.fields === "object" && line.fields !== null ? { fields: cleanWithin(line.fields, clean) } : {};
      services.log[levelOf(line.level)](clean(line.message), { controller, version, ...more });
    });
  }

  function loadFailure(error: unknown): Error {
    if (error instanceof CellGone) {
      breaker.died(error.message);
      return cellFailure(error, memoryMb);
    }
    if ((error as { guest?: boolean }).guest !== true) return error as Error;
    const { message, stack } = error as Error;
    return new MagicError("build_failed", `${name} does not load: ${message}\n${stacks.map(stack ?? "")}`);
  }

  function loadTimeout(): MagicError {
    const detail = `the module of ${name} did not finish loading within ${services.loadWithinMs} ms: what runs at import, before any call, must end`;
    return new MagicError("load_timeout", detail);
  }

  /** The cell that takes calls now; loaded when there is none. */
  function serving(overtaken?: AbortSignal): LiveCell | Promise<LiveCell> {
    if (fresh) return boot(overtaken);
    if (current && !current.cell.killed) return current;
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

  function retireCell(live: LiveCell): void {
    live.retired = true;
    if (current === live) current = null;
    if (live.calls === 0) live.cell.kill("killed", "retired");
    else live.cell.ping();
  }

  /** A cell that takes no more calls ends with the last one that somebody waits for; one of a single call with that call, its caller there or not. */
  function endUnneeded(live: LiveCell): void {
    if (live.calls === 0 && (live.retired || (fresh && live.late === 0))) live.cell.kill("killed", "retired");
  }

  /** Runs the handler in the cell, up to its deadline. */
  function execute(live: LiveCell, call: InstanceCall): Promise<CellOutcome> {
    return new Promise((resolve, reject) => {
      let ended: AbortController | null = null;
      let over = false;
      const signalOfEnd = (): AbortSignal => {
        ended ??= new AbortController();
        if (over) ended.abort(ENDED);
        return ended.signal;
      };
      const deadline = Math.min(services.clock.now() + timeoutMs, call.deadline ?? Number.POSITIVE_INFINITY);
      const message: InvokeMessage = {
        input: call.input,
        id: call.requestId,
        deadline,
        environment: call.environment,
      };
      let waited = true;
      let overdue = false;
      /** The deadline of a call whose caller has left. */
      let rest: NodeJS.Timeout | undefined;
      const running = live.cell.invoke({
        message,
        broker: () => call.broker(signalOfEnd(), deadline),
        onLog: call.onLog,
        onEnd(outcome) {
          clearTimeout(rest);
          if (waited) leave();
          else live.late--;
          if (overdue) live.overdue--;
          endUnneeded(live);
          resolve(outcome);
        },
        onGone(why) {
          clearTimeout(rest);
          if (!waited) return;
          leave();
          const gone = cellFailure(why, memoryMb);
          const { code, retryAfterS } = gone;
          reject(new MagicError(code, call.redact(gone.message), retryAfterS === undefined ? {} : { retryAfterS }));
        },
      });
      live.calls++;
      services.watchdog.stir();

      const leave = (): void => {
        waited = false;
        clearTimeout(timer);
        call.signal?.removeEventListener("abort", left);
        live.calls--;
        live.lastUsed = performance.now();
        over = true;
        ended?.abort(ENDED);
      };
      const depart = (error: MagicError, reason: string): void => {
        if (!waited) return;
        leave();
        live.late++;
        endUnneeded(live);
        running.abort(reason);
        reject(error);
      };
      const passDeadline = (): void => {
        overdue = true;
        live.overdue++;
        retireCell(live);
      };
      const timer = setTimeout(() => {
        depart(new MagicError("timeout", `the handler was given ${timeoutMs} ms (limits.timeout_ms)`), "deadline");
        passDeadline();
      }, timeoutMs);
      const left = (): void => {
        depart(new MagicError("client_closed"), "the caller left");
        // Its deadline still stands.
        rest = setTimeout(passDeadline, Math.max(0, deadline - services.clock.now())).unref();
      };
      call.signal?.addEventListener("abort", left, { once: true });
    });
  }

  const instance: Instance = {
    artifact,
    admission,
    stacks,
    async start(overtaken) {
      const [live] = await Promise.all([serving(overtaken), inputCheck.ready(), outputCheck.ready()]);
      if (fresh) live.cell.kill("killed", "the module loads");
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
        const serve = serving();
        const live = serve instanceof Promise ? await serve : serve;
        if (call.signal?.aborted) {
          if (fresh) live.cell.kill("killed", "the caller left");
          throw new MagicError("client_closed");
        }
        const began = performance.now();
        const outcome = await execute(live, call);
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
    const message = `the ${what} was not checked against the contract by the deadline (limits.timeout_ms is ${timeoutMs})`;
    return { ms, late: () => new MagicError("timeout", message) };
  }

  function refuseInput(problems: readonly FieldProblem[]): void {
    if (problems.length > 0)
      throw new MagicError("input_invalid", `the input does not fit ${name}'s input_schema`, { problems });
  }

  return instance;
}
