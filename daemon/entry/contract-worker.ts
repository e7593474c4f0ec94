// A thread that checks and compares contracts; see daemon/controllers/contract-thread.ts.
import { parentPort } from "node:worker_threads";
import { readContract } from "#contract/controller-check.ts";
import type { ContractJob } from "#daemon/controllers/contract-thread.ts";
import { findBreaks } from "#daemon/controllers/versions/breaks.ts";

parentPort?.on("message", (job: ContractJob) =>
  parentPort?.postMessage("file" in job ? readContract(job.content, job.file) : findBreaks(job.previous, job.next)),
);
