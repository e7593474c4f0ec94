// magic sync trigger: with --wait it ends when the run does, and fails when the run failed.
import { pathPart } from "#client/path-part.ts";
import { clientOf } from "#commands/client-of.ts";
import { defineCommand } from "#commands/command.ts";
import { listValue } from "#commands/option-values.ts";
import type { Run } from "#contract/wire/syncs.ts";
import { followRun } from "./follow.ts";
import { showRun } from "./show.ts";

export default defineCommand<{ wait?: boolean; fullRefresh?: boolean; objects?: string }>({
  handlesInterrupt: true,
  configure: (command) =>
    command
      .argument("<id>", "the sync's id")
      .option("--wait", "until the run has ended; its failure is this command's")
      .option("--full-refresh", "forget the state and read everything")
      .option("--objects <names>", "a,b"),
  async run(context) {
    const { options, output, args, signal } = context;
    const client = await clientOf(context);
    const objects = listValue(options.objects, "--objects");
    const body = { ...(options.fullRefresh && { full_refresh: true }), ...(objects && { objects }) };
    const run = await client.request<Run>("POST", `/v1/syncs/${pathPart(args[0])}/trigger`, { body, signal });
    if (!options.wait) output.result(run, showRun(run));
    else await followRun(client, run, context);
  },
});
