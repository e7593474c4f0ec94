// Contracts are checked and compared in a thread of their own: a hostile one takes seconds, and whoever calls meanwhile does not wait.
import { Worker } from "node:worker_threads";
import type { ControllerContract } from "#contract/controller.ts";
import type { ContractReading } from "#contract/controller-check.ts";
import { jobThread } from "./job-thread.ts";
import type { Break } from "./versions/narrowing.ts";

export type ContractJob =
  | { readonly content: string | Uint8Array; readonly file: string }
  | { readonly previous: ControllerContract; readonly next: ControllerContract };

const work = jobThread<ContractJob, ContractReading | Break[]>(
  "contracts",
  () => new Worker(new URL(import.meta.resolve("#entry/contract-worker")), { name: "contracts" }),
);

/** What `readContract` answers. */
export async function readContractApart(content: string | Uint8Array, file: string): Promise<ContractReading> {
  return (await work({ content, file }, {})) as ContractReading;
}

/** What `findBreaks` answers. */
export async function findBreaksApart(previous: ControllerContract, next: ControllerContract): Promise<Break[]> {
  return (await work({ previous, next }, {})) as Break[];
}
