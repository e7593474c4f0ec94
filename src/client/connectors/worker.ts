// Runs one job of a declarative connector in a process of its own.
import { fork } from "node:child_process";
import { fileURLToPath } from "node:url";
import type { ConnectorJob, ConnectorReply, ConnectorRequest, EvalCase } from "#contract/connector-worker.ts";
import { MagicError } from "#contract/errors.ts";
import { REFRESH_GRACE_MS } from "#shared/token-ipc.ts";

/** Calls `onReply` for each answer, in order, and resolves at the end. Throws what the job failed with. */
export function runConnectorWorker(
  job: ConnectorJob,
  {
    signal,
    onReply,
    moreCases,
  }: {
    readonly signal: AbortSignal;
    onReply(reply: ConnectorReply): void;
    /** Of `eval`: what comes after those that were answered. */
    moreCases?(): Promise<readonly EvalCase[]>;
  },
): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal.aborted) return reject(new MagicError("interrupted"));
    const worker = fork(fileURLToPath(import.meta.resolve("#entry/connector-worker")), [], {
      execArgv: [],
      stdio: ["ignore", "ignore", "inherit", "ipc"],
      serialization: "advanced",
    });
    const send = (request: ConnectorRequest): void => {
      if (worker.connected) worker.send(request, () => {});
    };
    let settled = false;
    const settle = (error?: unknown): void => {
      if (settled) return;
      settled = true;
      signal.removeEventListener("abort", abort);
      worker.kill("SIGKILL");
      if (error === undefined) resolve();
      else reject(error);
    };
    // To end it while a vendor replaces its tokens would lose them.
    let refreshing = false;
    const abort = (): void => {
      const interrupted = (): void => settle(new MagicError("interrupted"));
      if (refreshing) setTimeout(interrupted, REFRESH_GRACE_MS).unref();
      else interrupted();
    };
    signal.addEventListener("abort", abort, { once: true });
    worker.on("message", (reply: ConnectorReply) => {
      if (reply.type === "ready") send({ type: "job", job });
      else if (reply.type === "failed") settle(failureOf(reply));
      else if (reply.type === "end") settle();
      else if (reply.type === "refreshing") {
        refreshing = reply.now;
        if (signal.aborted) abort();
      } else {
        try {
          onReply(reply);
        } catch (error) {
          settle(error);
          return;
        }
        if (reply.type === "records") send({ type: "more" });
        else if (reply.type === "values" && moreCases)
          void moreCases().then((cases) => send({ type: "cases", cases }), settle);
      }
    });
    worker.once("error", settle);
    worker.once("exit", (code, how) =>
      settle(new MagicError("internal", `the connector's process ended ${how ?? `with code ${code}`}`)),
    );
  });
}

// What is not there is the vendor's or the manifest's: no resource of a daemon, which might be in the other environment.
function failureOf({ code, detail, problems }: Extract<ConnectorReply, { type: "failed" }>): MagicError {
  const next = "Correct the name or the path that the detail tells.";
  return new MagicError(code, detail, { problems, ...(code === "not_found" && { extra: { next } }) });
}
