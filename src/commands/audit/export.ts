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
    for await (const entry of eachAuditEntry(client, filtersOf(context.options))) {
      if (context.signal.aborted) return;
      context.output.event(entry, () => JSON.stringify(entry));
    }
  },
});
