// The storage thread: opens, migrates, then answers calls in groups until it is told to close.
import { type MessagePort, parentPort, receiveMessageOnPort, workerData } from "node:worker_threads";
import { toFailure } from "../failure.ts";
import { migrate } from "../migrate.ts";
import { type Connection, connect } from "./connection.ts";
import { checkFile } from "./file.ts";
import { groupCommit, type RunGroup } from "./group-commit.ts";
import type { Call, FromWorker, ToWorker, WorkerOptions } from "./messages.ts";

const { file, maxPages } = workerData as WorkerOptions;
if (parentPort === null) throw new Error("the storage worker runs as a worker thread only");
const port: MessagePort = parentPort;
const post = (message: FromWorker): void => port.postMessage(message);

try {
  checkFile(file);
  const connection = connect(file, maxPages);
  // Kysely would commit each statement by itself: what a kill or a full disk left of a migration, no later start could go on from.
  connection.raw.exec("BEGIN IMMEDIATE");
  await migrate(connection.db, "sqlite");
  connection.raw.exec("COMMIT");
  serve(connection, groupCommit(connection));
  post({ ready: true });
} catch (error) {
  post({ refused: toFailure(error) });
  port.close();
}

function serve({ raw }: Connection, runGroup: RunGroup): void {
  const waiting: Call[] = [];
  let busy = false;
  let closing = false;

  port.on("message", (message: ToWorker) => {
    take(message);
    if (!busy) void drain();
  });

  function take(message: ToWorker): void {
    if (message === "close") closing = true;
    else waiting.push(...message);
  }

  async function drain(): Promise<void> {
    busy = true;
    while (waiting.length > 0) {
      // What has arrived while the last group was being written joins this one.
      for (let more = receiveMessageOnPort(port); more !== undefined; more = receiveMessageOnPort(port))
        take(more.message);
      const replies = await runGroup(waiting);
      waiting.splice(0, replies.length);
      post(replies);
    }
    busy = false;
    if (!closing) return;
    raw.close();
    port.close();
  }
}
