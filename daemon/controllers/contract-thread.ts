// Contracts are checked and compared in a thread of their own: a hostile one takes seconds, and whoever calls meanwhile does not wait.
import { Worker } from "node:worker_threads";
import type { ControllerContract } from "#contract/controller.ts";
import type { ContractReading } from "#contract/controller-check.ts";
import { jobThread } from "./job-thread.ts";
import type { Break } from "./versions/narrowing.ts";

export type ContractJob =
  | { readonly content: string | Uint8Array; readonly file: string }
  | { readonly previous: ControllerContract; readonly next: ControllerContract };

/** Of one owner; each may take seconds, and holds its caller's bundle. */
const MOST_WAITING = 256;

const work = jobThread<ContractJob, ContractReading | Break[]>(
  "contracts",
  () => new Worker(new URL(import.meta.resolve("#entry/contract-worker")), { name: "contracts" }),
  MOST_WAITING,
);

/** What `readContract` answers. Of one owner one after the other, so that who sends many holds up nobody else's; with 256 waiting the next is `overloaded`. */
export function readContractApart(
  content: string | Uint8Array,
  file: string,
  owner: unknown,
): Promise<ContractReading> {
  return work({ content, file }, owner) as Promise<ContractReading>;
}

/** What `findBreaks` answers. */
export function findBreaksApart(previous: ControllerContract, next: ControllerContract): Promise<Break[]> {
  return work({ previous, next }, next.name) as Promise<Break[]>;
}
