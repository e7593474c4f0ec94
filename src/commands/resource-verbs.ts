// list, get and delete: the same for connections, syncs, webhooks and connectors.
import type { Command } from "commander";
import { requestPage } from "#client/http.ts";
import { pathPart } from "#client/path-part.ts";
import type { ListPage } from "#contract/wire/list.ts";
import type { Output } from "#output/output.ts";
import { type Column, table } from "#output/table.ts";
import { clientOf } from "./client-of.ts";
import { type CommandModule, defineCommand } from "./command.ts";
import { wholeOf } from "./option-values.ts";

interface ListOptions {
  readonly limit?: string;
  readonly startingAfter?: string;
  readonly endingBefore?: string;
  readonly [filter: string]: string | undefined;
}

export interface ListVerb<Row> {
  /** For example "syncs". */
  readonly nouns: string;
  /** May take the positional argument: `/v1/syncs/${id}/runs`. */
  readonly path: (id: string) => string;
  readonly argument?: string;
  /** What comes where no --limit is given. */
  readonly preset?: string;
  readonly columns: readonly Column<Row>[];
  /** Query parameter to what it keeps. */
  readonly filters?: Readonly<Record<string, string>>;
}

export function listVerb<Row>({
  nouns,
  path,
  argument,
  preset = "20",
  columns,
  filters = {},
}: ListVerb<Row>): CommandModule<ListOptions> {
  return defineCommand<ListOptions>({
    configure(command: Command) {
      if (argument !== undefined) command.argument("<id>", argument);
      command
        .option("--limit <n>", `how many at most, 1 to 100 (default ${preset})`)
        .option("--starting-after <id>", "the page behind this one")
        .option("--ending-before <id>", "the page ahead of this one");
      for (const [name, kept] of Object.entries(filters)) command.option(`--${name} <value>`, `only ${kept}`);
    },
    async run(context) {
      const { options, output } = context;
      const query = {
        limit: wholeOf(options.limit, "--limit", 1),
        starting_after: options.startingAfter,
        ending_before: options.endingBefore,
        ...Object.fromEntries(Object.keys(filters).map((name) => [name, options[name]])),
      };
      const client = await clientOf(context);
      const page = await requestPage<ListPage<Row>>(client, path(pathPart(context.args[0])), { query });
      // Who made one with --live, and looks for it without, is told where it is.
      const elsewhere =
        argument === undefined && client.environment === "sandbox" ? " here: --live lists the live ones" : "";
      output.result(page, (paint) => table(page.data, columns, paint, `No ${nouns} yet${elsewhere}.`));
      tellMore(output, page);
    },
  });
}

/** How to go on where a page is not all. */
export function tellMore(output: Output, { has_more, next_cursor }: Omit<ListPage<unknown>, "object" | "data">): void {
  if (has_more) output.note(`There are more: --starting-after ${next_cursor}`);
}

export function getVerb(
  noun: string,
  path: (id: string) => string,
  show: (document: never) => (paint: never) => string,
): CommandModule<Record<string, never>> {
  return defineCommand({
    configure: (command) => command.argument("<id>", `the ${noun}'s id`),
    async run(context) {
      const client = await clientOf(context);
      const document = await client.request("GET", path(pathPart(context.args[0])));
      context.output.result(document, show(document as never) as never);
    },
  });
}

export function deleteVerb(noun: string, path: (id: string) => string): CommandModule<Record<string, never>> {
  return defineCommand({
    configure: (command) => command.argument("<id>", `the ${noun}'s id`),
    async run(context) {
      const id = String(context.args[0]);
      const client = await clientOf(context);
      const document = await client.request("DELETE", path(pathPart(id)));
      context.output.result(document ?? { id, deleted: true }, (paint) => `${paint.green("✔")} Deleted ${id}.`);
    },
  });
}
