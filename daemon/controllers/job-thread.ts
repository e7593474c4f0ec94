// Threads for work that would hold up the daemon's own: what hostile input makes long.
import type { Worker } from "node:worker_threads";
import { MagicError } from "#contract/errors.ts";
import { startFailure } from "./cell/entries.ts";

/**
 * One job after the other; those of each owner in their order, owners by turns: one that asks for many holds itself up. Rejects where the
 * thread ends, with `program_replaced` or `overloaded` where it cannot be started, and at the limit: a job that still waits is taken out,
 * one under way ends for nobody.
 */
export type JobThread<Job, Answer> = (job: Job, owner: unknown, limit?: TimeLimit) => Promise<Answer>;

export interface TimeLimit {
  /** Milliseconds, the wait for others included. */
  readonly ms: number;
  /** What the job is rejected with. */
  late(): Error;
}

interface Waiting<Job, Answer> {
  readonly job: Job;
  readonly answer: PromiseWithResolvers<Answer>;
}

/** Without its file, descriptors or a thread of the machine's. */
const NOT_STARTED = /^((ERR_)?MODULE_NOT_FOUND|ERR_WORKER_INIT_FAILED|EMFILE|ENFILE|overloaded)$/;

/**
 * `open` starts the thread, with the first job and where it has ended; its program posts one answer a job. `name` is for messages; of `most`
 * jobs of one owner that wait, the next is refused as `overloaded`.
 */
export function jobThread<Job, Answer>(
  name: string,
  open: () => Worker,
  most = Number.POSITIVE_INFINITY,
): JobThread<Job, Answer> {
  /** By owner, the one whose turn is next first; of none that has nothing to do. */
  const waiting = new Map<unknown, Set<Waiting<Job, Answer>>>();
  let under: Waiting<Job, Answer> | null = null;
  let worker: Worker | null = null;

  function start(): Worker {
    const thread = open();
    let failure: unknown = new Error(`the thread ${name} has ended`);
    thread.on("message", (answer: Answer) => {
      under?.answer.resolve(answer);
      under = null;
      next();
    });
    thread.on("error", (error) => {
      failure = error;
    });
    thread.on("exit", () => {
      worker = null;
      under?.answer.reject(failure);
      under = null;
      next();
    });
    return thread;
  }

  function next(): void {
    const [turn] = waiting;
    // Nothing under way keeps no process alive.
    if (!turn) return void worker?.unref();
    const [owner, jobs] = turn;
    const [first] = jobs as Set<Waiting<Job, Answer>>;
    under = first as Waiting<Job, Answer>;
    waiting.delete(owner);
    jobs.delete(under);
    if (jobs.size > 0) waiting.set(owner, jobs);
    try {
      worker ??= start();
      worker.ref();
      worker.postMessage(under.job);
    } catch (error) {
      // No thread, or no memory for a copy: the one who asked is told, the next may fare better.
      under.answer.reject(error);
      under = null;
      next();
    }
  }

  function overloaded(jobs: number): MagicError {
    return new MagicError("overloaded", `${jobs} jobs of yours wait for the thread for ${name}`, { retryAfterS: 1 });
  }

  async function refuse(error: NodeJS.ErrnoException): Promise<never> {
    const { code = "", message } = error;
    throw NOT_STARTED.test(code) ? await startFailure(`the thread for ${name} could not be started`, message) : error;
  }

  return (job, owner, limit) => {
    const one: Waiting<Job, Answer> = { job, answer: Promise.withResolvers<Answer>() };
    const jobs = waiting.get(owner) ?? new Set();
    if (jobs.size >= most) return Promise.reject(overloaded(jobs.size));
    waiting.set(owner, jobs.add(one));
    if (!under) next();
    const { reject } = one.answer;
    const promise = one.answer.promise.catch(refuse);
    if (!limit) return promise;
    const timer = setTimeout(() => {
      if (jobs.delete(one) && jobs.size === 0) waiting.delete(owner);
      reject(limit.late());
    }, limit.ms);
    return promise.finally(() => clearTimeout(timer));
  };
}
