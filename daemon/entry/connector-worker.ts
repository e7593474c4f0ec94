// The process that runs declarative connectors for the command line: one job, told over IPC; it ends with its parent.
import type { ConnectorReply, ConnectorRequest, EvalCase } from "#contract/connector-worker.ts";
import { userStateFolder } from "#shared/paths.ts";
import { endable } from "#shared/token-ipc.ts";
import { runConnectorJob } from "../integrations/connectors/declarative/job.ts";
import { tokenFiles } from "../integrations/connectors/declarative/token-files.ts";

const cancel = new AbortController();
let more: (() => void) | undefined;
let moreCases: ((cases: readonly EvalCase[]) => void) | undefined;
let refreshes = 0;

process.on("disconnect", () => endUnlessRefreshing());
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(signal, () => cancel.abort());

const send = (reply: ConnectorReply): Promise<void> =>
  new Promise((resolve) => (process.connected ? process.send?.(reply, () => resolve()) : resolve()));

process.on("message", (request: ConnectorRequest) => {
  if (request.type === "more") more?.();
  else if (request.type === "cases") moreCases?.(request.cases);
  else
    void runConnectorJob(request.job, {
      signal: cancel.signal,
      env: process.env,
      tokens: endable(tokenFiles(userStateFolder(process.env)), (held) => {
        refreshes = held;
        endUnlessRefreshing();
        void send({ type: "refreshing", now: held > 0 });
      }),
      send,
      // The reader's pace is the pace of reading.
      room: () =>
        new Promise<void>((resolve) => {
          more = resolve;
        }),
      cases: () =>
        new Promise((resolve) => {
          moreCases = resolve;
        }),
    }).then(() => process.disconnect?.());
});

// A command that was killed: what its vendor is about to answer is still kept.
function endUnlessRefreshing(): void {
  if (refreshes === 0 && !process.connected) process.exit(0);
}

void send({ type: "ready" });
