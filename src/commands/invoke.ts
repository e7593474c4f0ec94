// magic invoke: runs a controller once. Its output goes to stdout, the rest to stderr.
import { invokeController } from "#client/controllers.ts";
import { clientOf } from "#commands/client-of.ts";
import { defineCommand } from "#commands/command.ts";
import { printableJson } from "#output/paint.ts";
import { readJsonInput } from "./json-input.ts";

interface Options {
  readonly input?: string;
  readonly version?: string;
}

export default defineCommand<Options>({
  configure: (command) =>
    command
      .argument("<name>", "the controller")
      .option("--input <json>", "the input: JSON, @FILE, or - for standard input (default {})")
      .option("--version <version>", "a version or an alias (default: what serves)"),
  async run(context) {
    const { args, options, output, signal } = context;
    const input = options.input === undefined ? {} : await readJsonInput(options.input, "--input");
    const client = await clientOf(context);
    const name = String(args[0]);
    const answer = await invokeController(client, { name, input, version: options.version, signal });
    output.result(answer, () => printableJson(answer.output, 2));
    if (output.format === "text")
      output.note(
        output.paint.dim(`${name} ${answer.version} in ${answer.duration_ms} ms, request ${answer.request_id}`),
      );
  },
});
