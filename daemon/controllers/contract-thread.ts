// Contracts are checked and compared in a thread of their own: a hostile one takes seconds, and whoever calls meanwhile does not wait.
import { Worker } from "node:worker_threads";
import type { ControllerContract } from "#contract/controller.ts";
import type { ContractReading } from "#contract/controller-check.ts";
import { startFailure } from "./cell/entries.ts";
import { jobThread } from "./job-thread.ts";
import type { Break } from "./versions/narrowing.ts";

export type ContractJob =
  | { readonly content: string | Uint8Array; readonly file: string }
  | { readonly previous: ControllerContract; readonly next: ControllerContract };

const work = jobThread<ContractJob, ContractReading | Break[]>(
  "contracts",
  () => new Worker(new URL(import.meta.resolve("#entry/contract-worker")), { name: "contracts" }),
);

/** Without its file, descriptors or a thread of the machine's. */
const NOT_STARTED = /^((ERR_)?MODULE_NOT_FOUND|ERR_WORKER_INIT_FAILED|EMFILE|ENFILE|overloaded)$/;

/** Throws `program_replaced` or `overloaded` where the thread cannot be started. */
async function apart<T extends ContractReading | Break[]>(job: ContractJob, owner: unknown): Promise<T> {
  try {
    return (await work(job, owner)) as T;
  } catch (error) {
    const { code = "", message } = error as NodeJS.ErrnoException;
    throw NOT_STARTED.test(code) ? await startFailure("the contract could not be checked", message) : error;
  }
}

/** What `readContract` answers. Of one owner one after the other, so that who sends many holds up nobody else's. */
export function readContractApart(
  content: string | Uint8Array,
  file: string,
  owner: unknown,
): Promise<ContractReading> {
  return apart({ content, file }, owner);
}

/** What `findBreaks` answers. */
export function findBreaksApart(previous: ControllerContract, next: ControllerContract): Promise<Break[]> {
  return apart({ previous, next }, next.name);
}
