// Follows a run to its end, and makes of that end a document and an exit code.
import type { ApiClient } from "#client/http.ts";
import { clientOf, inEnvironment, type Needed } from "#commands/client-of.ts";
import type { Context } from "#commands/command.ts";
import { type ErrorCode, errors, isMagicError, MagicError } from "#contract/errors.ts";
import { REJECTS_SHOWN } from "#contract/sync.ts";
import type { ListPage } from "#contract/wire/list.ts";
import type { Run } from "#contract/wire/syncs.ts";
import { pause } from "#shared/abort.ts";
import { showRun } from "./show.ts";

/** A run's progress is written down once a second. */
const WAIT_S = 1;
/** Between two questions to a daemon that does not wait: its run is another daemon's. */
const PAUSE_MS = 250;
/** A daemon that is restarted, or whose database is, is waited for so long: it goes on with the run. */
const AWAY_MS = 20_000;

type Following = Needed & Pick<Context<unknown>, "signal">;

const ended = (run: Run): boolean => run.status !== "queued" && run.status !== "running";

/**
 * Follows the run and prints it with its first rejects. `streamed` gets every state of it that differs from the last one instead.
 *
 * @throws MagicError For a run that did not complete, with the exit code of its cause.
 */
export async function followRun(
  client: ApiClient,
  begun: Run,
  context: Following,
  streamed?: (run: Run) => void,
): Promise<void> {
  const ask = persistently(client, begun, context);
  const run = await toItsEnd(begun, ask, context, streamed);
  const path = `/v1/runs/${run.id}/rejects`;
  const rejects =
    run.records_rejected === 0
      ? []
      : (await ask((now) => now.request<ListPage<Rejected>>("GET", path, { query: { limit: REJECTS_SHOWN } }))).data;
  const document = { ...run, rejects: rejects.map(({ key, column, reason }) => ({ key, column, reason })) };
  if (!streamed) context.output.result(document, showRun(run));
  report(run, context);
}

async function toItsEnd(
  begun: Run,
  ask: ReturnType<typeof persistently>,
  { output, signal }: Following,
  onChange: (run: Run) => void = () => {},
): Promise<Run> {
  const progress = output.progress(`Run ${begun.id}`);
  let run = begun;
  let seen = "";
  for (;;) {
    const state = JSON.stringify(run);
    if (state !== seen) onChange(run);
    seen = state;
    if (ended(run)) break;
    const { records_read, throughput, waiting_for } = run;
    const count = (value: number) => value.toLocaleString("en-US");
    // Read, not synced: rows of a run that is not committed yet are in nobody's table.
    const rate = `${count(throughput.records_per_s)}/s, ${(throughput.bytes_per_s / 1e6).toFixed(1)} MB/s`;
    progress.text(
      `${run.status}: ${count(records_read)} records, ${rate}${waiting_for ? `; waiting for ${waiting_for}` : ""}`,
    );
    const asked = performance.now();
    const headers = { prefer: `wait=${WAIT_S}` };
    run = await ask((now) => now.request<Run>("GET", `/v1/runs/${begun.id}`, { signal, headers }));
    if (!ended(run) && performance.now() - asked < PAUSE_MS) await pause(PAUSE_MS, signal);
  }
  if (run.status === "completed") progress.done();
  else progress.fail();
  return run;
}

/** Asks whichever daemon runs, again while none answers. */
function persistently(first: ApiClient, { id, sync }: Run, context: Following) {
  const { signal } = context;
  const follows = `\`magic sync watch ${sync}${inEnvironment(first)}\` follows it`;
  let client = first;
  return async <T>(ask: (client: ApiClient) => Promise<T>): Promise<T> => {
    const until = performance.now() + AWAY_MS;
    for (;;) {
      try {
        return await ask(client);
      } catch (error) {
        if (signal.aborted) throw new MagicError("interrupted", `The run ${id} goes on: ${follows}.`);
        if (!isMagicError(error) || !errors[error.code].retryable || error.extra["reason"] === "wedged") throw error;
        if (performance.now() > until) {
          const start = error.code === "daemon_unavailable" ? "Run `magic daemon start`: the" : "The";
          const next = `${start} run ${id} goes on, and ${follows}.`;
          throw new MagicError(error.code, error.message, { cause: error, extra: { ...error.extra, run: id, next } });
        }
        // A rate limit is not asked again before its time.
        await pause(Math.max(PAUSE_MS, Math.min(60, error.retryAfterS ?? 0) * 1000), signal);
        client = await clientOf(context, { start: false }).catch(() => client);
      }
    }
  };
}

function report(run: Run, { output }: Following): void {
  for (const { message } of run.warnings ?? []) output.warn(message);
  if (run.status === "completed") return;
  const code = run.error?.code ?? "";
  const known =
    code in errors && errors[code as ErrorCode].exit !== "internal" ? (code as ErrorCode) : "upstream_error";
  throw new MagicError(known, run.error?.message ?? `The run was ${run.status}.`, { extra: { run: run.id } });
}

interface Rejected {
  readonly key: string;
  readonly column: string | null;
  readonly reason: string;
}
