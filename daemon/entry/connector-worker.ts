// The process that runs declarative connectors for the command line: one job, told over IPC; it ends with its parent.

import type { ConnectorReply, ConnectorRequest } from "#contract/connector-worker.ts";
import { runConnectorJob } from "../integrations/connectors/declarative/job.ts";

const cancel = new AbortController();
let more: (() => void) | undefined;

process.on("disconnect", () => process.exit(0));
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(signal, () => cancel.abort());

const send = (reply: ConnectorReply): Promise<void> =>
  new Promise((resolve) => (process.connected ? process.send?.(reply, () => resolve()) : resolve()));

process.on("message", (request: ConnectorRequest) => {
  if (request.type === "more") more?.();
  else
    void runConnectorJob(request.job, {
      signal: cancel.signal,
      env: process.env,
      send,
      // The reader's pace is the pace of reading.
      room: () =>
        new Promise<void>((resolve) => {
          more = resolve;
        }),
    }).then(() => process.disconnect?.());
});

void send({ type: "ready" });
