// The process in which runs happen: it is told over IPC what to run, reports progress, and dies with its parent.
import type { SyncWorkerReply, SyncWorkerRequest } from "#contract/sync.ts";
import { openDestination, openSource } from "../integrations/connectors/open.ts";
import { runSync } from "../integrations/engine/run.ts";

const parent = process.ppid;
const cancel = new AbortController();
let running = false;

// The channel closes when the parent ends, however it ends: every open transaction is undone by its server.
process.on("disconnect", () => process.exit(0));
// A parent that was killed while this process was starting leaves no channel to close.
setInterval(() => {
  if (process.ppid !== parent) process.exit(0);
}, 1000).unref();
// Ctrl-C reaches the whole terminal: the parent decides.
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(signal, () => cancel.abort());

process.on("message", (message: SyncWorkerRequest) => {
  if (message.type === "cancel") cancel.abort();
  else if (message.type === "run" && !running) {
    running = true;
    void run(message.spec);
  }
});

async function run(spec: Extract<SyncWorkerRequest, { type: "run" }>["spec"]): Promise<void> {
  const outcome = await runSync(spec, {
    openSource: () => openSource(spec.source),
    openDestination: () => openDestination(spec.destination),
    onProgress: (progress) => send({ type: "progress", progress }),
    signal: cancel.signal,
  });
  process.send?.({ type: "done", outcome } satisfies SyncWorkerReply, () => process.exit(0));
}

function send(reply: SyncWorkerReply): void {
  if (process.connected) process.send?.(reply, () => {});
}

send({ type: "ready" });
