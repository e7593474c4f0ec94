// `magic sync run`: one sync between two URLs or files, without a daemon.
import { realpath } from "node:fs/promises";
import { resolve } from "node:path";
import type { Command } from "commander";
import { runDocument } from "#client/syncs/document.ts";
import { syncIdOf } from "#client/syncs/state-file.ts";
import { defineCommand } from "#commands/command.ts";
import { filled, listValue } from "#commands/option-values.ts";
import { knownCode, MagicError } from "#contract/errors.ts";
import {
  type BadRecordMode,
  badRecordModes,
  DEFAULT_STALL_TIMEOUT_S,
  type DeleteMode,
  deleteModes,
  type SyncMode,
  type SyncOutcome,
  type SyncSpec,
  syncModes,
} from "#contract/sync.ts";
import { newId } from "#shared/ids.ts";
import { currentFolder } from "#shared/paths.ts";
import { aheadOf, shareOf } from "#shared/sync-progress.ts";
import { runInWorker } from "#shared/sync-worker.ts";

interface Options {
  readonly from?: string;
  readonly object?: string;
  readonly to?: string;
  readonly table?: string;
  readonly mode?: string;
  readonly primaryKey?: string;
  readonly cursorField?: string;
  readonly deletes?: string;
  readonly onBadRecord?: string;
  readonly columns?: string;
  readonly stallTimeout?: string;
  readonly state?: string;
  readonly fullRefresh?: boolean;
}

export default defineCommand<Options>({
  handlesInterrupt: true,
  configure: (command: Command) =>
    command
      .option("--from <url|file>", "postgres://, mysql://, or a .sqlite, .parquet, .csv or .jsonl file")
      .option("--object <name>", "what to read: schema.table; a file needs none")
      .option("--to <url|file>", "where to write; http(s):// too")
      .option("--table <name>", "the table to write: schema.table; by default the object's name")
      .option("--mode <mode>", syncModes.join(" | "), "full_refresh")
      .option("--primary-key <columns>", "a,b; by default the source's own")
      .option("--cursor-field <column>", "the column that grows with every change (incremental)")
      .option("--deletes <what>", deleteModes.join(" | "))
      .option("--on-bad-record <what>", badRecordModes.join(" | "), "quarantine")
      .option("--columns <columns>", "a,b; by default all")
      .option(
        "--stall-timeout <seconds>",
        "fail after so many seconds without progress",
        String(DEFAULT_STALL_TIMEOUT_S),
      )
      .option("--state <file>", "names the sync: the same file resumes it")
      .option("--full-refresh", "forget the state and read everything"),
  run: async ({ options, need, output, signal, env }) => {
    const wanted = await need({
      from: { value: options.from, flag: "--from <url|file>" },
      to: { value: options.to, flag: "--to <url|file>" },
      object: { value: options.object ?? (isFile(options.from) ? "records" : undefined), flag: "--object <name>" },
    });
    const spec = await specOf(options, wanted, env);
    const startedAt = Date.now();
    const started = performance.now();
    const progress = output.progress(`Syncing ${wanted.object}`);
    const outcome = await runInWorker(spec, {
      signal,
      onProgress: (now) => {
        const seconds = (performance.now() - started) / 1000;
        const count = (value: number) => Math.round(value).toLocaleString("en-US");
        const rates = `${count(now.records_read / seconds)}/s, ${megabytes(now.bytes / seconds)} MB/s`;
        const parts = [
          `${now.phase}: ${count(now.records_read)} records, ${rates}`,
          aheadOf(now, seconds),
          now.waiting_for,
        ];
        progress.text(parts.filter(Boolean).join("; "), shareOf(now));
      },
    });
    const seconds = (performance.now() - started) / 1000;
    const document = runDocument(spec, outcome, startedAt, seconds);
    if (outcome.status === "completed") progress.done();
    else progress.fail();
    output.result(document, () => summary(outcome, seconds));
    for (const { message } of outcome.warnings) output.warn(message);
    if (outcome.error)
      throw new MagicError(knownCode(outcome.error.code), outcome.error.message, { extra: { run: spec.run_id } });
    return undefined;
  },
});

async function specOf(
  options: Options,
  ends: { from: string; to: string; object: string },
  env: NodeJS.ProcessEnv,
): Promise<SyncSpec> {
  // The key that signs what an HTTP endpoint gets; on the command line it would be seen by everybody.
  const secret = env["MAGIC_SIGNING_SECRET"];
  const stall = Number(options.stallTimeout ?? DEFAULT_STALL_TIMEOUT_S);
  if (!(stall > 0 && Number.isFinite(stall)))
    throw new MagicError("usage", `--stall-timeout takes seconds, not ${JSON.stringify(options.stallTimeout)}.`);
  // The run's process could only die of a folder that is gone.
  if ([ends.from, ends.to, options.state ?? "/"].some((path) => !/^(\w+:)?\//.test(path))) currentFolder();
  const named = options.state === undefined ? null : resolve(options.state);
  const syncId = named && (await syncIdOf(named));
  return {
    run_id: newId("run"),
    sync_id: syncId,
    source: { url: ends.from, object: ends.object },
    destination: {
      url: ends.to,
      object: options.table ?? ends.object,
      ...(secret ? { credentials: { signing_secret: secret } } : {}),
    },
    mode: oneOf<SyncMode>("--mode", options.mode ?? "full_refresh", syncModes),
    primary_key: listValue(options.primaryKey, "--primary-key") ?? null,
    cursor_field: filled(options.cursorField, "--cursor-field") ?? null,
    deletes: options.deletes === undefined ? null : oneOf<DeleteMode>("--deletes", options.deletes, deleteModes),
    on_bad_record: oneOf<BadRecordMode>("--on-bad-record", options.onBadRecord ?? "quarantine", badRecordModes),
    columns: listValue(options.columns, "--columns") ?? null,
    mapping: null,
    stall_timeout_s: stall,
    // It is replaced as a whole: a link to it stays one.
    state_file: named && (await realpath(named)),
    allow_private: "any",
    ...(options.fullRefresh ? { reset: true } : {}),
  };
}

function oneOf<T extends string>(flag: string, value: string, allowed: readonly T[]): T {
  if ((allowed as readonly string[]).includes(value)) return value as T;
  throw new MagicError("usage", `${flag} takes ${allowed.join(", ")}, not ${JSON.stringify(value)}.`);
}

function isFile(url: string | undefined): boolean {
  return url !== undefined && /\.(csv|tsv|jsonl|ndjson|parquet)$/i.test(url);
}

function summary(outcome: SyncOutcome, seconds: number): string {
  const count = (value: number) => value.toLocaleString("en-US");
  const lines = [
    `${outcome.status}: ${count(outcome.records_synced)} records in ${seconds.toFixed(1)} s (${count(Math.round(outcome.records_synced / Math.max(seconds, 0.001)))}/s, ${megabytes(outcome.bytes)} MB)`,
  ];
  if (outcome.records_rejected > 0) lines.push(`${count(outcome.records_rejected)} records were rejected:`);
  for (const { key, column, reason } of outcome.rejects) lines.push(`  ${key}${column ? ` ${column}` : ""}: ${reason}`);
  return lines.join("\n");
}

function megabytes(bytes: number): string {
  return (bytes / 1e6).toFixed(1);
}
