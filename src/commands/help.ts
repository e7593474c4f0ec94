// The layout of --help: what it is, then what can be chosen, then options; what every command takes is said once.
import type { Command, Help, Option } from "commander";

/** @param local the command takes no --url. */
export function formatHelp(command: Command, helper: Help, local: boolean): string {
  const list = (heading: string, items: string[]) => (items.length === 0 ? [] : ["", heading, ...items]);
  const width = helper.padWidth(command, helper);
  const item = (term: string, text: string) => helper.formatItem(term, width, text, helper);
  const top = command.parent === null;
  const subcommands = helper.groupItems(
    [...command.commands],
    helper.visibleCommands(command),
    (one) => one.helpGroup() || "Verbs:",
  );
  const groups = [...subcommands].flatMap(([heading, members]) =>
    list(
      heading,
      members.map((one) => item(helper.subcommandTerm(one), helper.subcommandDescription(one))),
    ),
  );
  const options = helper.groupItems(
    [...command.options],
    helper.visibleOptions(command),
    (one) => one.helpGroupHeading ?? "Options:",
  );
  const optionGroups = [...options]
    .sort(([a], [b]) => Number(a === "Options of every command:") - Number(b === "Options of every command:"))
    .flatMap(([heading, members]) =>
      list(
        heading,
        members.map((one) => item(helper.optionTerm(one), described(one))),
      ),
    );
  return [
    `Usage: ${helper.commandUsage(command)}`,
    "",
    helper.boxWrap(helper.commandDescription(command), helper.helpWidth ?? 80),
    ...list(
      "Arguments:",
      helper.visibleArguments(command).map((one) => item(helper.argumentTerm(one), helper.argumentDescription(one))),
    ),
    ...groups,
    ...optionGroups,
    ...(top
      ? []
      : ["", `Also --json, --output, --live, ${local ? "" : "--url, "}--root, --quiet: see \`magic --help\`.`]),
    "",
  ].join("\n");
}

/** What an option is, its few values, its default. */
export function described(option: Option): string {
  const choices = option.argChoices ? `: ${option.argChoices.join(", ")}` : "";
  const preset = typeof option.defaultValue === "string" ? ` (default ${option.defaultValue})` : "";
  return `${option.description}${choices}${preset}`;
}
