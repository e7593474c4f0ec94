// magic logs: what the daemon wrote, and with --follow what it writes. ndjson lines are the log's own.
import { requestPage } from "#client/http.ts";
import type { LogFilter } from "#client/logs.ts";
import { clientOf } from "#commands/client-of.ts";
import { type Context, defineCommand } from "#commands/command.ts";
import { sinceOf, wholeOf } from "#commands/option-values.ts";
import { MagicError } from "#contract/errors.ts";
import { type ExitCode, exitCodes } from "#contract/exit-codes.ts";
import type { LogEntry } from "#contract/wire/logs.ts";
import { showLogLine } from "#output/log-line.ts";

interface Options {
  readonly follow?: boolean;
  readonly since?: string;
  readonly controller?: string;
  readonly request?: string;
  readonly level?: LogFilter["level"];
  readonly limit?: string;
}

export default defineCommand<Options>({
  configure: (command) =>
    command
      .option("-f, --follow", "go on with what comes")
      .option("--since <time>", "from a time (RFC 3339) or span (30s, 10m, 2h, 7d) on")
      .option("--controller <name>", "only this controller's lines")
      .option("--request <id>", "only this request's lines")
      .option("--level <level>", "debug, info, warn or error, and what is above")
      .option("--limit <n>", "at most so many lines (default: the last 1000)"),
  handlesInterrupt: true,
  async run(context) {
    if (context.options.follow) return follow(context);
    await context.output.events(linesOf(context), showLogLine);
    return exitCodes.ok;
  },
});

async function* linesOf(context: Context<Options>): AsyncGenerator<LogEntry> {
  const { options, signal } = context;
  const limit = wholeOf(options.limit, "--limit", 1);
  const query = { ...filterOf(options), limit: limit ?? 1_000 };
  const client = await clientOf(context);
  for (let after: string | null | undefined; ; ) {
    const page = await requestPage<LogPage>(client, "/v1/logs", {
      query: { ...query, after: after ?? undefined },
      signal,
    });
    yield* page.data;
    after = page.next_cursor;
    if (!page.has_more || limit !== undefined) return;
  }
}

interface LogPage {
  readonly data: readonly LogEntry[];
  readonly has_more: boolean;
  readonly next_cursor: string | null;
}

async function follow(context: Context<Options>): Promise<ExitCode> {
  const { options, output, signal } = context;
  const filter = filterOf(options);
  const limit = wholeOf(options.limit, "--limit", 1);
  const { followLogs } = await import("#client/logs.ts");
  // A daemon that was stopped meanwhile stays so: whoever only looks on starts none anew, least of all in the way of a restart.
  let start = true;
  const client = async () => {
    const found = await clientOf(context, { start });
    start = false;
    return found;
  };
  const frames = followLogs({
    client,
    filter,
    signal,
    onLost: (attempt) => attempt === 1 && output.note("The connection to the daemon is lost: waiting for it."),
  });
  let shown = 0;
  for await (const frame of frames) {
    if (frame.type === "line") output.event(frame.line, showLogLine(frame.line));
    if (frame.type === "line" && ++shown === limit) return exitCodes.ok;
    if (frame.type === "missed") output.warn(`${frame.lines} lines were dropped: this reader was too slow.`);
  }
  return exitCodes.interrupted;
}

function filterOf({ controller, request, level, ...options }: Options): LogFilter {
  const since = sinceOf(options.since, "--since");
  if (level !== undefined && !["debug", "info", "warn", "error"].includes(level))
    throw new MagicError("usage", `--level ${level} is none of debug, info, warn, error.`);
  return {
    ...(since !== undefined && { since }),
    ...(controller !== undefined && { controller }),
    ...(request !== undefined && { request }),
    ...(level !== undefined && { level }),
  };
}
