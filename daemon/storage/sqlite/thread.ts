// The main thread's side of the storage thread: sends names and arguments, hands answers back.
import { Worker } from "node:worker_threads";
import { MagicError } from "#contract/errors.ts";
import { unitsClient } from "../client.ts";
import { fromFailure, toFailure } from "../failure.ts";
import type { Storage, StorageOptions } from "../storage.ts";
import { prepareFolder } from "./file.ts";
import type { Call, FromWorker, ToWorker, WorkerOptions } from "./messages.ts";

/** What a check writes and removes again, in bytes, to see whether there is room once more: about what the largest units write. */
const ROOM = 64 * 1024;

export async function openSqlite({ root, maxPages, onFatal }: StorageOptions): Promise<Storage> {
  const workerData: WorkerOptions = { file: prepareFolder(root), maxPages };
  const worker = new Worker(new URL(import.meta.resolve("#entry/storage-worker")), { workerData, name: "storage" });
  const waiting = new Map<number, PromiseWithResolvers<unknown>>();
  const opened = Promise.withResolvers<void>();
  const exited = new Promise<void>((resolve) => worker.once("exit", () => resolve()));
  const outbox: Call[] = [];
  let nextId = 0;
  let dead: Error | undefined;
  /** The disk was full, and nobody has seen otherwise since: whoever only reads cannot tell. */
  let full = false;

  worker.on("message", (message: FromWorker) => {
    if ("ready" in message) opened.resolve();
    else if ("refused" in message) opened.reject(fromFailure(message.refused));
    else
      for (const { id, value, failure } of message) {
        const caller = waiting.get(id);
        waiting.delete(id);
        if (failure === undefined) caller?.resolve(value);
        else {
          full ||= failure.code === "storage_full";
          caller?.reject(fromFailure(failure));
        }
      }
  });
  worker.on("error", (error) => die(error instanceof Error ? error : new Error(String(error))));
  worker.on("exit", () => die(new MagicError("storage_unavailable", "storage is closed")));

  function die(error: Error): void {
    if (dead !== undefined) return;
    dead = error;
    opened.reject(error);
    for (const caller of waiting.values()) caller.reject(error);
    waiting.clear();
    if (!closing) onFatal?.(error);
  }

  // Calls of one tick travel as one message.
  function run(noun: string, unit: string, args: unknown): Promise<unknown> {
    if (dead !== undefined || closing) return Promise.reject(dead ?? new MagicError("draining", "storage is closing"));
    const caller = Promise.withResolvers<unknown>();
    const id = nextId++;
    waiting.set(id, caller);
    if (outbox.push({ id, noun, unit, args }) === 1) queueMicrotask(send);
    return caller.promise;
  }

  function send(): void {
    const calls = outbox.splice(0);
    if (calls.length === 0) return;
    try {
      worker.postMessage(calls satisfies ToWorker);
    } catch {
      // One of them does not clone: find out which, so that only its caller suffers.
      for (const call of calls) {
        try {
          worker.postMessage([call] satisfies ToWorker);
        } catch (error) {
          waiting.get(call.id)?.reject(fromFailure(toFailure(error)));
          waiting.delete(call.id);
        }
      }
    }
  }

  let closing = false;
  await opened.promise.catch(async (error: unknown) => {
    closing = true;
    await exited;
    throw error;
  });
  const units = unitsClient(run);
  return {
    units,
    dialect: "sqlite",
    async check() {
      if (!full) return void (await units.setting.get({ key: "" }));
      await units.setting.put({ key: "storage.room", value: " ".repeat(ROOM) });
      await units.setting.remove({ key: "storage.room" });
      full = false;
    },
    async close() {
      if (!closing) {
        send();
        closing = true;
        worker.postMessage("close" satisfies ToWorker);
      }
      await exited;
    },
  };
}
