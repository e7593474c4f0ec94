// magic sync pause, magic sync resume
import { pathPart } from "#client/path-part.ts";
import { clientOf } from "#commands/client-of.ts";
import { type CommandModule, defineCommand } from "#commands/command.ts";
import type { Sync } from "#contract/wire/syncs.ts";
import { showSync } from "./show.ts";

export function setStatus(status: "active" | "paused"): CommandModule<Record<string, never>> {
  return defineCommand({
    configure: (command) => command.argument("<id>", "the sync's id"),
    async run(context) {
      const client = await clientOf(context);
      const sync = await client.request<Sync>("PATCH", `/v1/syncs/${pathPart(context.args[0])}`, { body: { status } });
      context.output.result(sync, showSync(sync));
    },
  });
}
