// magic audit export: every entry with its place in the chain and its MAC, one JSON document a line, newest first.
import { eachAuditEntry } from "#client/audit.ts";
import { clientOf } from "#commands/client-of.ts";
import { defineCommand } from "#commands/command.ts";
import { type FilterOptions, filterOptions, filtersOf } from "./filters.ts";

export default defineCommand<FilterOptions>({
  configure: (command) => {
    for (const option of filterOptions()) command.addOption(option);
  },
  async run(context) {
    const client = await clientOf(context);
    const entries = eachAuditEntry(client, filtersOf(context.options));
    await context.output.events(entries, (entry) => () => JSON.stringify(entry));
  },
});
