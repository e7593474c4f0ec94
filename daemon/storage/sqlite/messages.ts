// What the main thread and the storage thread say to each other.
import type { Failure } from "../failure.ts";

export interface WorkerOptions {
  readonly file: string;
  readonly maxPages: number | undefined;
}

export interface Call {
  readonly id: number;
  readonly noun: string;
  readonly unit: string;
  readonly args: unknown;
}

export type ToWorker = readonly Call[] | "close";

export interface Reply {
  readonly id: number;
  readonly value?: unknown;
  readonly failure?: Failure;
}

export type FromWorker = readonly Reply[] | { readonly ready: true } | { readonly refused: Failure };
