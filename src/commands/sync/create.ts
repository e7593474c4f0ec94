// magic sync create
import { clientOf } from "#commands/client-of.ts";
import { type CommandModule, defineCommand } from "#commands/command.ts";
import { given, listValue, numberOf, objectValue } from "#commands/option-values.ts";
import { MagicError } from "#contract/errors.ts";
import { badRecordModes, deleteModes, syncModes } from "#contract/sync.ts";
import type { Sync } from "#contract/wire/syncs.ts";
import { keptNumbers } from "#shared/json-text.ts";
import { showSync } from "./show.ts";

interface Options {
  readonly source?: string;
  readonly destination?: string;
  readonly [option: string]: string | undefined;
}

const command: CommandModule<Options> = defineCommand<Options>({
  configure: (command) =>
    command
      .option("--source <connection:object>", "where from")
      .option("--destination <connection:table>", "where to")
      .option("--name <name>", "for people")
      .option("--schedule <when>", "manual, realtime, or a cron expression (default manual)")
      .option("--timezone <zone>", "of the cron expression, e.g. Europe/Berlin (default UTC)")
      .option("--mode <mode>", syncModes.join(" | "))
      .option("--primary-key <columns>", "a,b; by default the source's own")
      .option("--cursor-field <column>", "the column that grows with every change")
      .option("--columns <columns>", "a,b; by default all")
      .option("--mapping <json>", "source column to destination column")
      .option("--deletes <what>", deleteModes.join(" | "))
      .option("--on-bad-record <what>", badRecordModes.join(" | "))
      .option("--stall-timeout <seconds>", "fail after so many seconds without progress")
      .option("--metadata <json>", "your own values"),
  async run(context) {
    const { options, output } = context;
    const { chooser } = await import("./choose.ts");
    const ask = chooser(() => clientOf(context));
    const { source, destination } = await context.need({
      source: { value: options.source, flag: "--source <connection:object>", ask: ask.source },
      destination: { value: options.destination, flag: "--destination <connection:table>", ask: ask.destination },
    });
    const asked = options["mode"] === undefined ? await ask.reading() : {};
    const from = end(source, "--source");
    const to = end(destination, "--destination");
    const body = given({
      source: { connection: from.connection, object: from.name },
      destination: { connection: to.connection, table: to.name },
      name: options["name"],
      schedule: options["schedule"],
      timezone: options["timezone"],
      mode: options["mode"] ?? asked.mode,
      primary_key: listValue(options["primaryKey"], "--primary-key"),
      cursor_field: options["cursorField"] ?? asked.cursor_field,
      columns: listValue(options["columns"], "--columns"),
      mapping: await objectValue(options["mapping"], "--mapping"),
      deletes: options["deletes"],
      on_bad_record: options["onBadRecord"],
      stall_timeout_s: numberOf(options["stallTimeout"], "--stall-timeout", 0),
      metadata: await objectValue(options["metadata"], "--metadata", keptNumbers),
    });
    const sync = await (await clientOf(context)).request<Sync>("POST", "/v1/syncs", { body });
    output.result(sync, showSync(sync));
  },
});
export default command;

// Ids hold no colon; what follows the first one is the object's name as it is.
function end(text: string, flag: string): { connection: string; name: string } {
  const at = text.indexOf(":");
  if (at < 1 || at === text.length - 1)
    throw new MagicError("usage", `${flag} takes CONNECTION:NAME, not ${JSON.stringify(text)}.`);
  return { connection: text.slice(0, at), name: text.slice(at + 1) };
}
