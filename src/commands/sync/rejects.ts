// magic sync rejects: of a run, or of a sync's last run.
import { pathPart } from "#client/path-part.ts";
import { clientOf, inEnvironment } from "#commands/client-of.ts";
import { defineCommand } from "#commands/command.ts";
import { wholeOf } from "#commands/option-values.ts";
import { tellMore } from "#commands/resource-verbs.ts";
import { MagicError } from "#contract/errors.ts";
import type { ListPage } from "#contract/wire/list.ts";
import type { Sync } from "#contract/wire/syncs.ts";
import { table } from "#output/table.ts";

interface Reject {
  readonly key: string;
  readonly column: string | null;
  readonly reason: string;
}

export default defineCommand<{ limit?: string; startingAfter?: string }>({
  configure: (command) =>
    command
      .argument("<id>", "a run's id, or a sync's for its last run")
      .option("--limit <n>", "how many at most, 1 to 100 (default 20)")
      .option("--starting-after <id>", "the page behind this one"),
  async run(context) {
    const { options, output, args } = context;
    const client = await clientOf(context);
    let run = pathPart(args[0]);
    if (run.startsWith("sync_")) {
      const { last_run } = await client.request<Sync>("GET", `/v1/syncs/${run}`);
      if (last_run === null)
        throw new MagicError("not_found", `${run} has not run yet.`, {
          extra: { next: `Run it with \`magic sync trigger ${run} --wait${inEnvironment(client)}\`.` },
        });
      run = last_run.id;
    }
    const query = { limit: wholeOf(options.limit, "--limit", 1), starting_after: options.startingAfter };
    const page = await client.request<ListPage<Reject>>("GET", `/v1/runs/${run}/rejects`, { query });
    const columns = [
      { title: "KEY", value: ({ key }: Reject) => key },
      { title: "COLUMN", value: ({ column }: Reject) => column },
      { title: "REASON", value: ({ reason }: Reject) => reason },
    ];
    output.result(page, (paint) => table(page.data, columns, paint, "No record was rejected."));
    tellMore(output, page);
  },
});
