// The process in which runs happen: it is told over IPC what to run, reports progress, and dies with its parent.
import { setFlagsFromString } from "node:v8";
import { isMagicError } from "#contract/errors.ts";
import type { SyncWorkerQuestion, SyncWorkerReply, SyncWorkerRequest } from "#contract/sync.ts";
import { redactText } from "#shared/redact.ts";
import { askForState } from "#shared/state-ipc.ts";
import { askForTokens } from "#shared/token-ipc.ts";
import { openDestination, openEither, openSource, preload } from "../integrations/connectors/open.ts";
import { runSync } from "../integrations/engine/run.ts";
import { secretsOf } from "../integrations/engine/secrets.ts";

// Pages and rows pass through as buffers. By default V8 marks the whole heap after so many megabytes of these, whatever has become of
// them, on threads that take the processor from the work; counted with the heap they are collected when there is something to gain.
setFlagsFromString("--external-memory-accounted-in-global-limit");

const parent = process.ppid;
const cancel = new AbortController();
const { tokens, handle: tokenAnswered } = askForTokens((request) => send(request));
const { states, handle: stateAnswered } = askForState((request) => send(request));
let running = false;

// The channel closes when the parent ends, however it ends: every open transaction is undone by its server.
process.on("disconnect", leave);
// A parent that was killed while this process was starting leaves no channel to close.
setInterval(() => {
  if (process.ppid !== parent) leave();
}, 1000).unref();
// Ctrl-C reaches the whole terminal: the parent decides.
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(signal, () => cancel.abort());

process.on("message", (message: SyncWorkerRequest) => {
  if (message.type === "cancel") cancel.abort();
  else if (message.type === "token") tokenAnswered(message);
  else if (message.type === "state") stateAnswered(message);
  else if (message.type === "warm") void preload(message.kinds);
  else if (message.type === "check" || message.type === "discover") void answer(message);
  else if (message.type === "run" && !running) {
    running = true;
    void run(message.spec);
  }
});

// An exit waits for every call to the file system, and a folder whose server has gone answers none.
function leave(): void {
  process.kill(process.pid, "SIGKILL");
}

async function run(spec: Extract<SyncWorkerRequest, { type: "run" }>["spec"]): Promise<void> {
  const outcome = await runSync(spec, {
    openSource: () => openSource(spec.source, allowed(spec.allow_private), tokens),
    openDestination: () => openDestination(spec.destination, spec.state_kept ? states : undefined),
    onProgress: (progress) => send({ type: "progress", progress }),
    signal: cancel.signal,
  });
  await tokens.idle(true);
  process.send?.({ type: "done", outcome } satisfies SyncWorkerReply, leave);
}

const allowed = (list: readonly string[] | "any") => (list === "any" ? [] : list);

async function answer(question: SyncWorkerQuestion): Promise<void> {
  let reply: SyncWorkerReply;
  let side: { check(): Promise<void>; discover(): Promise<unknown>; close(): Promise<void> } | undefined;
  try {
    side = await openEither(question.end, allowed(question.allow_private), tokens);
    const result = question.type === "check" ? await side.check() : await side.discover();
    reply = { type: "answer", id: question.id, result: result ?? null };
  } catch (thrown) {
    const code = isMagicError(thrown) ? thrown.code : "internal";
    const message = redactText((thrown as Error).message, secretsOf(question.end));
    reply = { type: "answer", id: question.id, error: { code, message } };
  }
  await tokens.idle(true);
  await side?.close().catch(() => {});
  send(reply);
}

function send(reply: SyncWorkerReply): void {
  if (process.connected) process.send?.(reply, () => {});
}

send({ type: "ready" });
