// Follows a run to its end, and makes of that end a document and an exit code.
import { setTimeout as sleep } from "node:timers/promises";
import type { ApiClient } from "#client/http.ts";
import type { Context } from "#commands/command.ts";
import { type ErrorCode, errors, MagicError } from "#contract/errors.ts";
import { REJECTS_SHOWN } from "#contract/sync.ts";
import type { ListPage } from "#contract/wire/list.ts";
import type { Run } from "#contract/wire/syncs.ts";
import { showRun } from "./show.ts";

/** A run's progress is written down once a second. */
const WAIT_S = 1;
/** Between two questions to a daemon that does not wait: its run is another daemon's. */
const PAUSE_MS = 250;

const ended = (run: Run): boolean => run.status !== "queued" && run.status !== "running";

/** The run when it has ended. `onChange` sees every state of it that differs from the last one. */
export async function followRun(
  client: ApiClient,
  begun: Run,
  { output, signal }: Pick<Context<unknown>, "output" | "signal">,
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
    try {
      run = await client.request<Run>("GET", `/v1/runs/${run.id}`, { signal, headers: { prefer: `wait=${WAIT_S}` } });
      if (!ended(run) && performance.now() - asked < PAUSE_MS) await sleep(PAUSE_MS, undefined, { signal });
    } catch (error) {
      if (!signal.aborted) throw error;
      throw new MagicError("interrupted", `The run ${run.id} goes on: \`magic sync watch ${run.sync}\` follows it.`);
    }
  }
  if (run.status === "completed") progress.done();
  else progress.fail();
  return run;
}

/** Prints the run with its first rejects; throws for a run that did not complete, with the exit code of its cause. */
export async function reportRun(
  client: ApiClient,
  run: Run,
  { output }: Pick<Context<unknown>, "output">,
): Promise<void> {
  const rejects =
    run.records_rejected === 0
      ? []
      : (
          await client.request<ListPage<Rejected>>("GET", `/v1/runs/${run.id}/rejects`, {
            query: { limit: REJECTS_SHOWN },
          })
        ).data;
  const document = { ...run, rejects: rejects.map(({ key, column, reason }) => ({ key, column, reason })) };
  if (output.format !== "ndjson") output.result(document, showRun(run));
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
