// magic usage: tokens and cost, summed by one key; a chart for people, JSON or CSV for machines.
import { requestPage } from "#client/http.ts";
import { clientOf } from "#commands/client-of.ts";
import { defineCommand } from "#commands/command.ts";
import { betweenOf } from "#commands/option-values.ts";
import { MagicError } from "#contract/errors.ts";
import { MOST_ROWS, type UsageReport, type UsageRow, usageKeys } from "#contract/wire/usage.ts";
import { printChart } from "#output/chart.ts";
import type { Paint } from "#output/paint.ts";

interface Options {
  readonly by?: string;
  readonly since?: string;
  readonly until?: string;
  readonly csv?: boolean;
}

export default defineCommand<Options>({
  configure: (command) =>
    command
      .option("--by <key>", `${usageKeys.join(", ")} (default: model)`)
      .option("--since <time>", "from a day or time (RFC 3339) on")
      .option("--until <time>", "before a day or time")
      .option("--csv", "comma-separated values"),
  async run(context) {
    const { options, output, globals, signal } = context;
    const { by = "model", csv } = options;
    const { since, until } = betweenOf(options);
    if (!(usageKeys as readonly string[]).includes(by))
      throw new MagicError("usage", `--by ${by} is none of ${usageKeys.join(", ")}.`);
    if (csv && globals.format !== "text")
      throw new MagicError("usage", `--csv and --output ${globals.format} are two forms: choose one.`);
    const client = await clientOf(context);
    const query = { by, since, until, environment: globals.live ? "live" : undefined };
    if (csv) {
      const answer = await client.send("GET", "/v1/usage", {
        query: { ...query, format: "csv" },
        headers: { accept: "text/csv" },
        signal,
      });
      const text = await answer.text();
      if (answer.headers.has("link")) output.note(more(MOST_ROWS, by));
      return output.result(text, () => text.trimEnd());
    }
    const report = await requestPage<UsageReport>(client, "/v1/usage", { query, signal });
    if (report.has_more) output.note(more(report.data.length, by));
    output.result(report, (paint) => show(report, paint, output.columns));
  },
});

function more(shown: number, by: string): string {
  return `There is more than these ${shown} by ${by}: narrow it with --since and --until, or page through GET /v1/usage.`;
}

function show({ by, data }: UsageReport, paint: Paint, columns: number): string {
  if (data.length === 0) return paint.dim("No call has been made yet.");
  const costs = data.some(({ cost_usd }) => cost_usd > 0);
  const sum = (of: (row: UsageRow) => number) => data.reduce((total, row) => total + of(row), 0);
  const tokens = (row: UsageRow) => row.prompt_tokens + row.completion_tokens;
  const chart = printChart(
    data.map((row) => ({
      label: row.key ?? "(none)",
      size: costs ? row.cost_usd : tokens(row),
      text: `${dollars(row.cost_usd)}  ${calls(row.requests)}, ${row.prompt_tokens} + ${row.completion_tokens} tokens`,
    })),
    paint,
    columns,
  );
  const total = `${dollars(sum(({ cost_usd }) => cost_usd))} in ${calls(sum(({ requests }) => requests))}, ${sum(tokens)} tokens`;
  const unpriced = sum((row) => row.unpriced_requests);
  const note =
    unpriced > 0 ? `\n${paint.yellow(`${calls(unpriced)} went to models without a price and are in no sum.`)}` : "";
  return `${paint.dim(`by ${by}, bars are ${costs ? "cost" : "tokens"}`)}\n${chart}\n${paint.bold(total)}${note}`;
}

function calls(count: number): string {
  return count === 1 ? "1 call" : `${count} calls`;
}

function dollars(value: number): string {
  return value === 0 || value >= 1 ? `$${value.toFixed(2)}` : `$${Number(value.toPrecision(4))}`;
}
