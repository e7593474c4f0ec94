// magic sync watch: follows the run under way to its end; where there is none, shows the last one.
import { pathPart } from "#client/path-part.ts";
import { clientOf } from "#commands/client-of.ts";
import { defineCommand } from "#commands/command.ts";
import type { Sync } from "#contract/wire/syncs.ts";
import { followRun } from "./follow.ts";
import { showRun, showSync } from "./show.ts";

export default defineCommand({
  handlesInterrupt: true,
  configure: (command) => command.argument("<id>", "the sync's id"),
  async run(context) {
    const { output, args, signal } = context;
    const client = await clientOf(context);
    const sync = await client.request<Sync>("GET", `/v1/syncs/${pathPart(args[0])}`, { signal });
    if (sync.last_run === null) {
      output.note("It has not run yet.");
      output.result(sync, showSync(sync));
      return;
    }
    const streamed = output.format === "ndjson" ? (run: object) => output.event(run, showRun(run as never)) : undefined;
    await followRun(client, sync.last_run, context, streamed);
  },
});
