// magic audit list: who did what, newest first.
import { listAudit } from "#client/audit.ts";
import { clientOf } from "#commands/client-of.ts";
import { defineCommand } from "#commands/command.ts";
import { wholeOf } from "#commands/option-values.ts";
import { table } from "#output/table.ts";
import { type FilterOptions, filterOptions, filtersOf } from "./filters.ts";

export default defineCommand<FilterOptions & { limit?: string }>({
  configure: (command) => {
    command.option("--limit <n>", "how many at most (default 20)");
    for (const option of filterOptions()) command.addOption(option);
  },
  async run(context) {
    const { options, output } = context;
    const limit = wholeOf(options.limit, "--limit", 1) ?? 20;
    const page = await listAudit(await clientOf(context), filtersOf(options), limit);
    output.result(page, (paint) =>
      table(
        page.data,
        [
          { title: "TIME", value: ({ timestamp }) => timestamp },
          { title: "IDENTITY", value: ({ identity }) => identity.id ?? identity.type },
          { title: "ACTION", value: ({ action }) => action },
          { title: "RESOURCE", value: ({ resource }) => resource },
          { title: "STATUS", value: ({ status }) => status, align: "right" },
          {
            title: "OUTCOME",
            value: ({ outcome }) => outcome,
            paint: (text, { outcome }) => (outcome === "success" ? text : paint.yellow(text)),
          },
          { title: "REQUEST", value: ({ request_id }) => request_id },
        ],
        paint,
      ),
    );
  },
});
